//! Whole comparisons: the cost model against known figures, and the same report for the same input.
#![allow(clippy::unwrap_used)]

use hermes_lab::replay::{self, Everything};
use hermes_lab::report::Compared;
use hermes_lab::{Figures, Recording, Report, Temper, Terms};
use hermes_test_data::recorded;

fn everything(recording: &Recording) -> Figures {
    replay::replay(recording, &mut Everything::default(), &Terms::STANDARD).figures.unwrap()
}

/// Figures of the same model that were worked out elsewhere: 15.51 million tokens, a mean of 300,000, 1.66 and 99.4 %.
#[test]
fn a_session_without_compaction_costs_what_is_known() {
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
fn two_runs_make_the_same_report_byte_for_byte() {
    let Some(path) = recorded("data/coding-session.jsonl") else { return };
    let run = || {
        let recordings = Recording::read(&path).unwrap();
        let compared = recordings.iter().map(|recording| {
            let outcome = replay::replay(recording, &mut Everything::default(), &Terms::STANDARD);
            Compared::new(recording, vec![outcome], false)
        });
        let report = Report::new(Terms::STANDARD, Temper::Sound, compared.collect());
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

/// Worked out by hand: 31 bytes are 10.7 tokens, the call of 8 and the result of 31 make 13.4 more. The second request comes when
/// the cache has gone cold, so that all of it is written again.
#[test]
fn a_small_report_reads_like_this() {
    let recording = small();
    let outcome = replay::replay(&recording, &mut Everything::default(), &Terms::STANDARD);
    let report = Report::new(Terms::STANDARD, Temper::Sound, vec![Compared::new(&recording, vec![outcome], true)]);
    insta::assert_snapshot!(report.to_text());
}
