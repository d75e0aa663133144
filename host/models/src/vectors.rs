//! Behaviour that was recorded elsewhere, case by case; `hermes_test_data` finds the recordings.
//!
//! Where this crate differs on purpose, the case stands in a list with the rule behind it and with our own result.

#![allow(clippy::unwrap_used)]

mod cache;
mod chat;
mod failures;
mod messages;
mod reasoning;
mod replies;
mod responses;
mod routes;

use std::fs;

use serde_json::Value;

/// A case that comes out otherwise here.
struct Differs {
    case: &'static str,
    rule: &'static str,
    ours: Value,
}

fn differs(case: &'static str, rule: &'static str, ours: Value) -> Differs {
    Differs { case, rule, ours }
}

/// Cases that this crate has nothing to run for: whole operations, by the beginning of their names, with the reason.
type NotRun = &'static [(&'static str, &'static str)];

/// Runs every case of a suite: `act` gives our result for an input, `wanted` what is compared of the recorded one.
fn run(suite: &str, differing: &[Differs], act: impl Fn(&Value) -> Value, wanted: impl Fn(&Value) -> Value) {
    run_without(suite, &[], differing, act, wanted);
}

/// The same, without the cases of operations that do not exist here.
fn run_without(
    suite: &str,
    not_run: NotRun,
    differing: &[Differs],
    act: impl Fn(&Value) -> Value,
    wanted: impl Fn(&Value) -> Value,
) {
    let Some(path) = hermes_test_data::recorded(&format!("vectors/{suite}.json")) else { return };
    let text = fs::read_to_string(path).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    let mut failures = Vec::new();
    let (mut seen, mut left_out) = (0, 0);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        if not_run.iter().any(|(operation, _)| name.starts_with(operation)) {
            left_out += 1;
            continue;
        }
        let (ours, wanted) = (act(&case["input"]), wanted(&case["expected"]));
        match differing.iter().find(|differs| differs.case == name) {
            None if ours != wanted => failures.push(format!("{name}: ours {ours}\n  recorded {wanted}")),
            None => {}
            Some(differs) => {
                seen += 1;
                if ours != differs.ours {
                    failures.push(format!("{name} ({}): ours {ours}\n  listed {}", differs.rule, differs.ours));
                }
                if ours == wanted {
                    failures.push(format!("{name} is listed as differing and does not differ"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{suite}: {}\n{}", failures.len(), failures.join("\n"));
    assert_eq!(seen, differing.len(), "{suite}: a listed case is not recorded");
    for (operation, _) in not_run {
        let is_recorded = cases.iter().any(|case| case["name"].as_str().unwrap().starts_with(operation));
        assert!(is_recorded, "{suite}: {operation} is not recorded");
    }
    println!("| {suite} | {} | {} | {seen} |", cases.len(), cases.len() - seen - left_out);
}

#[test]
fn the_page_has_a_row_for_every_recorded_suite() {
    let Some(readme) = hermes_test_data::recorded("vectors/README.md") else { return };
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/evidence/vectors.md")).unwrap();
    for file in fs::read_dir(readme.parent().unwrap()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(suite) = name.strip_suffix(".json") else { continue };
        assert!(page.contains(&format!("\n| `{suite}` |")), "tests/evidence/vectors.md says nothing about {suite}");
    }
}

/// A list of blocks where the wire allows a text as its short form.
fn as_blocks(content: &Value) -> Value {
    match content {
        Value::String(text) => serde_json::json!([{"type": "text", "text": text}]),
        other => other.clone(),
    }
}
