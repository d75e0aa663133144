//! Sessions of other agents, in the smallest form that has each of their oddities.

use super::*;

/// Role, text, calls and answered call of each message.
fn outline(recording: &Recording) -> Vec<String> {
    let each = recording.drafts.iter().map(|draft| {
        let calls: Vec<&str> = draft.tool_calls.iter().map(|call| call.id.as_str()).collect();
        let of = draft.tool_call_id.as_deref().unwrap_or_default();
        format!("{} {} {}{of}", draft.role.as_str(), draft.content, calls.join("+")).trim().to_owned()
    });
    each.collect()
}

#[test]
fn replies_of_claude_code_are_put_together_and_keep_both_of_two_parallel_calls() {
    let recording = one(r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"look"}
{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":"look"}}
{"type":"attachment","uuid":"2","parentUuid":"1","sessionId":"s","attachment":{"type":"date"}}
{"type":"assistant","uuid":"x","parentUuid":"2","sessionId":"s","timestamp":"2026-01-01T10:00:01Z","message":{"id":"m0","role":"assistant","content":[{"type":"text","text":"given up"}]}}
{"type":"assistant","uuid":"3","parentUuid":"2","sessionId":"s","timestamp":"2026-01-01T10:00:02Z","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"s","timestamp":"2026-01-01T10:00:02Z","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I look."}]}}
{"type":"assistant","uuid":"5","parentUuid":"4","sessionId":"s","timestamp":"2026-01-01T10:00:03Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}]}}
{"type":"assistant","uuid":"6","parentUuid":"5","sessionId":"s","timestamp":"2026-01-01T10:00:03Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"b","name":"Read","input":{}}]}}
{"type":"user","uuid":"7","parentUuid":"6","sessionId":"s","timestamp":"2026-01-01T10:00:04Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"of b"}]}]}}
{"type":"user","uuid":"8","parentUuid":"5","sessionId":"s","timestamp":"2026-01-01T10:00:05Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"of a","is_error":true}]}}
{"type":"api-request-blob","sessionId":"s","message":{"role":"user","content":"look"}}
{"type":"assistant","uuid":"9","parentUuid":"8","sessionId":"s","timestamp":"2026-01-01T10:00:06Z","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Seen."}]}}
{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"9","sessionId":"s"}
{"type":"user","uuid":"d","parentUuid":"c","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"A summary."}}
{"type":"user","uuid":"e","parentUuid":"d","sessionId":"s","message":{"role":"user","content":"<local-command-stdout>Compacted</local-command-stdout>"}}
{"type":"user","uuid":"f","parentUuid":"e","sessionId":"s","timestamp":"2026-01-01T10:00:07Z","message":{"role":"user","content":"more"}}
{"type":"assistant","uuid":"g","parentUuid":"f","sessionId":"s","timestamp":"2026-01-01T10:00:08Z","message":{"id":"m3","role":"assistant","content":[{"type":"text","text":"Done."}]}}"#);
    assert_eq!(recording.format, Format::ClaudeCode);
    assert_eq!(
        outline(&recording),
        [
            "user look",
            "assistant I look. a+b",
            "tool of b b",
            "tool of a a",
            "assistant Seen.",
            "user more",
            "assistant Done."
        ]
    );
    assert_eq!(recording.drafts[1].reasoning.as_deref(), Some("hm"));
    let notes = notes(&recording);
    assert!(notes.contains(&("records of branches that were left", 1)), "{notes:?}");
    assert!(notes.contains(&("messages that the recorded agent wrote itself", 2)), "{notes:?}");
    assert!(is_valid(&recording));
}

#[test]
fn items_of_codex_are_read_once_and_without_what_it_added() {
    let recording = one(r#"{"timestamp":"2026-01-01T10:00:00Z","type":"session_meta","payload":{"id":"s"}}
{"timestamp":"2026-01-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
{"timestamp":"2026-01-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}
{"timestamp":"2026-01-01T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<turn_aborted> is a tag"}],"internal_chat_message_metadata_passthrough":{"content_item_kinds":["user.text"]}}}
{"timestamp":"2026-01-01T10:00:01Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage"}}}
{"timestamp":"2026-01-01T10:00:02Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":null}}
{"timestamp":"2026-01-01T10:00:02Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}}
{"timestamp":"2026-01-01T10:00:02Z","type":"response_item","payload":{"type":"function_call","id":"fc","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"a"}}
{"timestamp":"2026-01-01T10:00:02Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"b"}}
{"timestamp":"2026-01-01T10:00:03Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"b","output":"of b"}}
{"timestamp":"2026-01-01T10:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"of a"}}
{"timestamp":"2026-01-01T10:00:04Z","type":"compacted","payload":{"message":"x","replacement_history":[]}}
{"timestamp":"2026-01-01T10:00:05Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#);
    assert_eq!(recording.format, Format::Codex);
    assert_eq!(
        outline(&recording),
        ["user <turn_aborted> is a tag", "assistant I look. a+b", "tool of b b", "tool of a a", "assistant Done."]
    );
    assert_eq!(recording.drafts[1].reasoning.as_deref(), Some("hm"));
    assert!(is_valid(&recording));
}

#[test]
fn a_resumed_session_of_gemini_cli_has_each_call_and_result_once() {
    let turn = r#"{"id":"m","timestamp":"2026-01-01T10:00:01Z","type":"gemini","content":"I look.","thoughts":[{"description":"hm"}],"toolCalls":[{"id":"a","name":"ls","args":{"x":1},"result":[{"functionResponse":{"id":"a","name":"ls","response":{"output":"of a"}}}]}]}"#;
    let result = r#"{"id":"r","timestamp":"2026-01-01T10:00:02Z","type":"user","content":[{"functionResponse":{"id":"a","name":"ls","response":{"output":"of a"}}}]}"#;
    let context = r#"{"id":"0","type":"user","content":[{"text":"<session_context>here"}]}"#;
    let user = r#"{"id":"u","timestamp":"2026-01-01T10:00:00Z","type":"user","content":[{"text":"look"}]}"#;
    let header = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T10:00:00Z","kind":"main"}"#;
    let resumed = r#"{"id":"m","timestamp":"2026-01-01T10:00:01Z","type":"gemini","content":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"id":"a","name":"ls","args":{"x":1}}}]}"#;
    let answered = result.replace("\"r\"", "\"r_response\"");
    let expected = ["user look", "assistant I look. a", "tool of a a"];
    for (text, name) in [
        (
            format!("{header}\n{{\"$set\":{{\"messages\":[{context}]}}}}\n{user}\n{turn}\n{turn}\n{result}"),
            "as written",
        ),
        (
            format!(
                "{header}\n{user}\n{turn}\n{result}\n{header}\n{{\"$set\":{{\"messages\":[{context},{user},{resumed},{answered},{result}]}}}}"
            ),
            "resumed",
        ),
    ] {
        let recording = one(&text);
        assert_eq!(
            (recording.format, outline(&recording)),
            (Format::Gemini, expected.map(str::to_owned).to_vec()),
            "{name}"
        );
        assert_eq!(recording.drafts[1].reasoning.as_deref(), Some("hm"), "{name}");
        assert!(is_valid(&recording));
    }
}

#[test]
fn parts_of_qwen_code_are_read_without_reminders() {
    let recording = one(
        r#"{"uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T10:00:00Z","type":"user","message":{"role":"user","parts":[{"text":"<system-reminder>x"},{"text":"look"}]}}
{"uuid":"2","parentUuid":"1","sessionId":"s","type":"system","subtype":"ui_telemetry"}
{"uuid":"3","parentUuid":"2","sessionId":"s","timestamp":"2026-01-01T10:00:01Z","type":"assistant","message":{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"a","name":"ls","args":{}}},{"functionCall":{"id":"b","name":"ls","args":{}}}]}}
{"uuid":"4","parentUuid":"3","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"a","name":"ls","response":{"error":"of a"}}}]}}
{"uuid":"5","parentUuid":"4","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"b","name":"ls","response":{"output":"of b"}}}]}}
{"uuid":"6","parentUuid":"5","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"Done."}]}}"#,
    );
    assert_eq!(recording.format, Format::Qwen);
    assert_eq!(outline(&recording), ["user look", "assistant  a+b", "tool of a a", "tool of b b", "assistant Done."]);
    assert!(is_valid(&recording));
}

#[test]
fn results_of_continue_stand_beside_their_calls() {
    let recording = one(r#"{
 "sessionId": "s", "title": "t", "workspaceDirectory": "/x", "history": [
  {"message": {"role": "user", "content": [{"type": "text", "text": "look"}]}, "contextItems": []},
  {"message": {"role": "assistant", "content": "", "toolCalls": [{"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}, {"id": "b", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
   "toolCallStates": [{"toolCallId": "a", "status": "done", "output": [{"content": "of a", "name": "x"}]}, {"toolCallId": "b", "status": "canceled"}]},
  {"message": {"role": "assistant", "content": "Done."}}
 ]}"#);
    assert_eq!(recording.format, Format::Continue);
    assert_eq!(
        outline(&recording),
        ["user look", "assistant  a+b", "tool of a a", "tool interrupted; it may have run b", "assistant Done."]
    );
    assert!(is_valid(&recording));
}

#[test]
fn blocks_of_the_messages_api_keep_their_calls_and_results() {
    let recording = one(r#"{"model":"m","max_tokens":5,"system":"be brief","messages":[
{"role":"user","content":[{"type":"text","text":"<user_input mode=\"act\">look</user_input>"}],"ts":1767261600000},
{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}},{"type":"tool_use","id":"b","name":"g","input":{}}]},
{"role":"system","content":[]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"query":"ls","result":"of a","success":true}]},{"type":"tool_result","tool_use_id":"b","content":"of b"},{"type":"text","text":"and?"}]},
{"role":"assistant","content":"Done."}]}"#);
    assert_eq!(recording.format, Format::Messages);
    assert_eq!(
        outline(&recording)[1..],
        ["assistant  a+b", "tool of a a", "tool of b b", "user and?", "assistant Done."]
    );
    assert_eq!(recording.drafts[1].tool_calls[0].arguments, r#"{"x":1}"#);
    assert!(is_valid(&recording) && notes(&recording).iter().all(|(what, _)| !what.contains("neither")));
}

#[test]
fn a_body_of_the_responses_api_is_read() {
    let recording = one(
        r#"{"model":"m","instructions":"be brief","input":[{"role":"user","content":"look"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"output_text","text":"of a"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}"#,
    );
    assert_eq!(recording.format, Format::Responses);
    assert_eq!(outline(&recording), ["user look", "assistant  a", "tool of a a", "assistant Done."]);
    assert!(is_valid(&recording));
}

#[test]
fn the_system_message_of_pi_is_left_out_and_counted() {
    let recording = one(r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T10:00:00Z","cwd":"/x"}
{"type":"message","id":"1","parentId":null,"message":{"role":"system","content":"","sections":{"preamble":"x"}}}
{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"look"}}
{"type":"message","id":"3","parentId":"2","message":{"role":"assistant","content":[{"type":"toolCall","id":"a|fc","name":"f","arguments":{}}]}}
{"type":"message","id":"4","parentId":"3","message":{"role":"toolResult","toolCallId":"a|fc","toolName":"f","content":[{"type":"text","text":"of a"}]}}"#);
    assert_eq!(outline(&recording), ["user look", "assistant  a|fc", "tool of a a|fc"]);
    assert_eq!(notes(&recording), [("system messages", 1)]);
}

#[test]
fn the_database_of_opencode_is_read_without_a_trace_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("opencode.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute_batch(
            r#"PRAGMA journal_mode = wal; CREATE TABLE session (id TEXT, time_created INTEGER); CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT, message_id TEXT, data TEXT); INSERT INTO session VALUES ('s', 1);
INSERT INTO message VALUES ('m1', 's', 10, '{"role":"user","time":{"created":1767261600000}}'), ('m2', 's', 20, '{"role":"assistant","time":{"created":1767261601000}}'),
 ('m3', 's', 30, '{"role":"user"}'), ('m4', 's', 40, '{"role":"assistant","summary":true}'), ('m5', 's', 50, '{"role":"assistant"}');
INSERT INTO part VALUES ('p1', 'm1', '{"type":"text","text":"look"}'), ('p2', 'm2', '{"type":"step-start"}'), ('p3', 'm2', '{"type":"reasoning","text":"hm"}'),
 ('p4', 'm2', '{"type":"tool","tool":"bash","callID":"a","state":{"status":"completed","input":{"command":"ls"},"output":"of a"}}'),
 ('p5', 'm2', '{"type":"tool","tool":"read","callID":"b","state":{"status":"error","input":{},"error":"of b"}}'),
 ('p6', 'm3', '{"type":"compaction","auto":true}'), ('p7', 'm4', '{"type":"text","text":"A summary."}'), ('p8', 'm5', '{"type":"text","text":"Done."}')"#,
        )
        .unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    // The newest rows are in the log of a program that still has it open.
    let recording = Recording::read(&file).unwrap().remove(0);
    assert_eq!(names(), before);
    assert_eq!((recording.format, recording.name.as_str()), (Format::OpenCode, "s"));
    assert_eq!(outline(&recording), ["user look", "assistant  a+b", "tool of a a", "tool of b b", "assistant Done."]);
    assert!(is_valid(&recording));

    drop(database);
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    let error = Recording::read(&other).unwrap_err().to_string();
    assert!(error.contains("not that of opencode"), "{error}");
}

#[test]
fn files_and_folders_that_are_no_recording_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    for (name, text, words) in [
        ("events.jsonl", "{\"type\":\"session.start\",\"data\":{},\"id\":\"1\"}", "a session of Copilot CLI"),
        (".aider.chat.history.md", "# aider chat", "the history of aider"),
        ("agent.meta.json", "{\"agentType\":\"x\"}", "describes a subagent"),
        ("one.json", "{\n\"session_id\":\"1\",\n\"messages_path\":\"x\"}", "in the file beside it"),
    ] {
        let path = write(name, text);
        let error = Recording::read(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(Recording::recognised(&path).unwrap().contains(words));
    }
    let session = write("sessions/2026/rollout.jsonl", "{}");
    let Err(RecordingError::Folder { session: Some(found), .. }) = Recording::read(&folder.path().join("sessions"))
    else {
        panic!("a folder was read")
    };
    assert_eq!(found, session);
    assert_eq!(Recording::recognised(&write("own.jsonl", super::EXPORT)), None);
}

proptest! {
    /// Records of any agent in any order become a valid conversation, or are refused.
    #[test]
    fn any_records_of_other_agents_become_a_valid_conversation(
        agent in 0..4_usize,
        kinds in prop::collection::vec((0..5_usize, 0..4_u64, 0..4_u64), 1..30)
    ) {
        let lines: Vec<String> = kinds.iter().enumerate().map(|(at, (kind, id, parent))| {
            let at = at + 1;
            let parent = if *parent == 0 { "null".to_owned() } else { format!("\"{}\"", at.saturating_sub(*parent as usize)) };
            let block = match kind {
                0 => r#"{"type":"text","text":"t"}"#.to_owned(),
                1 => format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#),
                2 => format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}"#),
                3 => r#"{"type":"thinking","thinking":"h"}"#.to_owned(),
                _ => "{}".to_owned(),
            };
            let part = match kind {
                1 => format!(r#"{{"functionCall":{{"id":"{id}","name":"f","args":{{}}}}}}"#),
                2 => format!(r#"{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"r"}}}}}}"#),
                _ => r#"{"text":"t"}"#.to_owned(),
            };
            let role = if kind % 2 == 1 { "assistant" } else { "user" };
            match agent {
                0 => format!(r#"{{"type":"{role}","uuid":"{at}","parentUuid":{parent},"sessionId":"s","message":{{"id":"m{id}","role":"{role}","content":[{block}]}}}}"#),
                1 => format!(r#"{{"uuid":"{at}","parentUuid":{parent},"sessionId":"s","type":"{role}","message":{{"role":"{role}","parts":[{part}]}}}}"#),
                2 => format!(r#"{{"sessionId":"s","projectHash":"h","id":"{id}","type":"{}","content":[{part}]}}"#, if kind % 2 == 1 { "gemini" } else { "user" }),
                _ => match kind {
                    1 => format!(r#"{{"timestamp":"2026-01-01T10:00:00Z","type":"response_item","payload":{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}}}"#),
                    2 => format!(r#"{{"timestamp":"2026-01-01T10:00:00Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"{id}","output":"r"}}}}"#),
                    _ => format!(r#"{{"timestamp":"2026-01-01T10:00:00Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":"t"}}}}"#),
                },
            }
        }).collect();
        for recording in parse(&lines.join("\n")).unwrap() {
            prop_assert!(is_valid(&recording), "{lines:?} {:?}", recording.drafts);
        }
    }
}
