//! Messages made of blocks: texts, thoughts, calls and results, as most agents write them. The dialects are those of the
//! Messages API, of Gemini, and of the Responses API.

use std::collections::{HashMap, HashSet};

use hermes_conversation::{Draft, Role, ToolCall};
use serde_json::Value;

use super::Recording;
use super::attached::Content;

/// Begins texts that an agent adds to messages of its user.
const ADDED: [&str; 8] = [
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<session_context>",
    "<turn_aborted>",
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<command-name>",
];
pub(super) const BY_AGENT: &str = "messages that the recorded agent wrote itself, left out";
pub(super) const COMPACTIONS: &str = "compactions of the recorded agent, left out";
pub(super) const OTHER_RECORDS: &str = "changes of settings and other records, left out";
pub(super) const BRANCHES: &str = "records of branches that were left, left out";
const OTHER_PARTS: &str = "parts that are neither text nor image, left out";

/// What one message says.
#[derive(Debug, Default)]
pub(super) struct Said {
    content: Content,
    thoughts: Vec<String>,
    calls: Vec<ToolCall>,
    results: Vec<Answer>,
}

/// The result of a call.
#[derive(Debug)]
struct Answer {
    id: Option<String>,
    name: Option<String>,
    content: Content,
}

impl Said {
    pub(super) fn text(&mut self, text: Option<&str>) {
        self.content.push_text(text.filter(|text| !text.is_empty()));
    }

    pub(super) fn picture(&mut self, part: &Value, recording: &mut Recording) {
        self.content.push_picture(part, recording);
    }

    pub(super) fn thought(&mut self, text: Option<&str>) {
        self.thoughts.extend(text.filter(|text| !text.is_empty()).map(str::to_owned));
    }

    /// `arguments` is an object, or a text with one.
    pub(super) fn call(&mut self, id: Option<&str>, name: Option<&str>, arguments: &Value) {
        let arguments = match arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // The scribe names a call without an id.
        let id = id.unwrap_or_default().to_owned();
        self.calls.push(ToolCall { id, name: name.unwrap_or("unknown").to_owned(), arguments });
    }

    pub(super) fn result(&mut self, id: Option<&str>, name: Option<&str>, content: Content) {
        let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
        self.results.push(Answer { id, name, content });
    }

    /// A block of the Messages API. Whether it is one.
    pub(super) fn block(&mut self, part: &Value, recording: &mut Recording) -> bool {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        match text("type") {
            Some("text" | "input_text" | "output_text") => self.text(text("text").map(unwrapped)),
            Some("image" | "input_image" | "image_url" | "imageUrl") => self.picture(part, recording),
            Some("thinking") => self.thought(text("thinking")),
            Some("redacted_thinking") => {}
            Some("tool_use" | "server_tool_use") => self.call(text("id"), text("name"), &part["input"]),
            Some("tool_result") => {
                let content = contents(&part["content"], recording);
                self.result(text("tool_use_id"), text("name"), content);
            }
            _ => return false,
        }
        true
    }

    /// A part of Gemini.
    pub(super) fn part(&mut self, part: &Value, recording: &mut Recording) {
        let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
        if let Some(said) = text("/text") {
            match part["thought"] == true {
                true => self.thought(Some(said)),
                false => self.text(Some(said)),
            }
        } else if part.get("functionCall").is_some() {
            self.call(text("/functionCall/id"), text("/functionCall/name"), &part["functionCall"]["args"]);
        } else if let Some(response) = part.get("functionResponse") {
            let given = &response["response"];
            let said = given.get("output").or_else(|| given.get("error")).unwrap_or(given);
            self.result(text("/functionResponse/id"), text("/functionResponse/name"), Content::of_text(written(said)));
        } else if part.get("inlineData").is_some() || part.get("fileData").is_some() {
            // A picture beside a result belongs to it.
            match self.results.last_mut() {
                Some(answer) => answer.content.push_picture(part, recording),
                None => self.picture(part, recording),
            }
        } else if part.get("thoughtSignature").is_none() {
            recording.note(OTHER_PARTS, 1);
        }
    }

    /// Adds what the same message says besides.
    pub(super) fn append(&mut self, more: Self) {
        self.content.append(more.content);
        self.thoughts.extend(more.thoughts);
        self.calls.extend(more.calls);
        self.results.extend(more.results);
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.thoughts.is_empty() && self.calls.is_empty() && self.results.is_empty()
    }
}

/// A result, which is a text or a list of parts.
pub(super) fn contents(value: &Value, recording: &mut Recording) -> Content {
    let parts = match value {
        Value::Array(parts) => parts,
        Value::Null => return Content::default(),
        other => return Content::of_text(written(other)),
    };
    let mut content = Content::default();
    for part in parts {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        match text("type") {
            Some("image" | "input_image" | "image_url") => content.push_picture(part, recording),
            _ => match part.as_str().or_else(|| text("text")).or_else(|| text("result")).or_else(|| text("content")) {
                Some(text) => content.push_text(Some(text)),
                None => content.push_text(Some(&part.to_string())),
            },
        }
    }
    content
}

/// A value as the model read it.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text of a user without the marks that Cline puts around it.
pub(super) fn unwrapped(text: &str) -> &str {
    let inner = text.strip_prefix("<user_input").and_then(|rest| Some(rest.split_once('>')?.1));
    inner.and_then(|rest| rest.trim_end().strip_suffix("</user_input>")).unwrap_or(text)
}

/// Whether the agent added a text to what its user said.
pub(super) fn is_added(text: &str) -> bool {
    let text = text.trim_start();
    ADDED.iter().any(|start| text.starts_with(start))
}

/// Puts the messages of a recording together.
pub(super) struct Scribe<'a> {
    pub(super) recording: &'a mut Recording,
    /// Where the message with an id is: several records may have parts of one reply.
    replies: HashMap<String, usize>,
    /// Results are written twice by some agents.
    answered: HashSet<String>,
    called: HashSet<String>,
}

impl<'a> Scribe<'a> {
    pub(super) fn of(recording: &'a mut Recording) -> Self {
        Self { recording, replies: HashMap::new(), answered: HashSet::new(), called: HashSet::new() }
    }

    /// Adds what a user said, after the results in the same message.
    pub(super) fn user(&mut self, said: Said, at: u64) {
        let Said { content, results, .. } = said;
        self.results(results, at);
        if !content.is_empty() {
            let draft = Draft::user(content.text(), at);
            self.recording.drafts.push(content.complete(draft));
        }
    }

    /// Adds a reply, or more of the reply with this id.
    pub(super) fn assistant(&mut self, id: Option<&str>, mut said: Said, at: u64) {
        if said.is_empty() {
            return;
        }
        let number = self.recording.drafts.len();
        for (at, call) in said.calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("call_{number}_{at}");
        }
        // A call with the same id was written before, in another form.
        let called = &mut self.called;
        said.calls.retain(|call| id.is_some() || called.insert(call.id.clone()));
        let results = std::mem::take(&mut said.results);
        let reasoning = (!said.thoughts.is_empty()).then(|| said.thoughts.join("\n"));
        let drafts = &mut self.recording.drafts;
        let known = id.and_then(|id| self.replies.get(id).copied());
        match known.filter(|known| drafts[known + 1..].iter().all(|draft| draft.role == Role::Tool)) {
            Some(known) => {
                let draft = &mut drafts[known];
                let more = said.content.text();
                if !draft.content.is_empty() && !more.is_empty() {
                    draft.content.push('\n');
                }
                draft.content.push_str(&more);
                draft.reasoning = match (draft.reasoning.take(), reasoning) {
                    (Some(first), Some(more)) => Some(format!("{first}\n{more}")),
                    (first, more) => first.or(more),
                };
                let new =
                    said.calls.into_iter().filter(|call| draft.tool_calls.iter().all(|known| known.id != call.id));
                let new: Vec<ToolCall> = new.collect();
                draft.tool_calls.extend(new);
            }
            None => {
                let draft = Draft { reasoning, ..Draft::assistant(said.content.text(), said.calls, at) };
                self.replies.extend(id.map(|id| (id.to_owned(), drafts.len())));
                drafts.push(said.content.complete(draft));
            }
        }
        self.results(results, at);
    }

    fn results(&mut self, results: Vec<Answer>, at: u64) {
        for Answer { id, name, content } in results {
            if id.as_ref().is_some_and(|id| !self.answered.insert(id.clone())) {
                continue;
            }
            let mut draft = Draft::user(content.text(), at);
            draft.role = Role::Tool;
            draft.tool_call_id = id;
            draft.tool_name = name;
            self.recording.drafts.push(content.complete(draft));
        }
    }
}
