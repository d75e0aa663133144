//! Whole comparisons: the cost model against known figures, and the same report for the same input.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use hermes_lab::replay::{self, Everything};
use hermes_lab::report::Compared;
use hermes_lab::{Figures, Recording, Report, Temper, Terms};

/// Recordings that are not part of the repository; tests that need one are skipped where it is missing.
fn shared(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("HERMES_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    Some(shared.join("data").join(name)).filter(|path| path.exists())
}

fn everything(recording: &Recording) -> Figures {
    replay::replay(recording, &mut Everything::default(), &Terms::STANDARD).figures.unwrap()
}

/// Figures of the same model that were worked out elsewhere: 15.51 million tokens, a mean of 300,000, 1.66 and 99.4 %.
#[test]
fn a_session_without_compaction_costs_what_is_known() {
    let Some(path) = shared("coding-session.jsonl") else { return };
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
    let Some(path) = shared("coding-session.jsonl") else { return };
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
