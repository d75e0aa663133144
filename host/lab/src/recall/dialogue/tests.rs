#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hermes_recordings::RecordingError;
use serde_json::{Value, json};

use super::*;
use crate::LabError;

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, Value)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, value) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value.to_string()).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, names: &[&str], only: Option<&str>) -> Result<(Vec<Dialogue>, Vec<Note>), LabError> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        let only: Option<Only> = only.map(|only| only.parse().unwrap());
        read(&paths, only.as_ref())
    }
}

fn count(notes: &[Note], what: &str) -> u64 {
    notes.iter().find(|note| note.what == what).map_or(0, |note| note.count)
}

fn evidence(dialogue: &Dialogue) -> Vec<Vec<usize>> {
    dialogue.questions.iter().map(|question| question.evidence.iter().copied().collect()).collect()
}

/// A dialogue in the published form of LoCoMo.
fn locomo() -> Value {
    json!({
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada", "speaker_b": "Ben",
            "session_10_date_time": "9:05 am on 2 May, 2023",
            "session_10": [{ "speaker": "Ben", "dia_id": "D10:1", "text": "The boat is sold." }],
            "session_2_date_time": "1:10 pm on 27 March, 2023",
            "session_2": [
                { "speaker": "Ada", "dia_id": "D2:1", "text": "I bought a boat.", "blip_caption": "a red boat" },
                { "speaker": "Ben", "dia_id": "D2:2", "text": "Nice!" },
                { "speaker": "Ada", "dia_id": "D2:3", "text": "It leaks." },
            ],
        },
        "qa": [
            { "question": "What did Ada buy?", "evidence": ["D2:1"], "category": 4 },
            { "question": "What became of the boat?", "evidence": ["D2:3 D10:01; D99:1"], "category": 1 },
            { "question": "Who is the mayor?", "evidence": [], "category": 3 },
            { "question": "When did it sink?", "evidence": ["D99:1"], "category": 5 },
            { "question": "What colour?", "evidence": ["D"], "category": 2 },
            { "evidence": ["D2:1"] },
        ],
    })
}

#[test]
fn locomo_is_read_with_its_gaps_counted() {
    let folder = Folder::with(&[("anything.txt", json!([locomo()]))]);
    let (dialogues, notes) = folder.read(&["anything.txt"], None).unwrap();
    let [dialogue] = &dialogues[..] else { panic!("{dialogues:?}") };
    assert_eq!((dialogue.collection, dialogue.messages.len(), dialogue.sessions()), (Collection::LoCoMo, 4, 2));
    let texts: Vec<&str> = dialogue.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["Ada: I bought a boat. [a red boat]", "Ben: Nice!", "Ada: It leaks.", "Ben: The boat is sold."]);
    assert_eq!(dialogue.messages[0].said_at, 1_679_922_600_000, "13:10 on 27 March 2023");
    assert_eq!(evidence(dialogue), [vec![0], vec![2, 3]]);
    let kinds: Vec<&str> = dialogue.questions.iter().map(|question| question.kind.as_str()).collect();
    assert_eq!(kinds, ["single-hop", "multi-hop"]);
    for (what, expected) in [
        (WITHOUT_EVIDENCE, 1),
        (NOTHING_LEFT, 2),
        (UNKNOWN_MESSAGE, 2),
        (BROKEN_REFERENCE, 1),
        (REPAIRED_REFERENCE, 1),
        (BROKEN_QUESTION, 1),
    ] {
        assert_eq!(count(&dialogue.notes, what), expected, "{what}");
    }
    assert_eq!(notes, []);
}

#[test]
fn corrections_replace_the_evidence_of_the_question_that_they_quote() {
    let corrections = json!([
        { "question_id": "locomo_1_qa0", "question": "What did Ada buy?", "correct_evidence": ["D2:3"] },
        { "question_id": "locomo_0_qa1", "question": "Another question", "correct_evidence": ["D2:3"] },
    ]);
    let audited = json!({
        "conv_id": "locomo_1", "speaker_a": "Ada", "speaker_b": "Ben",
        "dialog_index": {
            "D10:1": { "dia_id": "D10:1", "speaker": "Ben", "text": "Bye.", "session_datetime": "9:05 am on 2 May, 2023" },
            "D2:1": { "dia_id": "D2:1", "speaker": "Ada", "text": "A boat!", "session_datetime": "1:10 pm on 2 May, 2023" },
            "D2:3": { "dia_id": "D2:3", "speaker": "Ada", "text": "A car.", "session_datetime": "1:10 pm on 2 May, 2023" },
        },
        "questions": [{ "question_id": "locomo_1_qa0", "question": "What did Ada buy?", "category": 4, "evidence_ids": ["D2:1"] }],
    });
    let folder = Folder::with(&[("a", json!([locomo(), locomo()])), ("b", audited), ("c", corrections)]);
    let (dialogues, notes) = folder.read(&["a", "b", "c"], Some("1")).unwrap();
    let [published, audited] = &dialogues[..] else { panic!("{dialogues:?}") };
    assert_eq!((published.name.as_str(), audited.name.as_str()), ("1 (conv-1)", "locomo_1"));
    assert_eq!(evidence(published)[0], [2]);
    assert_eq!(evidence(audited), [[1]]);
    assert_eq!(audited.messages[2].text, "Ben: Bye.", "D10:1 comes after D2:3");
    assert_eq!(count(&published.notes, "questions with corrected evidence"), 1);
    assert_eq!(count(&notes, "corrections that fit no question"), 1);
}

#[test]
fn longmemeval_is_read_by_marked_messages() {
    let question = |answers: &[&str]| {
        json!({
            "question_id": "q1", "question_type": "temporal-reasoning", "question": "When is the exam?", "answer": "May",
            "haystack_dates": ["2023/05/20 (Sat) 02:21", "soon"], "haystack_session_ids": ["s1", "s2"],
            "answer_session_ids": answers,
            "haystack_sessions": [
                [{ "role": "user", "content": "Hello" }, { "role": "assistant", "content": "Hi" }],
                [{ "role": "user", "content": "My exam is in May", "has_answer": true }, { "role": "tool", "content": "?" }],
            ],
        })
    };
    let folder = Folder::with(&[("x.json", json!([question(&["s2"]), question(&["s1", "s9"])]))]);
    let (dialogues, _) = folder.read(&["x.json"], None).unwrap();
    assert_eq!(dialogues.len(), 2, "each question has sessions of its own");
    assert_eq!((dialogues[0].sessions(), evidence(&dialogues[0])), (2, vec![vec![2]]));
    assert_eq!(dialogues[0].messages[0].said_at, 1_684_549_260_000, "02:21 on 20 May 2023");
    assert_eq!(dialogues[0].questions[0].kind, "temporal-reasoning");
    assert_eq!((count(&dialogues[0].notes, BROKEN_MESSAGE), count(&dialogues[0].notes, BROKEN_TIME)), (1, 1));
    assert_eq!(count(&dialogues[1].notes, UNKNOWN_MESSAGE), 1, "there is no session s9");
}

fn chat(messages: &[&str]) -> Value {
    let message = |(id, text): (usize, &&str)| json!({ "role": if id.is_multiple_of(2) { "user" } else { "assistant" }, "id": id, "content": text });
    let messages: Vec<Value> = messages.iter().enumerate().map(message).collect();
    json!([{ "batch_number": 1, "time_anchor": "March-15-2024", "turns": [messages] }])
}

#[test]
fn beam_is_read_from_a_folder_and_its_shorter_chat_counts() {
    let questions = json!({
        "knowledge_update": [
            { "question": "How many berths?", "rubric": [], "source_chat_ids": { "first": [0], "second": ["chat_id: 2"] } },
            { "question": "And now?", "rubric": [], "source_chat_ids": [7] },
        ],
        "abstention": [{ "question": "Who?", "rubric": [] }],
    });
    let short = chat(&["Five berths. ->-> 1,3", "Noted.", "Now six berths -> good"]);
    let folder = Folder::with(&[
        ("chats/2/questions/q.json", questions),
        ("chats/2/a.json", chat(&["Five berths.", "Noted.", "Now six.", "Noted.", "Later."])),
        ("chats/2/b.json", short),
        ("chats/2/topic.json", json!({ "topic": "harbour" })),
    ]);
    let (dialogues, notes) = folder.read(&["chats"], None).unwrap();
    let [dialogue] = &dialogues[..] else { panic!("{dialogues:?}") };
    assert_eq!((dialogue.name.as_str(), dialogue.messages.len()), ("2", 3));
    assert_eq!(dialogue.messages[0].text, "Five berths.");
    assert_eq!(dialogue.messages[2].text, "Now six berths -> good");
    assert_eq!(dialogue.messages[0].said_at, 1_710_460_800_000, "15 March 2024");
    assert_eq!(evidence(dialogue), [[0, 2]]);
    assert_eq!(dialogue.questions[0].kind, "knowledge update");
    for (what, expected) in [(WITHOUT_EVIDENCE, 1), (NOTHING_LEFT, 1), (UNKNOWN_MESSAGE, 1)] {
        assert_eq!(count(&dialogue.notes, what), expected, "{what}");
    }
    assert_eq!(count(&notes, "files of a folder in no known format"), 1);
    assert_eq!(count(&notes, "longer chats beside the one that is asked about"), 1);
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_the_reason() {
    let folder = Folder::with(&[("object", json!({ "a": 1 })), ("list", json!([])), ("chat", chat(&["Hello", "Hi"]))]);
    fs::write(folder.path("words"), "These are words.").unwrap();
    for (name, part) in [
        ("object", "no known format"),
        ("list", "no known format"),
        ("words", "not JSON"),
        ("chat", "without its questions"),
    ] {
        let error = folder.read(&[name], None).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(name), "{error}");
    }
    let missing = read(&[Path::new("/nowhere/at/all").to_owned()], None).unwrap_err();
    assert!(matches!(missing, LabError::File(RecordingError::Read { .. })), "{missing}");
}

#[test]
fn turns_begin_with_the_user_and_neighbours_stay_in_the_session() {
    let folder = Folder::with(&[("a", json!([locomo()]))]);
    let (dialogues, _) = folder.read(&["a"], None).unwrap();
    let turns: Vec<_> = dialogues[0].turns().into_iter().map(|turn| (turn.number, turn.messages)).collect();
    assert_eq!(turns, [(1, 0..2), (2, 2..3), (1, 3..4)]);
    let near = |at| dialogues[0].with_neighbours(&BTreeSet::from([at]), 1).into_iter().collect::<Vec<_>>();
    assert_eq!((near(0), near(2), near(3)), (vec![0, 1], vec![1, 2], vec![3]));
}

#[test]
fn dialogues_are_chosen_by_number() {
    let only: Only = "0, 5-9".parse().unwrap();
    let taken: Vec<usize> = (0..12).filter(|number| only.takes(*number)).collect();
    assert_eq!(taken, [0, 5, 6, 7, 8, 9]);
    for wrong in ["", "a", "9-5", "1-", "-1", "1,,2"] {
        assert!(wrong.parse::<Only>().is_err(), "{wrong}");
    }
}
