//! Reads sessions of Continue: one document, which has the result of each call beside the call.

use serde_json::Value;

use super::blocks::{Said, Scribe, contents};
use super::records::Record;
use super::{Format, Recording};

pub(super) fn continued(name: &str, record: &Record) -> Recording {
    let mut recording = Recording::empty(name.to_owned(), Format::Continue);
    let mut scribe = Scribe::of(&mut recording);
    for entry in record.value["history"].as_array().into_iter().flatten() {
        let message = &entry["message"];
        let mut said = Said::default();
        match &message["content"] {
            Value::Array(parts) => {
                for part in parts {
                    if !said.block(part, scribe.recording) {
                        scribe.recording.note("parts that are neither text nor image, left out", 1);
                    }
                }
            }
            text => said.text(text.as_str()),
        }
        match message["role"].as_str() {
            Some("assistant") => {
                for call in message["toolCalls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    said.call(call["id"].as_str(), function["name"].as_str(), &function["arguments"]);
                }
                for state in entry["toolCallStates"].as_array().into_iter().flatten() {
                    // A call that was not run has no output.
                    if state["output"].is_array() {
                        let output = contents(&state["output"], scribe.recording);
                        said.result(state["toolCallId"].as_str(), None, output);
                    }
                }
                scribe.assistant(None, said, 0);
            }
            Some("user") => scribe.user(said, 0),
            Some("tool") => {
                let mut result = Said::default();
                let content = contents(&message["content"], scribe.recording);
                result.result(message["toolCallId"].as_str(), None, content);
                scribe.user(result, 0);
            }
            _ => scribe.recording.note("system messages, left out: the fixed tokens stand for them", 1),
        }
    }
    recording
}
