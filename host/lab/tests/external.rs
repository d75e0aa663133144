//! Columns out of process: one that works, and all the ways to fail.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use hermes_conversation::{Draft, ToolCall};
use hermes_lab::external::External;
use hermes_lab::replay::{self, Everything, Outcome};
use hermes_lab::{FaultMode, LabError, Recording, StandIn, Terms};

fn recording() -> Recording {
    let call = ToolCall { id: "a".into(), name: "read".into(), arguments: r#"{"path":"x"}"#.into() };
    let reused = "a line that the model will repeat later on";
    let text = [
        Draft::user("first things first", 1_000),
        Draft::assistant("", vec![call.clone()], 2_000),
        Draft::result(&call, reused, 3_000),
        Draft::assistant("done", Vec::new(), 4_000),
        Draft::user("and then the rest", 5_000),
        Draft::assistant(reused, Vec::new(), 6_000),
    ];
    let line = |draft: &Draft| {
        let mut line = serde_json::to_value(draft).unwrap();
        line["timestamp"] = draft.created_at.into();
        line.to_string()
    };
    let lines: Vec<String> = text.iter().map(line).collect();
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    Recording::read(file.path()).unwrap().remove(0)
}

/// Runs a shell script as a column, with this timeout for each answer.
fn run(script: &str, timeout: Duration) -> Outcome {
    let command = format!("sh -c {}", shlex::try_quote(script).unwrap());
    let stand_in = StandIn::new(Terms::STANDARD.bytes_per_token, FaultMode::Sound);
    let mut column = External::start("script", &command, "session", Terms::STANDARD, stand_in, timeout).unwrap();
    replay::replay(&recording(), &mut column, &Terms::STANDARD)
}

/// A script that answers the requests with these lines in turn.
fn answers(answers: &[&str]) -> String {
    let mut script =
        "n=0; while read -r line; do case \"$line\" in *'\"type\":\"request\"'*) n=$((n+1));; *) continue;; esac\n\
                      case $n in\n"
            .to_owned();
    for (at, answer) in answers.iter().enumerate() {
        script.push_str(&format!("{}) printf '%s\\n' '{answer}';;\n", at + 1));
    }
    script.push_str("esac; done");
    script
}

const TIMEOUT: Duration = Duration::from_secs(600);

#[test]
fn a_column_that_shows_everything_has_the_figures_of_no_compaction() {
    let outcome = run(
        &answers(&[
            r#"{"type":"context","messages":[{"id":1}]}"#,
            r#"{"type":"context","messages":[{"id":1},{"id":2},{"id":3}],"note":null}"#,
            r#"{"type":"context","messages":[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]}"#,
        ]),
        TIMEOUT,
    );
    let everything = replay::replay(&recording(), &mut Everything::default(), &Terms::STANDARD);
    assert_eq!(outcome.figures.unwrap(), everything.figures.unwrap());
}

#[test]
fn omissions_and_broken_prefixes_are_counted() {
    let outcome = run(
        &answers(&[
            // A result without its call.
            r#"{"type":"context","messages":[{"id":1},{"role":"tool","tool_call_id":"z","content":"?"}]}"#,
            // Another beginning, without a publication.
            r#"{"type":"context","messages":[{"role":"user","content":"all in one"},{"id":2},{"id":3}]}"#,
            // A new view with the user's newest message, but without the text that the reply repeats.
            r#"{"type":"context","messages":[{"role":"user","content":"so far so good\nand then the rest"}],"note":"compacted"}"#,
        ]),
        TIMEOUT,
    );
    let figures = outcome.figures.unwrap();
    assert_eq!((figures.invalid_requests, figures.breaks, figures.avoidable_breaks), (2, 2, 1));
    let first = figures.first_invalid.unwrap();
    assert!(first.starts_with("request 1: message"), "{first}");
    assert_eq!((figures.publications, figures.faulting_requests, figures.faults), (1, 1, 1));
    assert!(figures.fault_tax > 2_000.0 * 1.25);
}

#[test]
fn summaries_come_from_the_stand_in_and_are_counted_in_the_cost() {
    let script = r#"while read -r line; do case "$line" in
        *'"type":"request"'*) printf '%s\n' '{"type":"summarise","task":"compression","prompt":"one\ntwo"}';;
        *'"type":"summary","text":"one\ntwo"'*) printf '%s\n' '{"type":"context","messages":[{"role":"user","content":"first things first, and then the rest"}]}';;
        esac; done"#;
    let figures = run(script, TIMEOUT).figures.unwrap();
    assert_eq!((figures.summaries, figures.requests), (3, 3));
    let tokens = 7.0 / 2.9 * 3.0;
    assert!((figures.summary_cost - tokens * 0.2 * (1.0 + 5.0)).abs() < 1e-9, "{}", figures.summary_cost);
}

#[test]
fn a_failing_command_ends_its_column_quickly_with_a_reason() {
    for (script, timeout, request, why) in [
        ("exit 3", 20_000, 1, "exit status: 3"),
        ("echo 'no such module: hermes' >&2; exit 1", 20_000, 1, "its last words: no such module: hermes"),
        ("sleep 600", 300, 1, "did not answer within 0.3 s"),
        // A grandchild keeps stdout open.
        ("sleep 600 & exit 0", 300, 1, "did not answer"),
        ("trap '' TERM; while :; do sleep 1; done", 300, 1, "did not answer"),
        ("yes nonsense", 20_000, 1, "not a reply of the protocol"),
        ("yes nonsense >&2", 300, 1, "did not answer within"),
        (
            r#"read -r a; read -r b; echo '{"type":"context","messages":[{"id":99}]}'"#,
            20_000,
            1,
            "99, which was never told",
        ),
        (r#"read -r a; echo '{"type":"context","messages":[{"role":"system","content":"x"}]}'"#, 20_000, 1, "`system`"),
        (r#"echo '{"type":"context","messages":[{}]}'"#, 20_000, 1, "neither a role nor an id"),
        (r#"echo '{"type":"error","message":"no window"}'"#, 20_000, 1, "gave up: no window"),
        (r#"echo '{"type":"song"}'"#, 20_000, 1, "unknown variant `song`"),
        (
            r#"while echo '{"type":"summarise","prompt":"more"}'; do read -r line; done"#,
            20_000,
            1,
            "more than 100 summaries",
        ),
        (r#"echo '{"type":"context","messages":[{"id":1}]}'"#, 20_000, 2, "ended without an answer"),
    ] {
        let begun = Instant::now();
        let error = run(script, Duration::from_millis(timeout)).figures.unwrap_err();
        assert!(error.request == request && error.why.contains(why), "{script}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(600), "{script} took too long");
    }
}

#[test]
fn an_invalid_command_line_is_an_error_before_the_start() {
    let stand_in = StandIn::new(Terms::STANDARD.bytes_per_token, FaultMode::Sound);
    let start = |command| External::start("x", command, "s", Terms::STANDARD, stand_in, TIMEOUT);
    assert!(matches!(start("  "), Err(LabError::Command { .. })));
    assert!(matches!(start("python 'open"), Err(LabError::Command { .. })));
    let mut missing = start("/no/such/program --flag").unwrap();
    let outcome = replay::replay(&recording(), &mut missing, &Terms::STANDARD);
    assert!(outcome.figures.unwrap_err().why.contains("`/no/such/program` does not start"));
}
