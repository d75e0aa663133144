//! From a view to the messages that a model is sent.
//!
//! The same log and view always give the same messages, a longer log under the same view begins with the messages of the
//! shorter one, and the messages always pass [`validity::check`](crate::validity::check), whatever the log holds. The host
//! adds its own words here and nowhere else: the frame of summaries and of reminders, replies between two messages of one side, and results
//! of calls that have none.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::excerpt::{excerpt_text, shortened_calls};
use crate::message::media_of;
use crate::part::{Part, Payloads, Reader, ToolResult, keep_for};
use crate::{Conversation, Excerpt, Item, Media, Message, MessageId, Role, Summary, ToolCall, View, closing, reminder};

/// A message as the model is sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Never `Role::System`.
    pub role: Role,
    /// The text; may be empty if there are calls.
    pub content: String,
    /// The model's own reasoning, for providers that expect it back.
    pub reasoning: Option<String>,
    /// Calls of an assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The message of the log; `None` for summaries and for the host's own words.
    pub id: Option<MessageId>,
    /// The whole message, if it is more than text and calls. Empty otherwise.
    pub parts: Vec<Part>,
    /// The ids of this message's calls that earlier calls of the request have too, with the number of those calls. For a result,
    /// the id of the call that it answers. Wire formats that allow each id only once need this.
    pub repeated: Vec<(String, u32)>,
    /// Whether it repeats the pictures of the results before it, for wire formats in which a result is only text. The other
    /// formats leave it out.
    pub repeats_pictures: bool,
}

impl Shown {
    /// A text message.
    pub fn words(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            id: None,
            parts: Vec::new(),
            repeated: Vec::new(),
            repeats_pictures: false,
        }
    }

    /// How many earlier calls of the request have the id of this call.
    pub fn repeats(&self, id: &str) -> u32 {
        self.repeated.iter().find(|(repeated, _)| repeated == id).map_or(0, |(_, number)| *number)
    }

    /// Its pictures and files, to be changed.
    pub fn media_mut(&mut self) -> impl Iterator<Item = &mut Media> {
        media_of(&mut self.parts)
    }

    /// Leaves out the payloads that this model cannot read. A payload is sent as it came, or not at all.
    pub fn keep_payloads_for(&mut self, reader: &Reader<'_>) -> Payloads {
        let payloads = keep_for(&mut self.parts, reader);
        let text = (!self.content.is_empty()).then(|| Part::text(self.content.clone()));
        let plain: Vec<Part> = text.into_iter().chain(self.tool_calls.iter().cloned().map(Part::ToolCall)).collect();
        if self.parts == plain {
            self.parts.clear();
        }
        payloads
    }

    /// Replaces each picture by a line of text, for a model that reads no pictures. False if the message is not needed any more,
    /// because it only repeats the pictures of results, which have these lines themselves.
    pub fn without_images(&mut self) -> bool {
        // A message without media is sent as its text.
        let text = &mut self.content;
        let mut in_words = |parts: &mut Vec<Part>| {
            for part in parts.iter_mut() {
                if matches!(part, Part::Image(_)) {
                    let mention = part.mention().unwrap_or_default();
                    let separator = if text.is_empty() { "" } else { "\n" };
                    text.push_str(&format!("{separator}{mention}"));
                    *part = Part::text(mention);
                }
            }
        };
        for part in &mut self.parts {
            if let Part::ToolResult(result) = part {
                in_words(&mut result.parts);
            }
        }
        in_words(&mut self.parts);
        !self.repeats_pictures || self.parts.iter().any(|part| part.media().is_some())
    }
}

const SUMMARY_OPENS: &str = "[Summary of earlier messages of this conversation. They are kept in full and are left out here to save \
     room. This is background: whatever is said after it is newer and counts more.]";
/// Before a summary that follows another one.
const SUMMARY_GOES_ON: &str = "[Summary of the messages after those.]";
const SUMMARY_ENDS: &str = "[End of the summary.]";
/// Between two messages of the user's side.
const NOTED: &str = "Understood.";
/// Before the pictures of tool results.
const PICTURES: &str = "[The images of the tool results above, in order.]";
/// Before a reply that would be the first message.
const GO_ON: &str = "Please go on.";

/// The messages of a view, in order: the user's first, roles alternating, results directly after their calls.
pub fn render(conversation: &Conversation, view: &View) -> Vec<Shown> {
    Rendering::of(conversation, view).1
}

/// Messages with alternating roles but without repairs, to check what another program would send.
pub fn unrepaired(messages: &[Message]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for message in messages {
        let last = shown.last().map(|last| last.role);
        shown.extend(words_between(last, message.role));
        shown.push(of_message(message));
    }
    shown
}

/// What had to be changed in a damaged log so that a provider accepts it. All zero for an undamaged one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Calls without a result, which got [`closing::INTERRUPTED_CALL`].
    pub calls_answered: u32,
    /// Results without a call, or for a call that already has one, which were left out.
    pub results_left_out: u32,
    /// Calls with an id that another call of the message has, and calls that no model made, which were left out.
    pub calls_left_out: u32,
    /// System messages, which cannot be part of a conversation, which were left out.
    pub messages_left_out: u32,
}

impl Repairs {
    /// Whether anything was repaired.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl std::fmt::Display for Repairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |count: u32, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        };
        let parts = [
            counted(self.calls_answered, "tool call without a result", "tool calls without a result"),
            counted(self.results_left_out, "tool result without a call", "tool results without a call"),
            counted(self.calls_left_out, "repeated tool call", "repeated tool calls"),
            counted(self.messages_left_out, "system message", "system messages"),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// A view rendered so far. Appended messages are rendered after it, without rendering the view again.
///
/// A message with calls is held back until each call has a result, or until a message follows that is not a result:
/// only then is it known whether a missing result is late or lost.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// The role of the last message that was rendered.
    last: Option<Role>,
    held: Option<Exchange>,
    /// How many calls have each id.
    ids: HashMap<String, u32>,
    repairs: Repairs,
}

/// A message with calls and the results that it has so far.
#[derive(Debug, Clone)]
struct Exchange {
    caller: Shown,
    results: Vec<Shown>,
    /// The calls by their ids, and whether each has a result.
    has_result: HashMap<String, bool>,
}

impl Exchange {
    fn new(caller: Shown) -> Self {
        let has_result = caller.tool_calls.iter().map(|call| (call.id.clone(), false)).collect();
        Self { caller, results: Vec::new(), has_result }
    }

    /// Whether a result is awaited; further results of the same call are not.
    fn takes_result(&mut self, id: &str) -> bool {
        self.has_result.get_mut(id).is_some_and(|has_result| !std::mem::replace(has_result, true))
    }

    fn is_complete(&self) -> bool {
        self.results.len() == self.caller.tool_calls.len()
    }
}

impl Rendering {
    /// Renders a view, and the messages that follow it.
    pub fn of(conversation: &Conversation, view: &View) -> (Self, Vec<Shown>) {
        let mut rendering = Self::default();
        let mut shown = Vec::new();
        let mut behind_summary = false;
        let mut reminders = reminder::of_view(conversation, view);
        for (at, item) in conversation.items(view).into_iter().enumerate() {
            let reminder = reminders.remove(&at);
            let opens = if behind_summary { SUMMARY_GOES_ON } else { SUMMARY_OPENS };
            behind_summary = matches!(item, Item::Summary(_));
            match item {
                Item::Messages(range) => {
                    for message in &conversation.messages()[conversation.span(range)] {
                        rendering.push(&mut shown, of_message(message));
                    }
                }
                Item::Excerpt(excerpt) => {
                    if let Some(message) = conversation.get(excerpt.id) {
                        let excerpt = match reminder {
                            Some(reminder) => reminded(message, excerpt, &reminder),
                            None => excerpt,
                        };
                        rendering.push(&mut shown, of_excerpt(message, &excerpt));
                    }
                }
                Item::Summary(summary) => {
                    let mut next = of_summary(opens, &summary);
                    if let Some(reminder) = reminder {
                        next.content = format!("{}\n\n{reminder}", next.content);
                    }
                    rendering.push(&mut shown, next);
                }
            }
        }
        (rendering, shown)
    }

    /// Renders messages that were appended to the log.
    pub fn follow(&mut self, messages: &[Message]) -> Vec<Shown> {
        let mut shown = Vec::new();
        for message in messages {
            self.push(&mut shown, of_message(message));
        }
        shown
    }

    /// What was repaired so far.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    fn push(&mut self, shown: &mut Vec<Shown>, mut next: Shown) {
        match next.role {
            Role::System => self.repairs.messages_left_out += 1,
            Role::Tool => {
                self.leave_out_calls(&mut next);
                self.push_result(shown, next);
            }
            Role::User | Role::Assistant => {
                self.release(shown);
                next.tool_call_id = None;
                self.leave_out_calls(&mut next);
                next.repeated = self.count_ids(&next.tool_calls);
                if next.tool_calls.is_empty() {
                    self.emit(shown, next);
                } else {
                    self.held = Some(Exchange::new(next));
                }
            }
        }
    }

    /// Counts the ids of calls, and returns those that earlier calls have. Some wire formats rewrite ids because they allow few
    /// characters. Ids that become equal in one of them count as equal here.
    fn count_ids(&mut self, calls: &[ToolCall]) -> Vec<(String, u32)> {
        let mut repeated = Vec::new();
        for call in calls {
            let mut most = 0;
            for form in BTreeSet::from(sent_ids(&call.id)) {
                let earlier = self.ids.entry(form).or_default();
                most = most.max(*earlier);
                *earlier = earlier.saturating_add(1);
            }
            if most > 0 {
                repeated.push((call.id.clone(), most));
            }
        }
        repeated
    }

    /// Only a message of the model has calls, each with an id of its own.
    fn leave_out_calls(&mut self, message: &mut Shown) {
        let before = message.tool_calls.len();
        let is_reply = message.role == Role::Assistant;
        let mut ids = HashSet::new();
        message.tool_calls.retain(|call| is_reply && ids.insert(call.id.clone()));
        let mut ids = HashSet::new();
        message.parts.retain(|part| match part {
            Part::ToolCall(call) => is_reply && ids.insert(call.id.clone()),
            Part::ToolResult(_) => message.role == Role::Tool,
            _ => true,
        });
        self.repairs.calls_left_out += count(before - message.tool_calls.len());
    }

    fn push_result(&mut self, shown: &mut Vec<Shown>, mut result: Shown) {
        let id = result.tool_call_id.take().unwrap_or_default();
        let mut held = self.held.as_mut();
        let Some(held) = held.take_if(|held| held.takes_result(&id)) else {
            self.repairs.results_left_out += 1;
            return;
        };
        result.tool_call_id = Some(id);
        held.results.push(result);
        if held.is_complete() {
            self.release(shown);
        }
    }

    /// Emits the message that is held back. If a result is missing, the results follow in the order of the calls.
    fn release(&mut self, shown: &mut Vec<Shown>) {
        let Some(Exchange { caller, mut results, .. }) = self.held.take() else { return };
        let missing = caller.tool_calls.len() - results.len();
        if missing > 0 {
            self.repairs.calls_answered += count(missing);
            let by_call = |result: Shown| (result.tool_call_id.clone().unwrap_or_default(), result);
            let mut by_call: HashMap<String, Shown> = results.into_iter().map(by_call).collect();
            let ordered = caller.tool_calls.iter();
            results = ordered.map(|call| by_call.remove(&call.id).unwrap_or_else(|| interrupted(call))).collect();
        }
        for result in &mut results {
            let id = result.tool_call_id.as_deref().unwrap_or_default();
            result.repeated = caller.repeated.iter().filter(|(repeated, _)| repeated == id).cloned().collect();
        }
        self.emit(shown, caller);
        let mut pictures = Vec::new();
        for result in results {
            let inner = result.parts.iter().flat_map(|part| match part {
                Part::ToolResult(result) => result.parts.as_slice(),
                other => std::slice::from_ref(other),
            });
            pictures.extend(inner.filter(|part| part.media().is_some()).cloned());
            self.emit(shown, result);
        }
        if !pictures.is_empty() {
            pictures.insert(0, Part::text(PICTURES));
            // If it is sent, it belongs to the results: it does not change what may follow.
            shown.push(Shown { parts: pictures, repeats_pictures: true, ..Shown::words(Role::User, PICTURES) });
        }
    }

    fn emit(&mut self, shown: &mut Vec<Shown>, next: Shown) {
        shown.extend(words_between(self.last, next.role));
        self.last = Some(next.role);
        shown.push(next);
    }
}

/// The forms in which wire formats send an id: all of it, or only the call's part. In `call_1|fc_1` the id of the item follows
/// the id of the call.
fn sent_ids(id: &str) -> [String; 2] {
    let call = match id.split_once('|').unwrap_or((id, "")) {
        ("", item) => item.strip_prefix("fc_").map_or_else(|| item.to_owned(), |rest| format!("call_{rest}")),
        (call, _) => call.to_owned(),
    };
    [id, &call].map(|form| match form {
        "" => "tool_0".to_owned(),
        form => form
            .chars()
            .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
            .collect(),
    })
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The host's words between two messages of one side.
fn words_between(last: Option<Role>, next: Role) -> Option<Shown> {
    match (last, next) {
        (Some(Role::User | Role::Tool), Role::User) => Some(host_words(Role::Assistant, NOTED)),
        (None | Some(Role::Assistant), Role::Assistant) => Some(host_words(Role::User, GO_ON)),
        _ => None,
    }
}

fn interrupted(call: &ToolCall) -> Shown {
    Shown { tool_call_id: Some(call.id.clone()), ..host_words(Role::Tool, closing::INTERRUPTED_CALL) }
}

fn host_words(role: Role, text: &str) -> Shown {
    Shown::words(role, text)
}

fn of_message(message: &Message) -> Shown {
    Shown {
        role: message.role,
        content: message.text_sent().to_owned(),
        reasoning: message.reasoning.clone(),
        tool_calls: message.tool_calls.clone(),
        tool_call_id: message.tool_call_id.clone(),
        id: Some(message.id),
        parts: parts_sent(message),
        repeated: Vec::new(),
        repeats_pictures: false,
    }
}

/// The parts, with the sent text in place of the stored text.
fn parts_sent(message: &Message) -> Vec<Part> {
    let mut parts = message.parts.clone();
    let Some(sent) = &message.sent else { return parts };
    for part in &mut parts {
        if let Part::ToolResult(result) = part {
            replace_text(&mut result.parts, sent);
            return parts;
        }
    }
    if !parts.is_empty() {
        replace_text(&mut parts, sent);
    }
    parts
}

fn replace_text(parts: &mut Vec<Part>, sent: &str) {
    let at = parts.iter().position(|part| matches!(part, Part::Text { .. })).unwrap_or(parts.len());
    parts.retain(|part| !matches!(part, Part::Text { .. }));
    parts.insert(at.min(parts.len()), Part::text(sent));
}

fn of_excerpt(message: &Message, excerpt: &Excerpt) -> Shown {
    let mut shown = of_message(message);
    shown.content = excerpt_text(message, excerpt).into_owned();
    shown.tool_calls = shortened_calls(message, excerpt);
    // A payload belongs to the original message, so a shortened one has none.
    shown.parts.clear();
    if excerpt.keep_images && message.media().next().is_some() {
        let text = (!shown.content.is_empty()).then(|| Part::text(shown.content.clone()));
        let media = message.inner_parts().filter(|part| part.media().is_some()).cloned();
        let inner: Vec<Part> = text.into_iter().chain(media).collect();
        let result = message.parts.iter().find_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        });
        shown.parts = match result {
            Some(result) => {
                vec![Part::ToolResult(ToolResult { parts: inner, structured: None, reminder: None, ..result.clone() })]
            }
            None => inner.into_iter().chain(shown.tool_calls.iter().cloned().map(Part::ToolCall)).collect(),
        };
    }
    shown
}

/// The excerpt with the reminder of the result that it shortens.
fn reminded(message: &Message, excerpt: Excerpt, reminder: &str) -> Excerpt {
    let text = excerpt.content.as_deref().unwrap_or(message.text_sent());
    Excerpt { content: Some(format!("{text}\n\n{reminder}")), ..excerpt }
}

fn of_summary(opens: &str, summary: &Summary) -> Shown {
    host_words(Role::User, &format!("{opens}\n\n{}\n\n{SUMMARY_ENDS}", summary.content.trim()))
}
