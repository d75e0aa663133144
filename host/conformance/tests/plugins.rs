//! The bundled plugins pass, and the planted defects of a test plugin are found.
//!
//! `cargo xtask plugins` stages these plugins. A plain `cargo test` without them says so.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use hermes_conformance::{HttpFixtures, ModelFixtures, Report, Settings, Subject, examine};
use hermes_runtime::Runtime;

/// A staged plugin; `None` if no plugins are staged.
fn staged(place: &str) -> Option<Subject> {
    let folder = hermes_test_data::staged(place)?;
    Some(
        if place.starts_with("test-natives") {
            Subject::find_native(&folder)
        } else {
            Subject::find_component(&folder)
        }
        .unwrap(),
    )
}

fn runtime() -> Runtime {
    Runtime::new(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("code"))
}

fn settings(config: Option<String>) -> Settings {
    Settings { conversations: 40, seed: 1, turns: None, config, http: None, model: None, jobs: 2 }
}

fn summary(report: &Report) -> String {
    let line = |check: &hermes_conformance::Check| {
        format!("{} {}: {} — {}\n", if check.passed { "✓" } else { "✗" }, check.group, check.what, check.seen)
    };
    report.checks.iter().map(line).collect()
}

fn passes(place: &str) {
    let Some(subject) = staged(place) else { return };
    let report = examine(&subject, &runtime(), &settings(None), &|_| ()).unwrap();
    assert!(report.passed(), "{place}\n{}", summary(&report));
    assert!(!report.calls.is_empty());
    match report.memory {
        Some(memory) => assert!(memory.enough_mib <= memory.limit_mib),
        None => assert!(place.starts_with("test-natives"), "only the memory of native code is not limited"),
    }
}

#[test]
fn the_compressor_keeps_the_contract() {
    passes("bundled/context_engine/compressor");
}

#[test]
fn the_compressor_keeps_the_contract_as_a_native_library_too() {
    passes("test-natives/compressor-native");
}

#[test]
fn the_lossless_engine_keeps_the_contract() {
    passes("bundled/context_engine/lossless");
}

#[test]
fn the_builtin_memory_keeps_the_contract() {
    passes("bundled/memory/builtin");
}

#[test]
fn the_file_tools_keep_the_contract() {
    passes("bundled/tools/files");
}

#[test]
fn the_web_tools_keep_the_contract() {
    passes("bundled/tools/web");
}

#[test]
fn the_terminal_keeps_the_contract() {
    passes("bundled/tools/terminal");
}

#[test]
fn the_list_of_tasks_keeps_the_contract() {
    passes("bundled/tools/todo");
}

#[test]
fn the_local_skills_keep_the_contract() {
    passes("bundled/skills/local");
}

#[test]
fn the_audit_hooks_keep_the_contract() {
    passes("bundled/hooks/audit");
}

/// A tool gets 64 MiB in a session, and no more in a test. More has to be requested, there and here.
#[test]
fn a_plugin_is_tested_within_the_limits_that_it_has_in_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let write = |limits: &str| {
        std::fs::write(folder.path().join("plugin.yaml"), format!("name: large\n{limits}")).unwrap();
        let subject = Subject::find_component(folder.path()).unwrap();
        examine(&subject, &runtime(), &settings(None), &|_| ()).unwrap()
    };
    let pages_of_120_mib = 120 * 16;
    let component = hermes_zoo::Shell::with_tool("nop").pages(pages_of_120_mib, None).build();
    std::fs::write(folder.path().join("large.wasm"), component).unwrap();
    let report = write("");
    let found = report.failures().find(|check| check.seen.contains("64MiB")).unwrap();
    assert!(found.fix.as_ref().is_some_and(|fix| fix.contains("below `limits` in plugin.yaml")), "{found:?}");
    assert!(
        report.not_judged.iter().any(|check| check.group == "limits"),
        "the limit is named once: {}",
        summary(&report)
    );
    let report = write("limits: {memory: 128MiB}\n");
    assert!(report.failures().all(|check| !check.seen.contains("MiB")), "{}", summary(&report));
    assert_eq!(report.memory.unwrap().limit_mib, 128);
}

/// The name of a planted flaw, with the group and the name of the check that must find it.
const FLAWS: &[(&str, &str, &str)] = &[
    ("configure-panics", "lifecycle", "is configured as given"),
    ("unwraps-imports", "imports", "survives when every import is denied"),
    ("end-panics", "lifecycle", "ends a session"),
    ("catalog-changes", "tools", "offers the same tools each time it is asked"),
    ("tool-twice", "tools", "names and describes its tools"),
    ("schema-is-none", "tools", "has a JSON Schema for each tool's arguments"),
    ("any-tool", "tools", "answers a name that it does not have with an error"),
    ("slices-bytes", "tools", "answers wrong, empty, huge and strange arguments"),
    ("asks-for-more", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("not-json", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("other-type", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("cuts-bytes", "tools", "answers awkward texts"),
    ("says-nothing", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("no-structure", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("several-fail", "tools", "answers ordinary arguments as its manifest and schemas say"),
    ("index-turns", "skills", "has the same index each time it is asked"),
    ("any-skill", "skills", "answers unknown names with an error"),
    ("any-path", "skills", "shows nothing outside of its skills"),
    ("odd-interest", "hooks", "subscribes to known events, the same each time"),
    ("blocks-late", "hooks", "has a verdict for every event"),
    ("reads-notices", "hooks", "has a verdict for every event"),
    ("hook-panics", "hooks", "has a verdict for every event"),
    ("prompt-counts", "memory", "has the same text for the prompt each time"),
    ("over-budget", "memory", "recalls within the budget"),
    ("one-key", "memory", "has a key of its own for each recollection"),
    ("takes-twice", "memory", "stores a repeated turn only once"),
    ("subtracts", "context engine", "assesses every moment, from empty to overfull"),
    ("odd-status", "context engine", "has a status that is a JSON object"),
    ("never-done", "context engine", "prepares in steps that end"),
    ("quotes-beyond", "context assist", "quotes what was said, twice the same"),
    ("loses", "plans", "keep the rules that the host checks"),
    ("splits-calls", "plans", "keep the rules that the host checks"),
    ("never-proposes", "plans", "make room in a full window"),
];

fn flawed(flaw: &str) -> Option<Report> {
    let subject = staged("test-guests/flawed")?;
    let settings = Settings { conversations: 12, ..settings(Some(format!(r#"{{"flaw":"{flaw}"}}"#))) };
    Some(examine(&subject, &runtime(), &settings, &|_| ()).unwrap())
}

#[test]
fn a_plugin_of_every_kind_without_a_flaw_passes() {
    let Some(report) = flawed("none") else { return };
    assert!(report.passed(), "{}", summary(&report));
    assert_eq!(report.kinds.len(), 7);
}

#[test]
fn every_planted_flaw_is_found_with_a_reason_and_a_fix() {
    for (flaw, group, what) in FLAWS {
        let Some(report) = flawed(flaw) else { return };
        let found = report.failures().find(|check| check.group == *group && check.what == *what);
        let found = found.unwrap_or_else(|| panic!("{flaw} was not found\n{}", summary(&report)));
        assert!(!found.seen.is_empty() && found.fix.is_some(), "{found:?}");
    }
}

/// Fault 8 of the authors' review: of 14 faulty tools, one was named, in four checks.
#[test]
fn every_failing_tool_is_named_once_with_its_own_cause() {
    let Some(report) = flawed("several-fail") else { return };
    let naming = |words: &str| -> Vec<&str> {
        let names = |check: &&hermes_conformance::Check| {
            check.seen.contains(words) || check.each.iter().any(|why| why.contains(words))
        };
        report.failures().filter(names).map(|check| check.what).collect()
    };
    let ordinary = "answers ordinary arguments as its manifest and schemas say";
    for words in ["there is nothing to divide by", "the key is missing", "`ask`"] {
        assert_eq!(naming(words), [ordinary], "{words}: {}", summary(&report));
    }
    let check = report.failures().find(|check| check.what == ordinary).unwrap();
    assert_eq!((check.seen.as_str(), check.each.len(), check.raw.len()), ("3 of 4 tools fail", 3, 2), "{check:?}");
    assert!(
        check.each[0].starts_with("`divide` with {") && check.each[0].contains("tests/guests/flawed/src/lib.rs:"),
        "{check:?}"
    );
    assert!(check.raw[0].contains("panicked at "), "{check:?}");
    // The crashes are reported once: checks that deny imports do not report a crash that happens with all rights too.
    assert_eq!(report.failures().count(), 1, "{}", summary(&report));
}

/// A crash in a function that every session calls is one failure, whatever else calls the function.
#[test]
fn a_cause_that_several_checks_meet_is_named_once() {
    let Some(report) = flawed("hook-panics") else { return };
    let named: Vec<&str> =
        report.failures().filter(|check| check.seen.contains("arguments are JSON")).map(|check| check.what).collect();
    assert_eq!(named, ["has a verdict for every event"], "{}", summary(&report));
    let Some(report) = flawed("end-panics") else { return };
    assert_eq!(report.failures().count(), 1, "{}", summary(&report));
    let Some(report) = flawed("subtracts") else { return };
    let named = report.failures().filter(|check| check.seen.contains("there is room")).count();
    assert_eq!(named, 1, "{}", summary(&report));
}

#[test]
fn a_seed_reproduces_a_plan_that_breaks_a_rule() {
    let Some(report) = flawed("splits-calls") else { return };
    let check = report.failures().find(|check| check.group == "plans").unwrap();
    let subject = staged("test-guests/flawed").unwrap();
    let settings = Settings {
        conversations: 1,
        seed: check.seed.unwrap(),
        ..settings(Some(r#"{"flaw":"splits-calls"}"#.to_owned()))
    };
    let again = examine(&subject, &runtime(), &settings, &|_| ()).unwrap();
    assert!(again.failures().any(|found| found.seen == check.seen), "{}", summary(&again));
}

#[test]
fn a_file_that_is_not_a_component_fails_one_check_with_the_reason() {
    let subject = Subject::of_parts("name: none\n", b"\0asm\x01\0\0\0").unwrap();
    let report = examine(&subject, &runtime(), &settings(None), &|_| ()).unwrap();
    assert_eq!((report.checks.len(), report.passed()), (1, false));
    assert!(report.checks[0].seen.contains("core module"), "{:?}", report.checks);
}

/// What the server of the guest `pigeon` answers.
const LOFT: &str = "- request: GET https://loft.example.org/v1/search
  answer:
  - {status: 429, headers: {retry-after: 1}}
  - {json: {memories: [{id: a, text: The ferry leaves at 07:45.}, {id: b, text: Ada keeps the lamps.}]}}
- request: {method: POST, url: 'https://loft.example.org/v1/turns', headers: {authorization: Bearer stand-in-for-token}}
  answer: {status: 204}
- request: DELETE https://loft.example.org/v1/*
  answer: 204
";
const MODEL: &str = "- {task: memory, reply: [A ferry., {error: unavailable}]}\n- {task: compression, reply: none}\n";

/// Tests the guest `pigeon` with a flaw, with fixtures or without.
fn pigeon(flaw: &str, with_fixtures: bool) -> Option<Report> {
    let subject = staged("test-guests/pigeon")?;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    // A client that gives up at the first failure fails other checks as well.
    let loft = if flaw == "gives-up" {
        LOFT.replace("  - {status: 429, headers: {retry-after: 1}}\n", "")
    } else {
        LOFT.to_owned()
    };
    let http = with_fixtures.then(|| HttpFixtures::read(&write("http.yaml", &loft)).unwrap());
    let model = with_fixtures.then(|| ModelFixtures::read(&write("model.yaml", MODEL)).unwrap());
    let settings = Settings { http, model, ..settings(Some(format!(r#"{{"flaw":"{flaw}"}}"#))) };
    Some(examine(&subject, &runtime(), &settings, &|_| ()).unwrap())
}

/// The defect D1 of the authors' review: 6 of 25 checks of an honest memory over HTTP failed, because it had no web.
#[test]
fn a_memory_over_http_passes_without_fixtures_if_it_says_that_its_server_is_down() {
    let Some(report) = pigeon("none", false) else { return };
    assert!(report.passed(), "{}", summary(&report));
    let http = report.http.as_ref().unwrap();
    assert!(http.stand_in && http.requests > 0 && report.model.is_none(), "{http:?}");
    let recalls = report.checks.iter().find(|check| check.what == "recalls within the budget").unwrap();
    assert!(recalls.seen.contains("its backend is down, and it says so"), "{recalls:?}");
}

#[test]
fn a_memory_over_http_is_tested_with_the_answers_of_fixtures() {
    let Some(report) = pigeon("none", true) else { return };
    assert!(report.passed(), "{}", summary(&report));
    let seen = |what: &str| report.checks.iter().find(|check| check.what == what).unwrap().seen.clone();
    assert_eq!(seen("recalls within the budget"), "up to 2 recollections");
    let limited = seen("answers an error when its backend limits requests");
    assert!(limited.contains("`sync-turn`: unavailable") && limited.contains("2000 ms"), "{limited}");
    let (http, model) = (report.http.as_ref().unwrap(), report.model.as_ref().unwrap());
    assert_eq!(http.unused, ["line 7: DELETE https://loft.example.org/v1/*"]);
    assert_eq!((http.stand_in, http.unmatched.len()), (false, 0));
    assert_eq!(model.unused, ["line 2: task compression"]);
    let text = serde_json::to_string(&report).unwrap();
    assert!(!text.contains("stand-in-for"), "{text}");
}

/// A planted flaw of the guest `pigeon`, the check that must find it, and a part of the reason.
const FLAWS_OF_A_CLIENT: &[(&str, &str, &str)] = &[
    ("unwraps-answers", "answers ordinary arguments as its manifest and schemas say", "the loft answers JSON"),
    ("hides-errors", "answers an error when its backend fails", "as if nothing had happened"),
    ("loses-turns", "answers an error when its backend limits requests", "`sync-turn` answers as if nothing"),
    ("loses-keys", "answers an error when its backend refuses the key", "of the kind `failed`"),
    (
        "loses-unset",
        "keeps the turn while a secret is not set",
        "one of its secrets is not set, and `sync-turn` answers an error of the kind `failed`",
    ),
    (
        "loses-ungranted",
        "keeps the turn while an address is not granted",
        "`sync-turn` answers as if nothing had happened",
    ),
    ("wrong-kind", "answers an error in time when its backend is slow", "of the kind `failed`"),
    ("gives-up", "answers an error when its backend refuses connections", "works again, `recall` fails"),
    (
        "never-sends",
        "sends each turn before it answers",
        "20 turns were answered with success, and no request came for POST",
    ),
    (
        "sends-later",
        "sends each turn before it answers",
        "turn 1 was answered with success, and sent only while turn 3 was stored",
    ),
    ("nameless", "names a turn when it sends it again", "nothing in the requests tells that it is the same turn"),
    ("other-field", "recalls what its backend answers", "its backend answers with texts, and `recall` gives nothing"),
];

#[test]
fn a_client_that_handles_failures_of_its_server_badly_is_found() {
    for (flaw, what, part) in FLAWS_OF_A_CLIENT {
        let Some(report) = pigeon(flaw, true) else { return };
        let found = report.failures().find(|check| check.what == *what);
        let found = found.unwrap_or_else(|| panic!("{flaw} was not found\n{}", summary(&report)));
        assert!(found.seen.contains(part) && found.fix.is_some(), "{flaw}: {found:?}");
    }
}

/// A planted flaw of the guest `mapper`, and the check that must find it.
const MAPPER_FLAWS: &[(&str, &str)] = &[
    ("no-dimensions", "describes its model, the same each time"),
    ("not-a-number", "returns what it describes"),
    ("short", "returns what it describes"),
    ("few", "returns what it describes"),
    ("floods", "returns what it describes"),
    ("crashes", "returns what it describes"),
    ("hangs", "returns what it describes"),
    ("unsteady", "has the same vector for the same text"),
    ("reversed", "keeps the order of a batch"),
    ("refuses-empty", "has a vector for an empty text"),
];

#[test]
fn an_embedder_is_tested() {
    let test = |flaw: &str| {
        let subject = staged("test-guests/mapper")?;
        let settings = settings(Some(format!(r#"{{"flaw":"{flaw}"}}"#)));
        Some(examine(&subject, &runtime(), &settings, &|_| ()).unwrap())
    };
    let Some(report) = test("none") else { return };
    assert!(report.passed(), "{}", summary(&report));
    assert_eq!(report.kinds, ["embedder"]);
    for (flaw, check) in MAPPER_FLAWS {
        let report = test(flaw).unwrap();
        let first = report.failures().find(|failed| failed.group == "embedder").map(|failed| failed.what);
        assert_eq!(first, Some(*check), "{flaw}: {}", summary(&report));
    }
}
