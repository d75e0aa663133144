#![allow(clippy::unwrap_used)]

use std::io::Write;

use hermes_conversation::{Conversation, MessageId, View, render, validity};
use proptest::prelude::*;

use super::*;

mod agents;

fn parse(text: &str) -> Result<Vec<Recording>, Fault> {
    Recording::parse("recording", &records::parse(text.as_bytes())?)
}

fn one(text: &str) -> Recording {
    let mut read = parse(text).unwrap();
    assert_eq!(read.len(), 1);
    read.remove(0)
}

fn notes(recording: &Recording) -> Vec<(&str, u64)> {
    recording.notes.iter().map(|note| (note.what.split([',', ':']).next().unwrap(), note.count)).collect()
}

/// Whether a provider would accept the whole conversation.
fn is_valid(recording: &Recording) -> bool {
    let messages = recording.drafts.iter().cloned().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id)));
    validity::check(&render::render(&Conversation::new(messages), &View::default())).is_ok()
}

const LINES: &str = r#"{"role":"system","content":"be brief"}
{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:"}}],"timestamp":"2026-01-01T10:00:00Z"}
{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"}},{"id":"b","type":"function","function":{"name":"read","arguments":{"path":"y"}}}]}

{"role":"tool","tool_call_id":"b","content":"why"}
{"role":"tool","tool_call_id":"a","content":"ex"}
{"role":"assistant","content":""}
"#;

#[test]
fn message_lines_are_read_with_parallel_calls_reasoning_and_empty_texts() {
    let recording = one(LINES);
    assert_eq!((recording.format, recording.images, recording.requests()), (Format::OpenAi, 1, 2));
    assert_eq!(notes(&recording), [("system messages", 1)]);
    let [user, caller, second, first, last] = recording.drafts.as_slice() else { panic!("{:?}", recording.drafts) };
    assert_eq!(user.content, "look\n[image]");
    assert_eq!((caller.content.as_str(), caller.reasoning.as_deref()), ("", Some("hm")));
    assert_eq!(caller.tool_calls[1].arguments, r#"{"path":"y"}"#);
    assert_eq!((second.tool_call_id.as_deref(), second.tool_name.as_deref()), (Some("b"), Some("read")));
    assert_eq!((first.content.as_str(), last.content.as_str()), ("ex", ""));
    // Messages without a timestamp follow at a fixed interval.
    assert_eq!(user.created_at, 1_767_261_600_000);
    assert_eq!(last.created_at - caller.created_at, 3 * stamp::STEP);
    assert!(is_valid(&recording));
}

#[test]
fn whole_conversations_are_read_per_line_in_an_array_and_over_many_lines() {
    let conversation = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#;
    let many: serde_json::Value = serde_json::from_str(conversation).unwrap();
    for (text, names) in [
        (conversation.to_owned(), vec!["recording"]),
        (format!("{conversation}\n{conversation}\n"), vec!["recording-1", "recording-2"]),
        (format!("[{conversation},\n {conversation}]"), vec!["recording-1", "recording-2"]),
        (serde_json::to_string_pretty(&many).unwrap(), vec!["recording"]),
        (format!("\u{feff}{}", many["messages"]), vec!["recording"]),
    ] {
        let read = parse(&text).unwrap();
        assert_eq!(read.iter().map(|recording| recording.name.as_str()).collect::<Vec<_>>(), names, "{text}");
        assert!(read.iter().all(|recording| recording.drafts.len() == 2));
    }
}

#[test]
fn an_error_names_its_line() {
    let good = r#"{"role":"user","content":"a"}"#;
    for (text, line, why) in [
        (String::new(), 1, "empty"),
        (format!("{good}\n{{\"role\":\"user\",\"cont\n{good}"), 2, "cut off"),
        (format!("{{\"role\":\"us\n{good}\n"), 1, "cut off"),
        (format!("{good}\n\n[1,2]\n"), 3, "not a JSON object"),
        (format!("{good}\nnonsense"), 2, "not JSON"),
        (format!("{good}\n{{\"content\":\"a\"}}"), 2, "no `role`"),
        (format!("{good}\n{{\"role\":\"oracle\",\"content\":\"a\"}}"), 2, "`oracle`"),
        (format!("{good}\n{{\"role\":\"user\",\"content\":7}}"), 2, "neither a text"),
        (format!("{good}\n{{\"role\":\"user\",\"tool_calls\":[{{\"name\":\"x\"}}]}}"), 2, "makes calls"),
        (format!("{good}\n{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"x\"}}]}}"), 2, "names no function"),
        (format!("[\n{good},\n{{\"content\":\"a\"}}\n]"), 3, "no `role`"),
        (format!("[\n{good},\n"), 3, "cut off"),
        ("{\"hello\":1}".to_owned(), 1, "no known format"),
        ("\"text\"".to_owned(), 1, "not a JSON object"),
        ("{\"messages\":[{\"role\":\"user\"},{}]}".to_owned(), 1, "message 2: it has no `role`"),
    ] {
        let fault = parse(&text).unwrap_err();
        assert!(fault.line == line && fault.why.contains(why), "{fault:?} for {text}");
    }
    let fault = records::parse(b"{\"role\":\"user\"}\n{\"role\":\"\xff\"}").unwrap_err();
    assert_eq!((fault.line, fault.why.contains("UTF-8")), (2, true));
}

#[test]
fn a_line_of_many_megabytes_is_read() {
    let long = "x".repeat(20_000_000);
    let text = format!("{{\"role\":\"user\",\"content\":\"{long}\"}}\n{{\"role\":\"assistant\",\"content\":\"b\"}}");
    assert_eq!(one(&text).drafts[0].content.len(), 20_000_000);
}

#[test]
fn endless_nesting_is_an_error_and_no_crash() {
    let deep = format!("{}{}", "{\"a\":[".repeat(100_000), "]}".repeat(100_000));
    assert!(parse(&deep).is_err());
    assert!(parse(&"[".repeat(1_000_000)).is_err());
}

#[test]
fn unmatched_calls_and_results_are_repaired_and_noted() {
    let recording = one(r#"{"role":"tool","tool_call_id":"z","content":"of nothing"}
{"role":"user","content":"a","timestamp":1767261600}
{"role":"assistant","content":"b","timestamp":1767261500000,"tool_calls":[{"id":"c","function":{"name":"f"}},{"id":"c","function":{"name":"g"}},{"id":"d","function":{"name":"h"}}]}
{"role":"tool","tool_call_id":"c","content":"first"}
{"role":"tool","tool_call_id":"c","content":"second"}
{"role":"user","content":"stop"}
{"role":"tool","tool_call_id":"d","content":"too late"}
{"role":"user","content":"go on"}
{"role":"assistant","content":"e"}"#);
    assert_eq!(
        notes(&recording),
        [
            ("tool calls that were never answered", 1),
            ("results of no call", 2),
            ("calls of one message with the same id", 1),
            ("times before that of the message before", 1),
        ]
    );
    let contents: Vec<&str> = recording.drafts.iter().map(|draft| draft.content.as_str()).collect();
    assert_eq!(contents, ["a", "b", "first", "second", "interrupted; it may have run", "stop", "go on", "e"]);
    assert_eq!(recording.drafts[3].tool_name.as_deref(), Some("g"));
    assert_eq!(recording.requests(), 2);
    assert!(is_valid(&recording));
}

#[test]
fn results_without_ids_answer_in_order() {
    let recording = one(r#"{"role":"user","content":"a"}
{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]}
{"role":"tool","content":"1"}
{"role":"tool","content":"2"}
{"role":"assistant","content":"done"}"#);
    assert_eq!(recording.drafts[3].tool_name.as_deref(), Some("g"));
    assert!(is_valid(&recording) && recording.notes.is_empty());
}

#[test]
fn a_pi_tree_is_read_along_its_newest_branch() {
    let recording = one(r#"{"type":"session","id":"s","version":3,"timestamp":"2026-01-01T10:00:00Z","cwd":"/x"}
{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-01T10:00:01Z","message":{"role":"user","content":"a"}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-01T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"left"}]}}
{"type":"message","id":"3","parentId":"1","timestamp":"2026-01-01T10:00:03Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}]}}
{"type":"compaction","id":"4","parentId":"3","timestamp":"2026-01-01T10:00:04Z","summary":"x"}
{"type":"message","id":"5","parentId":"4","timestamp":"2026-01-01T10:00:05Z","message":{"role":"bashExecution","command":"ls","output":"a b"}}"#);
    assert_eq!(recording.format, Format::Pi);
    let contents: Vec<&str> = recording.drafts.iter().map(|draft| draft.content.as_str()).collect();
    assert_eq!(contents, ["a", "", "interrupted; it may have run", "Ran `ls`\n```\na b\n```"]);
    assert_eq!(recording.drafts[1].reasoning.as_deref(), Some("hm"));
    assert_eq!(
        notes(&recording),
        [
            ("records of branches that were left", 1),
            ("compactions of the recorded agent", 1),
            ("tool calls that were never answered", 1)
        ]
    );
}

const EXPORT: &str = r#"{"type":"header","format":"hermes-sessions","version":1,"exported_at":1}
{"type":"session","id":"one","parent":null}
{"type":"message","id":1,"role":"user","content":"a","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"said","created_at":10}
{"type":"message","id":2,"role":"assistant","content":"b","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"said","created_at":20}
{"type":"message","id":3,"role":"user","content":"taken back","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"said","created_at":30}
{"type":"message","id":4,"role":"assistant","content":"too","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"host","created_at":40}
{"type":"rewind","number":1,"rewound_at":45,"messages":[3,4]}
{"type":"session","id":"two","parent":{"id":"one","kind":"branch","through":4,"view":0,"rewind":0}}
{"type":"message","id":5,"role":"user","content":"on","sent":"on <memory-context>m</memory-context>","reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"said","created_at":50}
{"type":"message","id":6,"role":"assistant","content":"c","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":null,"tool_name":null,"origin":"said","created_at":60}
{"type":"end","sessions":2,"messages":6}
"#;

#[test]
fn an_export_is_read_with_its_branches_and_without_rewound_messages() {
    let read = parse(EXPORT).unwrap();
    let contents = |at: usize| read[at].drafts.iter().map(|draft| draft.content.as_str()).collect::<Vec<_>>();
    assert_eq!(contents(0), ["a", "b"]);
    // The branch began before the rewind.
    assert_eq!(contents(1), ["a", "b", "taken back", "too", "on", "c"]);
    assert_eq!(read[1].drafts[4].text_sent(), "on <memory-context>m</memory-context>");
    // Messages of the host are not replies of the model.
    assert_eq!((read[0].requests(), read[1].requests()), (1, 2));
    assert_eq!(notes(&read[0]), [("messages that the user took back", 2)]);
}

#[test]
fn an_export_whose_messages_have_parts_is_read() {
    let result = r#"{"type":"message","id":7,"role":"tool","content":"no such file","sent":null,"reasoning":null,"tool_calls":[],"tool_call_id":"x","tool_name":"f","origin":"said","created_at":70,"parts":[{"kind":"tool_result","call_id":"x","tool_name":"f","parts":[{"kind":"text","text":"no such file"}],"failed":true}]}"#;
    let call = r#""content":"c","sent":null,"reasoning":null,"tool_calls":[{"id":"x","name":"f","arguments":"{}"}]"#;
    let export = EXPORT.replacen("\"version\":1", "\"version\":2", 1);
    let export = export.replacen(r#""content":"c","sent":null,"reasoning":null,"tool_calls":[]"#, call, 1).replacen(
        "{\"type\":\"end\"",
        &format!("{result}\n{{\"type\":\"end\""),
        1,
    );
    let read = parse(&export).unwrap();
    assert_eq!(read[1].drafts.last().unwrap().content, "no such file");
}

#[test]
fn an_incomplete_export_gives_a_reason() {
    for (from, to, line, why) in [
        ("\"version\":1", "\"version\":3", 1, "versions 1 to 2"),
        ("{\"id\":\"one\",\"kind\"", "{\"id\":\"nought\",\"kind\"", 1, "with its parents"),
        ("{\"id\":\"one\",\"kind\"", "{\"id\":\"two\",\"kind\"", 1, "from itself"),
        ("\"role\":\"user\",\"content\":\"on\"", "\"role\":\"user\",\"content\":1", 9, "invalid type"),
        ("{\"type\":\"rewind\"", "{\"type\":\"remark\"", 7, "`remark`"),
    ] {
        let fault = parse(&EXPORT.replacen(from, to, 1)).unwrap_err();
        assert!(fault.line == line && fault.why.contains(why), "{fault:?}");
    }
}

#[test]
fn an_error_names_the_file() {
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    writeln!(file, "{{\"role\":\"user\",\"content\":\"a\"}}").unwrap();
    let name = file.path().file_name().unwrap().to_string_lossy().into_owned();
    let error = Recording::read(file.path()).unwrap_err().to_string();
    assert!(error.contains(&name) && error.contains("nothing to replay"), "{error}");
    writeln!(file, "{{").unwrap();
    let error = Recording::read(file.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("{name}, line 2: ")), "{error}");
    assert!(matches!(Recording::read(std::path::Path::new("no/such/file")), Err(RecordingError::Read { .. })));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,400}") {
        let _ = parse(&text);
    }

    /// Messages of any role in any order; calls and results need not match.
    #[test]
    fn any_recording_becomes_a_valid_conversation(
        kinds in prop::collection::vec((0..4_usize, 0..4_u64, 0..3_usize, 0..5_u64), 1..40)
    ) {
        let lines: Vec<String> = kinds.iter().map(|(kind, id, calls, at)| {
            let time = at * 1_000;
            match kind {
                0 => format!("{{\"role\":\"user\",\"content\":\"u\",\"timestamp\":{time}}}"),
                1 => format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"r\"}}"),
                2 => "{\"role\":\"tool\",\"content\":\"r\"}".to_owned(),
                _ => {
                    let call = |at| format!("{{\"id\":\"{}\",\"function\":{{\"name\":\"f\"}}}}", (id + at) % 3);
                    let calls: Vec<String> = (0..*calls as u64).map(call).collect();
                    format!("{{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[{}]}}", calls.join(","))
                }
            }
        }).collect();
        for recording in parse(&lines.join("\n")).unwrap() {
            prop_assert!(is_valid(&recording), "{lines:?}");
            prop_assert!(recording.drafts.is_sorted_by_key(|draft| draft.created_at));
        }
    }
}

#[test]
fn pictures_and_refusals_of_recordings_become_parts() {
    use hermes_conversation::Part;
    let gif = "R0lGODlhAQABAA==";
    let lines = format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"look"}},{{"type":"image_url","image_url":{{"url":"data:image/gif;base64,{gif}"}}}}]}}
{{"role":"assistant","content":[{{"type":"refusal","refusal":"No."}}]}}
{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"https://example.org/a.png"}}}}]}}
{{"role":"assistant","content":"A boat."}}
"#
    );
    let recording = one(&lines);
    let [first, refusal, second, _] = recording.drafts.as_slice() else { panic!("{:?}", recording.drafts) };
    assert_eq!((recording.images, first.content.as_str(), first.images(), second.images()), (0, "look", 1, 1));
    assert!(first.media().all(|media| media.bytes().is_none() && media.media_type == "image/gif"));
    assert_eq!((refusal.content.as_str(), refusal.parts.len()), ("No.", 1));
    assert!(matches!(refusal.parts[0], Part::Refusal { .. }) && is_valid(&recording));
}
