//! The context of a request as a list of blocks, which the simulated cache and the measures use.

use std::sync::Arc;

use hermes_conversation::media::Source;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Message, MessageId, Part, Role, Shown, ToolCall};
use hermes_engine_trials::passage::{self, Line};
use hermes_engine_trials::trace::Compaction;
use serde::Serialize;

/// A rendered message, with everything that is measured of it computed once.
#[derive(Debug)]
pub struct Block {
    /// Role, calls and links to other messages, without the text.
    frame: Shown,
    /// The text of the message, with the arguments of its calls unescaped.
    text: String,
    /// The lines of `text`.
    lines: Vec<Line>,
    /// How many bytes of `text` are content.
    content: usize,
    hash: blake3::Hash,
    bytes: u64,
}

impl Block {
    /// A block of a rendered message. Reasoning is neither counted nor compared: providers differ in whether they want it.
    pub fn new(shown: Shown) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        let mut take = |text: &str| {
            // The length separates the fields.
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

    /// The role of the message.
    pub fn role(&self) -> Role {
        self.frame.role
    }

    /// The message of the log that it shows, if any.
    pub fn id(&self) -> Option<MessageId> {
        self.frame.id
    }

    /// Bytes of text, calls and ids together.
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

/// A new view of the conversation, first used by this request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Publication {
    /// The engine had prepared everything: nothing had to be awaited.
    pub prepared: bool,
    /// The host made the view by rule, because the window was full.
    pub by_rule: bool,
    /// The compactions that led to the view, in order.
    pub compactions: Vec<Compaction>,
}

/// The messages of a request, without system prompt and tools.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The blocks in order.
    pub blocks: Vec<Arc<Block>>,
    /// Set if the view differs from that of the previous request.
    pub publication: Option<Publication>,
}

impl Context {
    /// Bytes of all blocks together.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }
}

/// Renders appended messages and adds them to the blocks, as the host does.
pub(crate) fn append(blocks: &mut Vec<Arc<Block>>, rendering: &mut Rendering, messages: &[Message]) {
    blocks.extend(rendering.follow(messages).into_iter().map(|shown| Arc::new(Block::new(shown))));
}
