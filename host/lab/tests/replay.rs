//! Whole comparisons: known figures, and identical reports for identical input.
#![allow(clippy::unwrap_used)]

use hermes_lab::replay::{self, Everything};
use hermes_lab::report::Compared;
use hermes_lab::{FaultMode, Figures, Recording, Report, Terms};
use hermes_test_data::recorded;

fn everything(recording: &Recording) -> Figures {
    replay::replay(recording, &mut Everything::default(), &Terms::STANDARD).figures.unwrap()
}

/// Figures computed elsewhere with the same cost model: 15.51 million tokens, a mean of 300,000, 1.66 and 99.4 %.
#[test]
fn a_session_without_compaction_has_the_known_cost() {
    let Some(path) = recorded("data/coding-session.jsonl") else { return };
    let recording = Recording::read(&path).unwrap().remove(0);
    assert_eq!((recording.requests(), recording.drafts.len()), (484, 996));
    let figures = everything(&recording);
    let millions = figures.cost() / 1e6;
    assert!((15.3..15.8).contains(&millions), "{millions}");
    assert!((297_000.0..306_000.0).contains(&figures.mean_context), "{}", figures.mean_context);
    assert!((1.64..1.67).contains(&figures.write_amplification()), "{}", figures.write_amplification());
    assert!((0.993..0.995).contains(&figures.hit_rate()), "{}", figures.hit_rate());
    assert_eq!((figures.faults, figures.breaks, figures.invalid_requests), (0, 0, 0), "{:?}", figures.first_invalid);
    assert!(figures.references > 1_000, "{}", figures.references);
}

#[test]
fn two_runs_give_identical_reports() {
    let Some(path) = recorded("data/coding-session.jsonl") else { return };
    let run = || {
        let recordings = Recording::read(&path).unwrap();
        let compared = recordings.iter().map(|recording| {
            let outcome = replay::replay(recording, &mut Everything::default(), &Terms::STANDARD);
            Compared::new(recording, vec![outcome], false)
        });
        let report = Report::new(Terms::STANDARD, FaultMode::Sound, compared.collect());
        (report.to_text(), report.to_json(), hermes_lab::plot::svg(&report.recordings, &report.terms))
    };
    assert_eq!(run(), run());
}

fn small() -> Recording {
    let lines = [
        r#"{"role":"user","content":"count the berths of the harbour","timestamp":1700000000}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"count","arguments":"{}"}}],"timestamp":1700000001}"#,
        r#"{"role":"tool","tool_call_id":"a","content":"there are twelve berths in all","timestamp":1700000002}"#,
        r#"{"role":"assistant","content":"there are twelve berths in all","timestamp":1700000400}"#,
    ];
    let file = tempfile::Builder::new()
        .prefix("small")
        .rand_bytes(0)
        .suffix(".jsonl")
        .tempfile_in(tempfile::tempdir().unwrap().keep());
    let file = file.unwrap();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    Recording::read(file.path()).unwrap().remove(0)
}

/// Worked out by hand: 31 bytes are 10.7 tokens; the call of 8 bytes and the result of 31 add 13.4. At the second request the
/// cache has gone cold, so that everything is written again.
#[test]
fn a_small_report_has_the_expected_text() {
    let recording = small();
    let outcome = replay::replay(&recording, &mut Everything::default(), &Terms::STANDARD);
    let report = Report::new(Terms::STANDARD, FaultMode::Sound, vec![Compared::new(&recording, vec![outcome], true)]);
    insta::assert_snapshot!(report.to_text());
}
