//! The part of a session's requests that a provider can keep: tools, system prompt, messages, as bytes.
//!
//! A provider reads a request in this order, whatever the order of its keys. So the common bytes of two requests are what its
//! cache can reuse. The bytes only grow; the closing brackets are added when a body is written.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use hermes_conversation::{Role, Shown};

use crate::{
    Breakpoints, LeftOut, Marks, ModelError, Style,
    wire::{Deferred, Written, schema::keys::Renamed},
};

/// A message in the bytes of its wire format, rendered by [`Style::render`].
#[derive(Debug, Clone)]
pub struct Rendered {
    style: Style,
    bytes: Vec<u8>,
    /// Where a mark can be inserted.
    mark: Option<usize>,
    /// The role that owns the blocks, where the format has blocks. Neighbours with the same owner form one message.
    side: Option<Role>,
    step: Step,
    /// Its form in a request with deferred tools, if that differs.
    instead: Option<Instead>,
}

/// The form of a message in a request with deferred tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instead {
    /// The ids of the searches that it asks for, in a format where those are no usual calls.
    pub(crate) searches: Vec<String>,
    /// The id of the search that it answers, in such a format. Results of other calls are written as usual.
    pub(crate) answers: Option<String>,
    /// How it loads the tools that it found, if the request has all of them.
    pub(crate) loading: Option<Loading>,
    /// Its bytes if it loads no tools, where they differ from the usual ones.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// The result of a search, for a request in which all the tools that it found are deferred. The references that load the tools
/// are written between `before` and `after`.
#[derive(Debug, Clone)]
pub(crate) struct Loading {
    pub(crate) tools: Vec<String>,
    pub(crate) before: Vec<u8>,
    pub(crate) after: &'static [u8],
}

/// The role of a message within a run of tools. In some formats, thinking models need their reasoning there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It asks for calls.
    Calls {
        /// Whether it begins with reasoning.
        reasoned: bool,
    },
    /// It is a result.
    Result,
    /// It is anything else.
    Other,
}

impl Rendered {
    /// A complete message.
    pub(crate) fn message(style: Style, bytes: Vec<u8>, mark: Option<usize>) -> Self {
        Self { style, bytes, mark, side: None, step: Step::Other, instead: None }
    }

    /// Blocks of a message of one role.
    pub(crate) fn blocks(style: Style, bytes: Vec<u8>, mark: Option<usize>, side: Role, step: Step) -> Self {
        Self { style, bytes, mark, side: Some(side), step, instead: None }
    }

    /// Adds what it is in a request with deferred tools.
    pub(crate) fn or_instead(self, instead: Option<Instead>) -> Self {
        Self { instead, ..self }
    }

    /// The style in which it is rendered.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Its bytes, without the separators between messages, in a request without deferred tools.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A system prompt, borrowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct System<'a> {
    /// The text; empty for none.
    pub text: &'a str,
    /// How many bytes of `text` are the stable tier, which other sessions share.
    pub stable: usize,
    /// A layer of this call alone, which follows after a blank line; empty for none. A request with another
    /// layer cannot find what follows it in a cache.
    pub ephemeral: &'a str,
}

impl<'a> System<'a> {
    /// A text without tiers.
    pub fn plain(text: &'a str) -> Self {
        Self { text, stable: 0, ephemeral: "" }
    }

    /// Stable tier, the rest, the ephemeral layer. Some formats refuse a blank piece: it is joined to its
    /// neighbour, or left out.
    pub(crate) fn pieces(&self) -> [&'a str; 3] {
        let (stable, rest) = self.text.split_at(self.stable);
        let (stable, rest) = match (stable.trim().is_empty(), rest.trim().is_empty()) {
            (true, true) => ("", ""),
            (true, false) => ("", self.text),
            (false, true) => (self.text, ""),
            (false, false) => (stable, rest),
        };
        let ephemeral = if self.ephemeral.trim().is_empty() { "" } else { self.ephemeral };
        [stable, rest, ephemeral]
    }

    /// The text before the ephemeral layer.
    pub(crate) fn joint(&self) -> &'static str {
        if self.text.trim().is_empty() || self.ephemeral.trim().is_empty() { "" } else { "\n\n" }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.ephemeral.trim().is_empty()
    }
}

/// Why a prefix cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The tool list is not what [`tools_json`](crate::tools_json) writes.
    #[error("the tool list is not valid JSON: {why}")]
    Tools {
        /// The parser's error.
        why: String,
    },
    /// The stable tier ends outside of the system prompt, or within a character.
    #[error("the stable tier of {stable} bytes does not end within the system prompt of {length}")]
    Stable {
        /// As given.
        stable: usize,
        /// Bytes of the system prompt.
        length: usize,
    },
}

impl From<PrefixError> for ModelError {
    fn from(error: PrefixError) -> Self {
        ModelError::unsendable(error.to_string())
    }
}

/// What an offset of a prefix belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The tool list.
    Tools,
    /// The stable tier of the system prompt.
    Stable,
    /// The rest of the system prompt.
    System,
    /// The layer of a single call.
    Ephemeral,
    /// A message, by its index.
    Message(usize),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    end: usize,
    mark: Option<usize>,
    /// The values of the prefix that ends with this message.
    open: Option<Role>,
    unreasoned: bool,
}

/// The tools of a frozen list that are not sent in a style, because their schemas have no form that the server takes.
///
/// # Errors
///
/// [`PrefixError::Tools`].
pub fn left_out(style: Style, tools: &str) -> Result<Vec<LeftOut>, PrefixError> {
    if matches!(tools.trim(), "" | "[]") {
        return Ok(Vec::new());
    }
    let written = style.mode.format().tools(&mut Vec::new(), style, tools);
    written.map(|written| written.left_out).map_err(|error| PrefixError::Tools { why: error.to_string() })
}

/// Offsets that were found while the system prompt was written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemMarks {
    /// Where the stable tier can be marked.
    pub(crate) stable: Option<usize>,
    /// Where the end of what is not ephemeral can be marked.
    pub(crate) whole: Option<usize>,
    /// Where the text of the stable tier ends.
    pub(crate) stable_end: usize,
    /// Where the ephemeral layer begins; the end of the system prompt if there is none.
    pub(crate) ephemeral: usize,
}

/// The bytes of a prefix in the body of a request.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The cacheable part of a session's requests, in the order in which providers read it.
///
/// ```
/// use hermes_models::{Place, Prefix, Style, System};
///
/// let prefix = Prefix::new(Style::PLAIN, "[]", System::plain("be brief"))?;
/// assert_eq!(prefix.bytes(), br#"[{"role":"system","content":"be brief"}"#);
/// assert_eq!(prefix.place(20), Some(Place::System));
/// # Ok::<(), hermes_models::PrefixError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Prefix {
    style: Style,
    /// Shared with the bodies of requests while they are sent.
    bytes: Arc<Vec<u8>>,
    tools: usize,
    system: usize,
    marks: SystemMarks,
    /// How the arguments of calls are read back.
    renamed: Arc<Renamed>,
    /// The tools that results load.
    deferred: Arc<Deferred>,
    /// The ids of searches that are no usual calls.
    searches: BTreeSet<String>,
    entries: Vec<Entry>,
    /// The role whose message can still grow.
    open: Option<Role>,
    /// Whether it ends with results of calls that were asked for without reasoning.
    unreasoned: bool,
    /// No later request has the same prefix, so nothing is marked.
    once: bool,
}

impl Prefix {
    /// Tools, in the frozen form of [`tools_json`](crate::tools_json) (empty or `[]` for none), and a system prompt.
    ///
    /// # Errors
    ///
    /// Every [`PrefixError`].
    pub fn new(style: Style, tools: &str, system: System<'_>) -> Result<Self, PrefixError> {
        if !system.text.is_char_boundary(system.stable) {
            return Err(PrefixError::Stable { stable: system.stable, length: system.text.len() });
        }
        let format = style.mode.format();
        let mut bytes = Vec::new();
        let written = match tools.trim() {
            "" | "[]" => Written::default(),
            tools => {
                let written = format.tools(&mut bytes, style, tools);
                written.map_err(|error| PrefixError::Tools { why: error.to_string() })?
            }
        };
        let end_of_tools = bytes.len();
        let mut marks = format.system(&mut bytes, style, &system);
        if system.pieces()[0].is_empty() {
            marks.stable_end = end_of_tools;
        }
        Ok(Self {
            style,
            tools: end_of_tools,
            system: bytes.len(),
            bytes: Arc::new(bytes),
            marks,
            renamed: Arc::new(written.renamed),
            deferred: Arc::new(written.deferred),
            searches: BTreeSet::new(),
            entries: Vec::new(),
            open: None,
            unreasoned: false,
            once: false,
        })
    }

    /// A single request without tools, which no later request extends. It is never marked, because writing to a cache
    /// would cost more than it saves.
    ///
    /// # Errors
    ///
    /// [`PrefixError::Stable`].
    pub fn of(style: Style, system: System<'_>, messages: &[Shown]) -> Result<Self, PrefixError> {
        let mut prefix = Self { once: true, ..Self::new(style, "", system)? };
        for message in messages {
            prefix.push(&style.render(message));
        }
        Ok(prefix)
    }

    /// Adds a message at the end. It has to be rendered in the prefix's own style.
    pub fn push(&mut self, message: &Rendered) {
        debug_assert_eq!(message.style, self.style, "bytes of one style fit no other");
        let instead = self.instead(message);
        let all = Arc::make_mut(&mut self.bytes);
        match (message.side, self.open) {
            // The list of chat completions, which begins with the system message, has nothing in it yet.
            (None, _) if all.last() == Some(&b'[') => {}
            (None, _) => all.push(b','),
            (side, open) if side == open => all.push(b','),
            (Some(side), open) => {
                let begin = if open.is_some() { "]},{\"role\":\"" } else { "[{\"role\":\"" };
                for piece in [begin, side.as_str(), "\",\"content\":["] {
                    all.extend_from_slice(piece.as_bytes());
                }
                self.open = Some(side);
            }
        }
        self.unreasoned = match message.step {
            Step::Calls { reasoned } => !reasoned,
            Step::Result => self.unreasoned,
            Step::Other => false,
        };
        let begin = all.len();
        let mut mark = message.mark;
        match instead {
            Some(bytes) => {
                // A result is one block, which ends with the result.
                mark = mark.map(|_| bytes.len() - 1);
                all.extend_from_slice(&bytes);
            }
            None => all.extend_from_slice(&message.bytes),
        }
        self.entries.push(Entry {
            end: all.len(),
            mark: mark.map(|mark| begin + mark),
            open: self.open,
            unreasoned: self.unreasoned,
        });
    }

    /// The bytes of a message that are not the usual ones, because the request has deferred tools.
    fn instead<'m>(&mut self, message: &'m Rendered) -> Option<Cow<'m, [u8]>> {
        let instead = message.instead.as_ref().filter(|_| !self.deferred.is_empty())?;
        if instead.answers.as_ref().is_some_and(|call| !self.searches.contains(call)) {
            return None;
        }
        self.searches.extend(instead.searches.iter().cloned());
        let loaded = instead.loading.as_ref().and_then(|result| self.deferred.loading(result));
        loaded.map(Cow::Owned).or_else(|| instead.bytes.as_deref().map(Cow::Borrowed))
    }

    /// The prefix that ends after this many messages: at least one, and at most all.
    pub fn until(&self, messages: usize) -> Cow<'_, Self> {
        let Some(last) = messages.checked_sub(1).and_then(|last| self.entries.get(last)) else {
            return Cow::Borrowed(self);
        };
        if messages == self.entries.len() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            bytes: Arc::new(self.bytes[..last.end].to_vec()),
            entries: self.entries[..messages].to_vec(),
            open: last.open,
            unreasoned: last.unreasoned,
            renamed: Arc::clone(&self.renamed),
            deferred: Arc::clone(&self.deferred),
            searches: self.searches.clone(),
            ..*self
        })
    }

    /// The style in which it is written.
    pub fn style(&self) -> Style {
        self.style
    }

    /// How the arguments of calls are read back.
    pub(crate) fn renamed(&self) -> &Arc<Renamed> {
        &self.renamed
    }

    /// How many messages were pushed.
    pub fn messages(&self) -> usize {
        self.entries.len()
    }

    /// Tools, system prompt and messages in the bytes of the wire format, in this order and without their keys,
    /// without marks, and without the brackets that close a growing list: the bytes of a longer conversation begin with
    /// those of a shorter one with the same start.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// [`Prefix::bytes`] without a copy.
    pub(crate) fn shared(&self) -> Bytes {
        Bytes::from_owner(Shared(Arc::clone(&self.bytes)))
    }

    /// Bytes of the tool list that the model reads only when a result loads them. They do not count as tokens of the prompt.
    pub fn hidden_len(&self) -> usize {
        self.deferred.hidden()
    }

    /// Bytes of the tool list: the text of `tools` in the body.
    pub fn tools_len(&self) -> usize {
        self.tools
    }

    /// Where the text of the system prompt's stable tier ends in [`Prefix::bytes`]; the end of the tools where there
    /// is none.
    pub fn stable_end(&self) -> usize {
        self.marks.stable_end
    }

    /// Where the system prompt ends in [`Prefix::bytes`], its ephemeral layer included.
    pub fn system_end(&self) -> usize {
        self.system
    }

    /// Where the layer of a single call begins in [`Prefix::bytes`]; the end of the system prompt where there is none.
    pub fn ephemeral_start(&self) -> usize {
        self.marks.ephemeral.min(self.system)
    }

    /// Where a message ends in [`Prefix::bytes`].
    pub fn message_end(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|entry| entry.end)
    }

    /// What an offset of [`Prefix::bytes`] belongs to; none after the end.
    pub fn place(&self, offset: usize) -> Option<Place> {
        if offset < self.tools {
            return Some(Place::Tools);
        }
        if offset < self.system {
            return Some(match offset {
                _ if offset < self.marks.stable_end => Place::Stable,
                _ if offset < self.marks.ephemeral => Place::System,
                _ => Place::Ephemeral,
            });
        }
        let index = self.entries.partition_point(|entry| entry.end <= offset);
        (index < self.entries.len()).then_some(Place::Message(index))
    }

    /// The offsets in [`Prefix::bytes`] at which a request is marked: ascending, each once, four at most, none where
    /// the route takes no marks. If a message cannot carry a mark, the nearest one before it does.
    pub fn marks(&self, breakpoints: Breakpoints) -> Vec<usize> {
        if self.style.marks == Marks::None || self.once {
            return Vec::new();
        }
        let up_to = |index: usize| {
            let messages = &self.entries[..self.entries.len().min(index.saturating_add(1))];
            messages.iter().rev().find_map(|entry| entry.mark).or(self.marks.whole)
        };
        let mut marks: Vec<usize> = [
            self.marks.stable,
            breakpoints.summaries.map_or(self.marks.whole, up_to),
            breakpoints.previous.and_then(up_to),
            up_to(self.entries.len()),
        ]
        .into_iter()
        .flatten()
        .collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    /// Whether it ends with results of calls that were asked for without reasoning.
    pub(crate) fn is_unreasoned(&self) -> bool {
        self.unreasoned
    }

    /// The role whose message can still grow, in formats where neighbouring messages of one role become one.
    pub(crate) fn open(&self) -> Option<Role> {
        self.open
    }
}
