//! What a request shows: blocks in order, as a provider's cache and the measures see them.

use std::sync::Arc;

use hermes_conversation::media::Source;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Message, MessageId, Part, Role, Shown, ToolCall};

use crate::passage::{self, Line};

/// A message as a request shows it, with all that is measured of it worked out once.
#[derive(Debug)]
pub struct Block {
    /// Role, calls and linkage; its text is left out.
    frame: Shown,
    /// What the message says, its arguments unescaped.
    text: String,
    /// Of `text`.
    lines: Vec<Line>,
    /// Bytes of `text` that are content.
    content: usize,
    hash: blake3::Hash,
    bytes: u64,
}

impl Block {
    /// Of a rendered message. Reasoning is neither counted nor compared: who wants it back differs by provider.
    pub fn new(shown: Shown) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        let mut take = |text: &str| {
            // The length keeps fields apart.
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
            bytes += text.len() as u64;
        };
        take(&shown.content);
        for call in &shown.tool_calls {
            take(&call.name);
            take(&call.arguments);
            take(&call.id);
        }
        take(shown.tool_call_id.as_deref().unwrap_or_default());
        for part in &shown.parts {
            let inner = match part {
                Part::ToolResult(result) => result.parts.as_slice(),
                other => std::slice::from_ref(other),
            };
            for media in inner.iter().filter_map(Part::media) {
                let name = match &media.source {
                    Source::Blob(blob) => blob.hash.as_str(),
                    Source::Url(url) => url,
                };
                hasher.update(name.as_bytes());
            }
        }
        hasher.update(shown.role.as_str().as_bytes());
        let mut text = shown.content;
        let content = text.len();
        for call in &shown.tool_calls {
            passage::unescape(&call.arguments, &mut text);
        }
        let lines = passage::distinct(&text).into_iter().map(Line::of).collect();
        let bare = |call: ToolCall| ToolCall { arguments: String::new(), ..call };
        let frame = Shown {
            content: String::new(),
            reasoning: None,
            tool_calls: shown.tool_calls.into_iter().map(bare).collect(),
            ..shown
        };
        Self { frame, text, lines, content, hash: hasher.finalize(), bytes }
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.frame.role
    }

    /// The message of the log that it shows.
    pub fn id(&self) -> Option<MessageId> {
        self.frame.id
    }

    /// Bytes of text, calls and ids.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The text without the calls.
    pub fn content(&self) -> &str {
        &self.text[..self.content]
    }

    pub(crate) fn frame(&self) -> &Shown {
        &self.frame
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn hash(&self) -> &blake3::Hash {
        &self.hash
    }
}

/// A new view of the conversation, taken with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Nothing had to be waited for: what it shows was ready before.
    pub prepared: bool,
    /// The host's own last resort, taken because the window was full.
    pub by_rule: bool,
    /// What was done.
    pub note: String,
}

/// What a request shows behind system prompt and tools.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// In order.
    pub blocks: Vec<Arc<Block>>,
    /// There is one when the view is another one than that of the request before.
    pub publication: Option<Publication>,
}

impl Context {
    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }
}

/// Puts appended messages behind the blocks that are there, as the host does.
pub(crate) fn append(blocks: &mut Vec<Arc<Block>>, rendering: &mut Rendering, messages: &[Message]) {
    blocks.extend(rendering.follow(messages).into_iter().map(|shown| Arc::new(Block::new(shown))));
}
