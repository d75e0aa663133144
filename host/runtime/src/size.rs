//! The size of a call's input, computed over texts and lists before anything is copied.

use hermes_bindings::exported;
use hermes_bindings::imported::types::{Error, ToolCall};

/// The approximate number of bytes that arrive in the guest's memory: texts, and lists by their elements.
pub(crate) trait Size {
    fn size(&self) -> u64;
}

/// Bytes counted for the fixed fields of a record: a list of empty records takes memory too.
const RECORD: u64 = 16;

impl Size for str {
    fn size(&self) -> u64 {
        self.len() as u64
    }
}

impl Size for String {
    fn size(&self) -> u64 {
        self.len() as u64
    }
}

impl<T: Size> Size for Option<T> {
    fn size(&self) -> u64 {
        self.as_ref().map_or(0, Size::size)
    }
}

impl<T: Size> Size for Vec<T> {
    fn size(&self) -> u64 {
        self.iter().map(|item| RECORD + item.size()).sum()
    }
}

impl Size for (String, String) {
    fn size(&self) -> u64 {
        self.0.size() + self.1.size()
    }
}

impl Size for hermes_bindings::imported::types::MessageRange {
    fn size(&self) -> u64 {
        RECORD
    }
}

impl Size for ToolCall {
    fn size(&self) -> u64 {
        self.id.size() + self.name.size() + self.arguments.size()
    }
}

impl Size for exported::tools::Invocation {
    fn size(&self) -> u64 {
        self.id.size() + self.name.size() + self.arguments.size() + self.extra.size()
    }
}

impl Size for exported::embedder::Request {
    fn size(&self) -> u64 {
        self.texts.size() + self.extra.size()
    }
}

impl Size for exported::hooks::ToolEvent {
    fn size(&self) -> u64 {
        self.call_id.size() + self.name.size() + self.arguments.size() + self.plugin.size() + self.extra.size()
    }
}

impl Size for exported::hooks::Event {
    fn size(&self) -> u64 {
        match self {
            Self::BeforeTool(event) => event.size(),
            Self::AfterTool(done) => done.event.size() + done.content.size(),
            Self::BeforeModel(model) => model.size(),
            Self::AfterModel(reply) => reply.model.size(),
            Self::Other(notice) => notice.name.size() + notice.json.size(),
        }
    }
}

impl Size for exported::context_assist::Draft {
    fn size(&self) -> u64 {
        match self {
            Self::User(text) => text.size(),
            Self::Tool(result) => result.call.size() + result.content.size(),
            Self::Other(name) => name.size(),
        }
    }
}

impl Size for exported::memory_provider::Query {
    fn size(&self) -> u64 {
        self.text.size() + self.extra.size()
    }
}

impl Size for exported::memory_provider::Turn {
    fn size(&self) -> u64 {
        self.session_id.size() + self.user.size() + self.assistant.size() + self.extra.size()
    }
}

impl Size for exported::memory_prefetch::Outlook {
    fn size(&self) -> u64 {
        self.text.size() + self.extra.size()
    }
}

impl Size for exported::memory_mirror::Write {
    fn size(&self) -> u64 {
        self.target.size() + self.text.size() + self.previous.size() + self.extra.size()
    }
}

impl Size for exported::context_engine::Item {
    fn size(&self) -> u64 {
        match self {
            Self::Messages(_) | Self::Excerpt(_) => RECORD,
            Self::Summary(summary) => RECORD + summary.key.size() + summary.covers.size(),
            Self::Other(name) => RECORD + name.size(),
        }
    }
}

impl Size for exported::context_engine::Request {
    fn size(&self) -> u64 {
        self.view.size() + self.focus.size() + self.memory_context.size() + self.extra.size()
    }
}

impl Size for exported::context_engine::Outcome {
    fn size(&self) -> u64 {
        match self {
            Self::Refused(Error { code, message, .. }) => code.size() + message.size(),
            Self::Adopted | Self::Stale | Self::Deferred => 0,
            Self::Other(name) => name.size(),
        }
    }
}
