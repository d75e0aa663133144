//! The recorded cases of context files: scanning and shortening.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use hermes_prompt::files::ContextFile;
use hermes_prompt::scan::{Scope, findings};
use hermes_prompt::shape;
use serde_json::Value;

/// The cases of a suite; none where the recordings are missing.
fn suite(name: &str) -> Option<Vec<Value>> {
    let path = hermes_test_data::recorded(&format!("vectors/{name}.json"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let mut suite: Value = serde_json::from_str(&text).unwrap();
    let cases: Vec<Value> = serde_json::from_value(suite["cases"].take()).unwrap();
    assert_eq!(suite["count"], cases.len());
    Some(cases)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// Our results where they differ, in the scopes all, context and strict, with the reason.
const DIFFERING: &[(&str, [&str; 3], &str)] = &[
    ("plain/emoji-zwj", ["", "", ""], "a joiner inside an emoji is part of it"),
    ("plain/past-limit", ["prompt_injection"; 3], "the whole text is scanned"),
];

#[test]
fn context_scan() {
    let Some(cases) = suite("context_scan") else { return };
    let mut differing = Vec::new();
    for case in &cases {
        let name = text(case, "name");
        let expected = |key: &str| -> BTreeSet<String> {
            case["expected"][key].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
        };
        let mut expected = [expected("all"), expected("context"), expected("strict")];
        if let Some((name, ours, _)) = DIFFERING.iter().find(|(differing, ..)| *differing == name) {
            differing.push(*name);
            expected = ours.map(|ids| ids.split_terminator(',').map(str::to_owned).collect());
        } else {
            assert_eq!(case["expected"]["blocked"], !expected[1].is_empty(), "{name}");
            assert_eq!(case["expected"]["memory_write_blocked"], !expected[2].is_empty(), "{name}");
        }

        // Reading a file drops one byte order mark.
        let whole = text(&case["input"], "text");
        let read = whole.strip_prefix('\u{feff}').unwrap_or(whole);
        let found = [Scope::All, Scope::Context, Scope::Strict].map(|scope| findings(read, scope));
        assert_eq!(found, expected, "{name}");

        // A match blocks its passage, not the whole file, so a text always remains.
        let (file, notices) = ContextFile::new("AGENTS.md", read, usize::MAX);
        assert_eq!(notices.len(), usize::from(!expected[1].is_empty()), "{name}");
        assert_eq!(file.is_some(), !read.is_empty(), "{name}");
        if let Some(file) = file {
            assert_eq!(file.text() == read.trim(), expected[1].is_empty(), "{name}");
        }
    }
    let listed: BTreeSet<&str> = DIFFERING.iter().map(|(name, ..)| *name).collect();
    assert_eq!(differing.into_iter().collect::<BTreeSet<_>>(), listed, "a case of the list is not there");
}

#[test]
fn context_shape() {
    let Some(cases) = suite("context_shape") else { return };
    for case in &cases {
        let (name, input, expected) = (text(case, "name"), &case["input"], &case["expected"]);
        match text(input, "op") {
            "frontmatter" => {
                assert_eq!(shape::without_front_matter(text(input, "text")).0, expected.as_str().unwrap(), "{name}");
            }
            "truncate" => {
                let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
                let (length, limit) = (number(&input["length"]), number(&input["limit"]));
                let whole: String =
                    (0..length).map(|i| char::from_u32(0x4e00 + u32::try_from(i % 20_000).unwrap()).unwrap()).collect();
                let cut = shape::around("AGENTS.md", &whole, limit, "read_file shows the rest");
                assert_eq!(cut.is_some(), expected["truncated"].as_bool().unwrap(), "{name}");
                if let Some(cut) = cut {
                    assert_eq!((cut.head, cut.tail), (number(&expected["head"]), number(&expected["tail"])), "{name}");
                    let first: String = whole.chars().take(cut.head).collect();
                    let last: String = whole.chars().skip(length - cut.tail).collect();
                    assert!(cut.text.starts_with(&first) && cut.text.ends_with(&last), "{name}");
                }
            }
            other => panic!("{name}: no such operation: {other}"),
        }
    }
}
