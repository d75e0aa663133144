#![allow(clippy::unwrap_used)]

use std::path::Path;

use hermes_conversation::Role;

use super::*;

/// Two sessions; each question is answered by messages that share rare words with it.
fn dialogue() -> Dialogue {
    let said = [
        (0, Role::User, "The ferry is called Albatross."),
        (0, Role::Assistant, "Good to know."),
        (0, Role::User, "It leaves at seven."),
        (1, Role::User, "Lanterns burned through the night."),
        (1, Role::Assistant, "They need oil."),
    ];
    let messages = said.iter().enumerate().map(|(at, (session, role, text))| Utterance {
        role: *role,
        text: (*text).to_owned(),
        said_at: 1_700_000_000_000 + at as u64 * 1_000,
        session: *session,
    });
    let question = |id: &str, kind: &str, text: &str, evidence: &[usize]| Question {
        id: id.to_owned(),
        kind: kind.to_owned(),
        text: text.to_owned(),
        evidence: evidence.iter().copied().collect(),
    };
    Dialogue {
        name: "harbour".to_owned(),
        collection: Collection::LoCoMo,
        messages: messages.collect(),
        questions: vec![
            question("1", "multi-hop", "When does the Albatross leave?", &[0, 2]),
            question("2", "single-hop", "What burns in a lantern at night?", &[3]),
            question("3", "single-hop", "???", &[4]),
        ],
        notes: Vec::new(),
    }
}

fn report(contenders: &[&dyn Contender], k: usize) -> RecallReport {
    let dialogues = [dialogue()];
    let folder = tempfile::tempdir().unwrap();
    let outcomes = contenders.iter().map(|contender| {
        let outcome = compare(*contender, &dialogues, k, folder.path()).unwrap();
        assert!(outcome.measured.bytes_on_disk > 1_000 && outcome.measured.writes.len() == 3);
        outcome
    });
    let report = RecallReport::new(&dialogues, Vec::new(), outcomes.collect(), k, false);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    report
}

#[test]
fn evidence_is_counted_alone_and_with_neighbours() {
    let report = report(&[&Bm25, &SessionSearch], 1);
    for column in &report.columns {
        let [all, multi, single] = &column.figures[..] else { panic!("{:?}", column.figures) };
        assert_eq!((all.questions, all.evidence, multi.evidence, single.questions), (3, 4, 2, 2), "{}", column.name);
        assert_eq!(all.without_hits, 1, "{}: the third question has no words", column.name);
        let first = &multi.found[0];
        assert_eq!(
            (first.hits, first.with_neighbours.share_of_all_evidence),
            (1, 1.0),
            "{}: two messages away",
            column.name
        );
        assert!(first.alone.share_of_all_evidence < 1.0 && first.alone.all_found == 0.0);
        assert_eq!(
            (single.found[0].alone.share_of_all_evidence, single.found[0].alone.all_found),
            (0.5, 0.5),
            "{}",
            column.name
        );
        assert_eq!(all.found.iter().map(|within| within.hits).collect::<Vec<_>>(), CUTS);
    }
    // The baseline answers with whole messages.
    assert_eq!(report.columns[0].figures[0].most_bytes, "Lanterns burned through the night.".len() as u64);
}

#[test]
fn two_runs_give_identical_reports() {
    let run = || {
        let report = report(&[&Bm25, &SessionSearch], 10);
        (report.to_text(), report.to_json(), svg(&report))
    };
    let (text, json, plot) = run();
    assert_eq!((text.clone(), json, plot.clone()), run());
    assert!(
        text.contains("bm25")
            && text.contains("share of all evidence within 40 hits")
            && text.contains("mean of questions within 1 hit ")
            && !text.contains("Measured"),
        "{text}"
    );
    assert!(plot.contains("LoCoMo: evidence recall") && plot.matches("<path").count() == 6 + 4, "{plot}");
}

/// Fails in every way that a memory can.
struct Broken {
    starts: bool,
}

impl Contender for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn begin<'a>(&'a self, _: &'a Dialogue, _: &Path) -> Result<Box<dyn Memory + 'a>, String> {
        if self.starts { Ok(Box::new(Silent)) } else { Err("the backend is away".to_owned()) }
    }
}

struct Silent;

impl Memory for Silent {
    fn write(&mut self, turn: &Turn) -> Result<(), String> {
        if turn.messages.start == 0 { Ok(()) } else { Err("the disk is full".to_owned()) }
    }

    fn ask(&mut self, _: &str, _: usize) -> Result<Answer, String> {
        Err("it hangs".to_owned())
    }
}

#[test]
fn failures_are_counted_and_questions_stay_in_the_sum() {
    for (starts, expected, first) in [
        (true, (0, 2, 3), "dialogue harbour, message 3: the disk is full"),
        (false, (1, 0, 0), "dialogue harbour: the backend is away"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let dialogues = [dialogue()];
        let outcome = compare(&Broken { starts }, &dialogues, 40, folder.path()).unwrap();
        let failures = &outcome.failures;
        assert_eq!((failures.starts, failures.writes, failures.questions), expected);
        assert_eq!(failures.first.as_deref(), Some(first));
        let report = RecallReport::new(&dialogues, Vec::new(), vec![outcome], 40, false);
        assert_eq!((report.columns[0].figures[0].questions, report.columns[0].figures[0].without_hits), (3, 3));
        assert!(report.to_text().contains(first), "{}", report.to_text());
    }
}
