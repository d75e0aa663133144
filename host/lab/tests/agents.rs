//! Sessions that other agents wrote themselves: read whole, in place, with nothing twice.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use hermes_conversation::{Draft, Role};
use hermes_lab::replay::{self, Everything};
use hermes_lab::{Recording, Terms};
use hermes_recordings::Format;
use hermes_test_data::recorded;

/// Checks what holds for every recording, and returns it.
fn read(file: &str, format: Format) -> Option<Vec<Recording>> {
    let recordings = Recording::read(&recorded(&format!("data/agents/{file}"))?).unwrap();
    for recording in &recordings {
        assert_eq!(recording.format, format, "{file}");
        let calls: Vec<&str> =
            recording.drafts.iter().flat_map(|draft| &draft.tool_calls).map(|call| call.id.as_str()).collect();
        let results: Vec<&str> = recording.drafts.iter().filter_map(|draft| draft.tool_call_id.as_deref()).collect();
        let unique: HashSet<&str> = calls.iter().copied().collect();
        assert_eq!((unique.len(), results.len()), (calls.len(), calls.len()), "{file}: each call has one result");
        let figures = replay::replay(recording, &mut Everything::default(), &Terms::STANDARD).figures.unwrap();
        assert_eq!(figures.invalid_requests, 0, "{file}: {:?}", figures.first_invalid);
        let lost: Vec<_> = recording.notes.iter().filter(|note| note.what.starts_with("results of no call")).collect();
        assert!(lost.is_empty(), "{file}: {lost:?}");
    }
    Some(recordings)
}

/// The numbers of messages of the user, replies, calls, and calls that were never answered.
fn counts(recording: &Recording) -> (usize, usize, usize, u64) {
    let of = |test: &dyn Fn(&&Draft) -> bool| recording.drafts.iter().filter(test).count();
    let calls = recording.drafts.iter().map(|draft| draft.tool_calls.len()).sum();
    let open = recording.notes.iter().find(|note| note.what.starts_with("tool calls that were never"));
    (of(&|draft| draft.role == Role::User), recording.requests(), calls, open.map_or(0, |note| note.count))
}

#[test]
fn sessions_of_claude_code_are_read() {
    let session = "claude-code/projects/-home-user-project/86bd7f18-a280-4961-93a1-528583acd9b6";
    let Some(main) = read(&format!("{session}.jsonl"), Format::ClaudeCode) else { return };
    // Eleven prompts and a notification; both calls of each pair of parallel ones.
    assert_eq!(counts(&main[0]), (12, 21, 13, 0), "{:?}", main[0].notes);
    let subagent = read(&format!("{session}/subagents/agent-ab8bf91f40024f5ae.jsonl"), Format::ClaudeCode).unwrap();
    assert_eq!(counts(&subagent[0]), (1, 2, 2, 0), "{:?}", subagent[0].notes);
}

#[test]
fn sessions_of_codex_are_read() {
    let of = |name: &str| read(&format!("codex/sessions/2026/11/28/rollout-2026-11-28T14-{name}.jsonl"), Format::Codex);
    let Some(main) = of("50-56-01a222a3-4bba-7db1-a663-aff25ef61f27") else { return };
    assert_eq!(counts(&main[0]), (4, 8, 6, 0), "{:?}", main[0].notes);
    let subagent = of("51-14-01a222a3-8f06-75c3-9bc4-6aaf93fa17a2").unwrap();
    assert_eq!(counts(&subagent[0]), (4, 5, 4, 0), "{:?}", subagent[0].notes);
}

#[test]
fn the_database_of_opencode_is_read() {
    let Some(recordings) = read("opencode/opencode.db", Format::OpenCode) else { return };
    assert_eq!(recordings.len(), 2);
    assert_eq!(recordings[1].requests(), 2, "{:?}", recordings[1].notes);
    let (users, replies, calls, open) = counts(&recordings[0]);
    assert!(users >= 8 && replies >= 16 && calls >= 9 && open == 0, "{:?}", counts(&recordings[0]));
}

#[test]
fn sessions_of_gemini_cli_are_read() {
    let Some(main) = read("gemini-cli/3/chats/session-2026-11-28T14-59-c37237db.jsonl", Format::Gemini) else { return };
    assert_eq!(counts(&main[0]), (1, 2, 1, 0), "{:?}", main[0].notes);
    let plain = read("gemini-cli/3/chats/session-2026-11-28T14-58-af0e1e8f.jsonl", Format::Gemini).unwrap();
    assert_eq!(counts(&plain[0]), (1, 1, 0, 0), "{:?}", plain[0].notes);
}

#[test]
fn sessions_of_qwen_code_are_read() {
    let folder = "qwen-code/projects/-home-user-project";
    let id = "317d00ef-33bd-440b-8a78-97dfc004319e";
    let Some(main) = read(&format!("{folder}/chats/{id}.jsonl"), Format::Qwen) else { return };
    assert_eq!(counts(&main[0]), (9, 16, 10, 0), "{:?}", main[0].notes);
    assert!(main[0].drafts.iter().all(|draft| !draft.content.contains("<system-reminder>")));
}

#[test]
fn sessions_of_pi_are_read() {
    let file = "pi/sessions/--home-user-project--/2026-11-28T14-59-40-360Z_01a222ab-48c4-75dc-92b8-8790813df680.jsonl";
    let Some(recordings) = read(file, Format::Pi) else { return };
    assert_eq!((recordings[0].drafts.len(), recordings[0].requests()), (49, 20), "{:?}", recordings[0].notes);
}

#[test]
fn sessions_of_continue_and_cline_are_read() {
    let Some(continued) = read("continue-cn/1afe3221-509e-46e7-a95f-41abd3c8958f.json", Format::Continue) else {
        return;
    };
    assert_eq!(counts(&continued[0]), (2, 4, 4, 0), "{:?}", continued[0].notes);
    let cline = read("cline/sessions/1795880472255_00p41/1795880472255_00p41.messages.json", Format::Messages).unwrap();
    assert_eq!(counts(&cline[0]), (1, 2, 2, 0), "{:?}", cline[0].notes);
    assert_eq!(cline[0].drafts[0].content, "[[two]] please look");
}
