//! The recall tools of an engine, called as a model would call them.
//!
//! `recall` takes a `query`, in double quotes for an exact phrase, and names messages as `#12`. `expand` takes a `ref`, `#12`
//! for a message's text or `#12/1` for the arguments of its first call, and an `offset`. Its answer is a line that
//! contains `bytes A-B of N`, followed by exactly these bytes.

use std::sync::Arc;

use hermes_conversation::{Conversation, MessageId};
use hermes_plugin_host::{Invocation, Tools};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::needles::{Page, Part, Recall};

const SEARCH: &str = "recall";
const READ: &str = "expand";
const BYTES: &str = "bytes ";

/// The two recall tools of an engine.
pub struct EngineTools<'a> {
    runtime: &'a Runtime,
    tools: Arc<dyn Tools>,
    conversation: &'a Conversation,
    calls: u64,
}

impl<'a> EngineTools<'a> {
    /// `None` if the engine lacks one of the tools.
    pub fn find(
        runtime: &'a Runtime,
        engine: &str,
        tools: &[Arc<dyn Tools>],
        conversation: &'a Conversation,
    ) -> Option<Self> {
        let tools = tools.iter().find(|tools| tools.name() == engine)?;
        let catalog = runtime.block_on(tools.catalog()).ok()?;
        let has = |name: &str| catalog.iter().any(|tool| tool.schema.name == name);
        (has(SEARCH) && has(READ)).then(|| Self { runtime, tools: Arc::clone(tools), conversation, calls: 0 })
    }

    /// Calls a tool of the engine.
    ///
    /// # Errors
    ///
    /// The tool's error.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Result<String, String> {
        self.calls += 1;
        let invocation = Invocation {
            id: format!("lab-{}", self.calls),
            name: name.to_owned(),
            arguments: arguments.to_string(),
            extra: Vec::new(),
        };
        let output = self.runtime.block_on(self.tools.call(invocation));
        output.map(|output| output.content).map_err(|error| error.to_string())
    }

    /// The reference of a message part in the tool's syntax.
    fn reference(&self, id: MessageId, part: Part<'_>) -> Result<String, String> {
        let Part::Arguments(call) = part else { return Ok(format!("#{id}")) };
        let message = self.conversation.get(id).ok_or_else(|| format!("there is no message {id}"))?;
        let at = message.tool_calls.iter().position(|known| known.id == call);
        let at = at.ok_or_else(|| format!("message {id} makes no call `{call}`"))?;
        Ok(format!("#{id}/{}", at + 1))
    }
}

impl Recall for EngineTools<'_> {
    fn search(&mut self, query: &str, phrase: bool) -> Result<Page, String> {
        let query = if phrase { format!("\"{query}\"") } else { query.to_owned() };
        let text = self.call(SEARCH, &json!({ "query": query }))?;
        Ok(Page { ids: references(&text), text })
    }

    fn about(&mut self, id: MessageId) -> Result<String, String> {
        let answer = self.call(READ, &json!({ "ref": format!("#{id}") }))?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    }

    fn part(&mut self, id: MessageId, part: Part<'_>) -> Result<String, String> {
        let reference = self.reference(id, part)?;
        let mut whole = String::new();
        loop {
            let answer = self.call(READ, &json!({ "ref": reference, "offset": whole.len() }))?;
            let (first, bytes) = answer.split_once('\n').unwrap_or((&answer, ""));
            let (from, to, size) =
                byte_range(first).ok_or_else(|| format!("`{READ}` does not say `bytes A-B of N`: {}", start(first)))?;
            if from != whole.len() || to.checked_sub(from) != Some(bytes.len()) {
                return Err(format!("`{READ}` says bytes {from}-{to} and gives {} from {}", bytes.len(), whole.len()));
            }
            whole.push_str(bytes);
            if whole.len() >= size {
                return Ok(whole);
            }
            if bytes.is_empty() {
                return Err(format!("`{READ}` makes no progress at {from} of {size} bytes"));
            }
        }
    }
}

/// Parses `bytes A-B of N`. The last match in the line counts, because a tool's name before it may contain anything.
fn byte_range(line: &str) -> Option<(usize, usize, usize)> {
    let of = |at: usize| {
        let (from, rest) = line[at + BYTES.len()..].split_once('-')?;
        let (to, rest) = rest.split_once(" of ")?;
        let size: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((from.parse().ok()?, to.parse().ok()?, size.parse().ok()?))
    };
    line.rmatch_indices(BYTES).find_map(|(at, _)| of(at))
}

/// The messages that a text names as `#12`.
fn references(text: &str) -> Vec<MessageId> {
    let mut found = Vec::new();
    for piece in text.split('#').skip(1) {
        let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(id) = digits.parse()
            && !found.contains(&MessageId(id))
        {
            found.push(MessageId(id));
        }
    }
    found
}

fn start(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_tools_are_parsed() {
        assert_eq!(byte_range("#12 text, bytes 0-4000 of 12345; more: offset 4000"), Some((0, 4000, 12345)));
        assert_eq!(byte_range("bytes 0-0 of 0"), Some((0, 0, 0)));
        assert_eq!(byte_range("arguments of `bytes 1-2 of 3`, bytes 7-9 of 9"), Some((7, 9, 9)));
        assert_eq!(byte_range("bytes a-b of c"), None);
        assert_eq!(byte_range("nothing found"), None);
        assert_eq!(references("see #3 and #12/1, not # 4; #3 again"), [MessageId(3), MessageId(12)]);
    }
}
