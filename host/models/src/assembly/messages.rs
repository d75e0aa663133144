//! The events of Anthropic's messages.
//!
//! Blocks are numbered, started, filled and closed. Servers of other vendors leave out events and numbers, or give all blocks one number:
//! the first event of a block starts it, and a block that is started at a number in use is another one.
//!
//! When a reply is whole:
//!
//! - `message_stop` ends it.
//! - A reason to stop ends it, and so it needs no `message_stop`; what may still follow is waited for a moment. If more content follows,
//!   the reply goes on.
//! - Any other end breaks it off, `[DONE]` too. A reason that names a failure, such as `abort`, is an error; one that no rule knows needs
//!   `message_stop`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hermes_conversation::{Part, ProviderPayload, ToolCall};
use serde_json::{Map, Value};

use super::inline::{Inline, Piece};
use super::last::{Given, Last};
use super::reason::{Ending, ended_badly};
use super::{
    Assemble, Broken, MOST_CALLS, Progress, Slot, Unread, arguments, items, joined_thoughts, number, settle,
    without_thinking, word,
};
use crate::failure::{
    Stated,
    complaint::{Place, complaint},
};
use crate::{
    Delta, Echo, Finish, OnDelta, Reply, usage,
    wire::{messages::REPLY_TOOL, schema::keys::Renamed},
};

/// Between two texts.
const BETWEEN_TEXTS: &str = "\n";
/// Events of the format. Later versions have more.
const EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
];

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    blocks: Vec<Block>,
    newest: HashMap<(At, Kind), usize>,
    /// Numbers of blocks of kinds that are neither shown nor kept.
    ignored: HashSet<Option<u64>>,
    /// The kind of the block that grew last.
    grown: Option<Kind>,
    /// Whether a block began since then that is still empty, and is no text.
    is_behind_empty: bool,
    /// Finds thinking in the text.
    inline: Inline,
    /// Whether text was shown, or would have been shown before the first call.
    text_begun: bool,
    reasoning_begun: bool,
    /// Calls so far, counted as they begin.
    calls: usize,
    /// Why the reply ended, unless content followed.
    reason: Option<Ending>,
    /// The words of a reason that declined the reply.
    declined_by: String,
    usage: Map<String, Value>,
    model: Option<String>,
    ended: bool,
    /// The reply is the input of the one tool that was offered for it.
    formed: bool,
    /// Names in the tool list that replace the tools' own names.
    renamed: Arc<Renamed>,
    /// Whether the provider demands reasoning back that it has not signed.
    demanded: bool,
    /// Text and reasoning that the message began with.
    given: Given,
    given_thinking: Given,
    /// The final words of a block differ from those that arrived first.
    is_changed: bool,
}

#[derive(Debug)]
enum Block {
    Text(Words),
    Thinking(Thought),
    /// Reasoning that only the provider can read: the block as it came.
    Redacted(String),
    Call(Called),
}

/// Kinds of blocks that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Text, Self::Thinking, Self::Call];
}

/// Where a block is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Number(u64),
    /// It began without a number.
    Unnumbered,
    /// The newest of all.
    Anywhere,
}

/// A block of text.
#[derive(Debug, Default)]
struct Words {
    /// The text as it was sent.
    sent: String,
    /// The text without the thinking in it.
    text: String,
    /// It goes on where the text before it stopped: gateways put empty blocks amid a text.
    goes_on: bool,
    /// Nothing more of it follows.
    closed: bool,
}

/// A block of a call.
#[derive(Debug, Default)]
struct Called {
    slot: Slot,
    /// The input of servers that do not stream it, as the block began.
    given: String,
}

impl Called {
    fn into_slot(mut self) -> Slot {
        if self.slot.arguments.trim().is_empty() {
            self.slot.arguments = self.given;
        }
        self.slot
    }
}

/// A block of reasoning that can be read.
#[derive(Debug, Default)]
struct Thought {
    /// The block as it began.
    block: Map<String, Value>,
    text: String,
    signature: String,
    /// Nothing more of it follows.
    closed: bool,
}

impl Thought {
    /// The block as the provider takes it back. Most refuse one without a signature; others sign nothing and demand every block.
    fn payload(mut self, demanded: bool) -> Option<ProviderPayload> {
        if self.signature.is_empty() && !demanded {
            return None;
        }
        self.block.insert("type".to_owned(), "thinking".into());
        self.block.insert("thinking".to_owned(), self.text.into());
        if self.signature.is_empty() {
            self.block.remove("signature");
        } else {
            self.block.insert("signature".to_owned(), self.signature.into());
        }
        Some(ProviderPayload::untagged(Value::Object(self.block).to_string()))
    }
}

impl Assembly {
    /// For a reply; `formed` where it was asked for in a form of its own.
    pub(crate) fn new(formed: bool) -> Self {
        Self { formed, ..Self::default() }
    }

    /// The same for a provider that wants this reasoning back.
    pub(crate) fn echoing(self, echo: Echo) -> Self {
        Self { demanded: echo.demanded, ..self }
    }

    /// The same for a tool list with these names.
    pub(crate) fn renaming(self, renamed: &Arc<Renamed>) -> Self {
        Self { renamed: Arc::clone(renamed), ..self }
    }

    /// Begins a block, or goes on with one that a gateway begins again before it is closed.
    fn begin(&mut self, index: Option<u64>, block: &Value, on_delta: OnDelta<'_>) {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => Kind::Call,
            other => {
                self.ignored.insert(index);
                if other == "redacted_thinking" {
                    self.blocks.push(Block::Redacted(block.to_string()));
                    self.grow(Kind::Thinking);
                }
                return;
            }
        };
        self.ignored.remove(&index);
        Kind::ALL.into_iter().filter(|other| *other != kind).for_each(|other| self.close_block(index, other));
        match kind {
            Kind::Text => {
                self.open(index, kind).unwrap_or_else(|| self.add(index, kind));
                let more = self.given.fresh(text("text"));
                self.text(index, &more, on_delta);
            }
            Kind::Thinking => {
                let given = self.at(index, kind).filter(|_| !self.given_thinking.is_empty());
                let at = self.open(index, kind).or(given).unwrap_or_else(|| self.add(index, kind));
                if let Block::Thinking(thought) = &mut self.blocks[at] {
                    if thought.block.is_empty() {
                        thought.block = block.as_object().cloned().unwrap_or_default();
                    }
                    if given.is_some() {
                        thought.signature.clear();
                    }
                }
                let more = self.given_thinking.fresh(text("thinking"));
                self.thinking(index, &more, on_delta);
                self.sign(index, text("signature"));
            }
            Kind::Call => self.begin_call(index, block, on_delta),
        }
    }

    fn begin_call(&mut self, index: Option<u64>, block: &Value, on_delta: OnDelta<'_>) {
        let (id, name) = (word(block, "id"), word(block, "name"));
        // Streams begin with an empty object. Servers that do not stream the input send it here.
        let input = block.get("input").filter(|input| input.as_object().is_none_or(|input| !input.is_empty()));
        let given = arguments(input);
        // Some gateways begin a call again with each piece of it.
        let again = self.at(index, Kind::Call).is_some_and(|at| match &self.blocks[at] {
            Block::Call(called) => {
                !called.slot.whole && !id.is_empty() && called.slot.id == id && called.slot.name == name
            }
            _ => false,
        });
        if again {
            return;
        }
        if !self.formed && !name.is_empty() {
            on_delta(Delta::Call(&name));
        }
        if self.formed && !given.is_empty() {
            on_delta(Delta::Text(&given));
        }
        let at = self.add(index, Kind::Call);
        if let Block::Call(called) = &mut self.blocks[at] {
            (called.slot.id, called.slot.name, called.given) = (id, name, given);
        }
    }

    /// Begins a block.
    fn add(&mut self, index: Option<u64>, kind: Kind) -> usize {
        self.reason = None;
        let at = self.blocks.len();
        let goes_on = self.grown == Some(Kind::Text) && self.is_behind_empty;
        self.blocks.push(match kind {
            Kind::Text => Block::Text(Words { goes_on, ..Words::default() }),
            Kind::Thinking => Block::Thinking(Thought::default()),
            Kind::Call => Block::Call(Called::default()),
        });
        self.calls += usize::from(kind == Kind::Call);
        self.is_behind_empty |= kind == Kind::Thinking;
        if kind == Kind::Call {
            self.grown = Some(kind);
        }
        self.newest.insert((index.map_or(At::Unnumbered, At::Number), kind), at);
        self.newest.insert((At::Anywhere, kind), at);
        at
    }

    /// The newest block with this number. Some servers number the pieces of a block and not its beginning, or the other way round.
    fn at(&self, index: Option<u64>, kind: Kind) -> Option<usize> {
        let of = |at: At| self.newest.get(&(at, kind)).copied();
        match index {
            Some(index) => of(At::Number(index)).or_else(|| of(At::Unnumbered)),
            None => of(At::Anywhere),
        }
    }

    /// The block with this number that was begun and not closed.
    fn open(&self, index: Option<u64>, kind: Kind) -> Option<usize> {
        let at = self.at(index, kind)?;
        let is_open = match &self.blocks[at] {
            Block::Text(words) => !words.closed,
            Block::Thinking(thought) => !thought.closed && thought.signature.is_empty(),
            Block::Call(_) | Block::Redacted(_) => false,
        };
        is_open.then_some(at)
    }

    /// The block that a piece continues, begun where it is new; none for a block that is not kept.
    fn block(&mut self, index: Option<u64>, kind: Kind) -> Option<&mut Block> {
        if self.ignored.contains(&index) {
            return None;
        }
        let at = self.at(index, kind).unwrap_or_else(|| self.add(index, kind));
        self.blocks.get_mut(at)
    }

    /// A block of this kind grew, so an earlier reason to end was not the end.
    fn grow(&mut self, kind: Kind) {
        self.reason = None;
        self.grown = Some(kind);
        self.is_behind_empty = false;
    }

    fn text(&mut self, index: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        if more.is_empty() {
            return;
        }
        let Some(Block::Text(words)) = self.block(index, Kind::Text) else { return };
        words.sent.push_str(more);
        self.grow(Kind::Text);
        for piece in self.inline.take(more) {
            match piece {
                Piece::Reasoning(more) => {
                    self.reasoning_begun = true;
                    on_delta(Delta::Reasoning(&more));
                }
                Piece::Text(more) => self.say(index, &more, on_delta),
            }
        }
    }

    fn say(&mut self, index: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        let is_shown = self.calls == 0 && !self.formed;
        let is_behind = self.text_begun;
        let Some(Block::Text(words)) = self.block(index, Kind::Text) else { return };
        // Behind the first call, text is an aside that would tear the display of calls apart.
        if is_shown {
            if words.text.is_empty() && is_behind && !words.goes_on {
                on_delta(Delta::Text(BETWEEN_TEXTS));
            }
            on_delta(Delta::Text(more));
        }
        words.text.push_str(more);
        self.text_begun = true;
    }

    fn thinking(&mut self, index: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        if more.is_empty() {
            return;
        }
        let is_behind = self.reasoning_begun;
        let Some(Block::Thinking(thought)) = self.block(index, Kind::Thinking) else { return };
        if thought.text.is_empty() && is_behind {
            on_delta(Delta::Reasoning("\n\n"));
        }
        on_delta(Delta::Reasoning(more));
        thought.text.push_str(more);
        self.reasoning_begun = true;
        self.grow(Kind::Thinking);
    }

    fn sign(&mut self, index: Option<u64>, more: &str) {
        if !more.is_empty()
            && let Some(Block::Thinking(thought)) = self.block(index, Kind::Thinking)
        {
            thought.signature.push_str(more);
            self.grow(Kind::Thinking);
        }
    }

    fn input(&mut self, index: Option<u64>, more: &str, on_delta: OnDelta<'_>) {
        if more.is_empty() {
            return;
        }
        let formed = self.formed;
        // A call without a start has no name, and the model is told so.
        let Some(Block::Call(called)) = self.block(index, Kind::Call) else { return };
        if formed {
            on_delta(Delta::Text(more));
        }
        called.slot.arguments.push_str(more);
        self.grow(Kind::Call);
    }

    /// Takes whole blocks, or the text in their place.
    fn content(&mut self, content: Option<&Value>, on_delta: OnDelta<'_>) {
        self.text(Some(0), content.and_then(Value::as_str).unwrap_or_default(), on_delta);
        for (index, block) in (0..).zip(items(content)) {
            if self.calls > MOST_CALLS {
                break;
            }
            self.begin(Some(index), block, on_delta);
            Kind::ALL.into_iter().for_each(|kind| self.close_block(Some(index), kind));
        }
    }

    /// Takes what a message begins with. Some servers stream it again, others what follows it.
    fn give(&mut self, content: Option<&Value>, on_delta: OnDelta<'_>) {
        let text = content.and_then(Value::as_str).unwrap_or_default();
        self.text(Some(0), text, on_delta);
        self.given.add(text);
        for (index, block) in (0..).zip(items(content)) {
            if self.calls > MOST_CALLS {
                break;
            }
            self.begin(Some(index), block, on_delta);
        }
        for block in items(content) {
            let of = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
            match of("type") {
                "text" => self.given.add(of("text")),
                "thinking" => self.given_thinking.add(of("thinking")),
                _ => {}
            }
        }
    }

    /// Takes a block as it is when it is whole.
    fn settle(&mut self, index: Option<u64>, block: &Value, on_delta: OnDelta<'_>) {
        let of = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match of("type") {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => Kind::Call,
            _ => return,
        };
        let Some(at) = self.at(index, kind) else {
            self.begin(index, block, on_delta);
            return;
        };
        match &mut self.blocks[at] {
            Block::Text(words) => match Last::of(&words.sent, of("text")) {
                Last::Same => {}
                Last::More(more) => self.text(index, more, on_delta),
                Last::Instead => {
                    of("text").clone_into(&mut words.sent);
                    self.is_changed = true;
                }
            },
            Block::Thinking(thought) => {
                if let Last::More(more) = Last::of(&thought.text, of("thinking")) {
                    self.thinking(index, more, on_delta);
                }
            }
            Block::Call(called) => {
                let input = arguments(
                    block.get("input").filter(|input| input.as_object().is_none_or(|input| !input.is_empty())),
                );
                if called.given.is_empty() {
                    called.given = input;
                }
            }
            Block::Redacted(_) => {}
        }
    }

    /// Takes the whole message, for what was not sent before it.
    fn settle_all(&mut self, message: &Value, on_delta: OnDelta<'_>) {
        if self.blocks.is_empty() {
            self.content(message.get("content"), on_delta);
        }
    }

    /// Separates thinking from text again, because the final words differ from those that arrived first.
    fn read_again(&mut self) {
        self.inline = Inline::default();
        for block in &mut self.blocks {
            let Block::Text(words) = block else { continue };
            let pieces = self.inline.take(&words.sent).into_iter();
            let texts = pieces.filter_map(|piece| match piece {
                Piece::Text(text) => Some(text),
                Piece::Reasoning(_) => None,
            });
            words.text = texts.collect();
        }
    }

    fn close_block(&mut self, index: Option<u64>, kind: Kind) {
        match self.at(index, kind).map(|at| &mut self.blocks[at]) {
            Some(Block::Call(called)) => called.slot.whole = true,
            Some(Block::Text(words)) => words.closed = true,
            Some(Block::Thinking(thought)) => thought.closed = true,
            Some(Block::Redacted(_)) | None => {}
        }
    }

    fn count(&mut self, usage: Option<&Value>) {
        for (key, value) in usage.and_then(Value::as_object).into_iter().flatten() {
            // Later events repeat the counts, some of them as zero or null.
            let counts = value.as_f64().is_some_and(|count| count > 0.0) || value.is_object();
            if counts || !self.usage.contains_key(key) {
                self.usage.insert(key.clone(), value.clone());
            }
        }
    }

    fn stop(&mut self, reason: &str) -> Result<(), Stated> {
        match Ending::of(reason) {
            Some(Ending::Failed) => return Err(ended_badly(reason)),
            Some(ending) => {
                if ending == Ending::Refused {
                    reason.clone_into(&mut self.declined_by);
                }
                self.reason = Some(ending.with(self.reason));
            }
            None => {}
        }
        Ok(())
    }

    /// How the reply ended, before its calls are looked at.
    fn finish_stated(&self) -> Finish {
        match self.reason {
            Some(Ending::Length) => Finish::Length,
            Some(Ending::Refused) => Finish::Refused,
            _ => Finish::Stop,
        }
    }

    fn served(&mut self, model: Option<&Value>) {
        if self.model.is_none() {
            self.model = model.and_then(Value::as_str).filter(|model| !model.is_empty()).map(str::to_owned);
        }
    }

    fn texts(&self) -> String {
        let mut texts = String::new();
        for block in &self.blocks {
            let Block::Text(words) = block else { continue };
            if !texts.is_empty() && !words.text.is_empty() && !words.goes_on {
                texts.push_str(BETWEEN_TEXTS);
            }
            texts.push_str(&words.text);
        }
        texts
    }
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if let Some(stated) = complaint(event, place(kind)) {
            return Err(stated);
        }
        let index = number(event.get("index"));
        match kind {
            "message_start" => {
                self.served(event.pointer("/message/model"));
                self.count(event.pointer("/message/usage"));
                self.give(event.pointer("/message/content"), on_delta);
            }
            // The whole message in place of its events.
            "message" if self.blocks.is_empty() && event.get("content").is_some() => {
                self.served(event.get("model"));
                self.content(event.get("content"), on_delta);
                self.stop(&word(event, "stop_reason"))?;
                self.count(event.get("usage"));
                self.ended = true;
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.begin(index, block, on_delta);
                }
            }
            "content_block_delta" => {
                // Each kind of delta has a member of its own.
                let Some(delta) = event.get("delta") else { return Ok(()) };
                let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
                let more = self.given_thinking.fresh(text("thinking"));
                self.thinking(index, &more, on_delta);
                let more = self.given.fresh(text("text"));
                self.text(index, &more, on_delta);
                self.input(index, &arguments(delta.get("partial_json")), on_delta);
                self.sign(index, text("signature"));
            }
            "content_block_stop" => {
                if let Some(block) = event.get("content_block") {
                    self.settle(index, block, on_delta);
                }
                Kind::ALL.into_iter().for_each(|kind| self.close_block(index, kind));
            }
            "message_delta" => {
                let reason = event.get("delta").map(|delta| word(delta, "stop_reason")).unwrap_or_default();
                let reason = if reason.is_empty() { word(event, "stop_reason") } else { reason };
                self.stop(&reason)?;
                self.count(event.get("usage"));
            }
            "message_stop" => {
                if let Some(message) = event.get("message").filter(|message| message.get("content").is_some()) {
                    self.settle_all(message, on_delta);
                }
                self.ended = true;
            }
            // Pings, and events of later versions of the API.
            _ => {}
        }
        Ok(())
    }

    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Unread> {
        let is_reply = reply.get("content").is_some();
        if let Some(stated) = complaint(reply, if is_reply { Place::Part } else { Place::Stray }) {
            return Err(stated.into());
        }
        if !reply.get("content").is_some_and(|content| content.is_string() || content.is_array() || content.is_object())
        {
            return Err(Unread::Lacks("content"));
        }
        self.served(reply.get("model"));
        self.content(reply.get("content"), on_delta);
        self.stop(&word(reply, "stop_reason"))?;
        self.count(reply.get("usage"));
        self.ended = true;
        Ok(())
    }

    fn done(&mut self) {
        // Other wire formats end with it; in this one, only a reason makes a reply whole.
        self.ended |= self.reason.is_some();
    }

    fn progress(&self) -> Progress {
        match self.reason {
            _ if self.ended => Progress::Over,
            Some(Ending::Unknown) | None => Progress::Open,
            Some(_) if self.blocks.is_empty() => Progress::Closing,
            Some(_) => Progress::Whole,
        }
    }

    fn calls(&self) -> usize {
        self.calls
    }

    fn stopped(&self) -> Option<&str> {
        let has_begun = self.calls > 0 || !self.texts().trim().is_empty();
        // In this format a model declines in its own words with `refusal`.
        let is_own = self.calls == 0 && self.declined_by == "refusal";
        (self.reason == Some(Ending::Refused) && has_begun && !is_own).then_some(&self.declined_by)
    }

    fn close(&mut self, on_delta: OnDelta<'_>) {
        let (reason, is_whole) = (self.reason, self.progress() != Progress::Open);
        let (text, thinking) = (self.given.rest(), self.given_thinking.rest());
        self.thinking(None, &thinking, on_delta);
        self.text(None, &text, on_delta);
        // The text that was held back arrived before the reason to stop, so it does not revoke the reason.
        self.reason = reason;
        let is_changed = std::mem::take(&mut self.is_changed);
        if is_changed {
            self.read_again();
        }
        let rest = self.inline.rest(is_whole && self.finish_stated() == Finish::Stop && self.calls == 0);
        if !rest.is_empty() && is_changed {
            self.say(None, &rest, &mut |_| {});
        } else if !rest.is_empty() {
            self.say(None, &rest, on_delta);
        }
    }

    fn into_text(self: Box<Self>) -> String {
        self.texts()
    }

    fn finish(mut self: Box<Self>, asked: &str, new_id: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.progress() == Progress::Open {
            return Err(Broken::Cut { partial: self.texts() });
        }
        self.close(&mut |_| {});
        let finish = self.finish_stated();
        let needs_text = finish == Finish::Stop && self.calls == 0;
        let mut text = self.texts();
        let whole_text = text.len();
        let inline = without_thinking(&mut text, std::mem::take(&mut self.inline), needs_text);
        // The thinking before a closing tag was taken from the beginning of the text.
        let mut taken = whole_text - text.len();
        let mut is_behind = false;
        let mut thoughts: Vec<String> = Vec::new();
        let mut slots = Vec::new();
        let mut parts = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            match block {
                Block::Thinking(thought) => {
                    let text = thought.text.clone();
                    if !text.is_empty() {
                        thoughts.push(text.clone());
                    }
                    parts.push(Part::Reasoning { text, payload: thought.payload(self.demanded) });
                }
                Block::Redacted(block) => {
                    let payload = Some(ProviderPayload::untagged(block));
                    parts.push(Part::Reasoning { text: String::new(), payload });
                }
                Block::Text(mut words) => {
                    if is_behind && !words.goes_on && !words.text.is_empty() {
                        taken = taken.saturating_sub(BETWEEN_TEXTS.len());
                    }
                    is_behind |= !words.text.is_empty();
                    let cut = words.text.floor_char_boundary(taken);
                    words.text.drain(..cut);
                    taken -= cut;
                    match words.text {
                        text if text.is_empty() => {}
                        text if finish == Finish::Refused => parts.push(Part::Refusal { text }),
                        text => parts.push(Part::text(text)),
                    }
                }
                Block::Call(called) => {
                    let mut slot = called.into_slot();
                    // The API does not take every name of a property.
                    slot.read_back(&self.renamed);
                    let call = ToolCall { id: slot.id.clone(), name: slot.name.clone(), arguments: String::new() };
                    parts.push(Part::ToolCall(call));
                    slots.push(slot);
                }
            }
        }
        let settled = settle(slots, finish, new_id)?;
        // The calls of a formed reply become its text.
        let parts = if self.formed { Vec::new() } else { settled.parts(parts) };
        let (mut tool_calls, mut finish) = (settled.calls, settled.finish);
        if self.formed && tool_calls.first().is_some_and(|call| call.name == REPLY_TOOL) {
            text = tool_calls.swap_remove(0).arguments;
            tool_calls.clear();
            if finish == Finish::ToolCalls {
                finish = Finish::Stop;
            }
        }
        Ok(Reply {
            text,
            reasoning: joined_thoughts(thoughts.join("\n\n"), inline),
            tool_calls,
            finish,
            usage: usage::read_messages(&Value::Object(self.usage)),
            model: self.model.unwrap_or_else(|| asked.to_owned()),
            parts,
        })
    }
}

/// What an event with this type is.
fn place(kind: &str) -> Place {
    match kind {
        "" => Place::Stray,
        kind if EVENTS.contains(&kind) => Place::Part,
        _ => Place::Named,
    }
}

#[cfg(test)]
mod tests;
