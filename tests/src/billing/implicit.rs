//! A provider that caches prefixes automatically, as for chat completions and the Responses API.

use serde_json::value::RawValue;

use super::{Bill, tokens};
use crate::request::raw_member;

/// Finds the longest prefix shared with an earlier request to the same model, in the providers' reading order: tools, then
/// messages. Never expires. Bills count whole messages.
#[derive(Debug, Default)]
pub struct ImplicitCache {
    seen: Vec<Prompt>,
    silent: bool,
}

/// Overlap with earlier requests: in bytes with the one that shares most text, and in messages with the one of the same model that
/// shares most messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Bytes of tools and messages as written, without the closing bracket of the messages.
    pub of_bytes: usize,
    /// Length of the common prefix with an earlier request to any model: this compares texts, not caches.
    pub bytes: usize,
    /// Number of messages, including the system prompt.
    pub of_messages: usize,
    /// Number of leading messages that a cache can hold; 0 after a change of tools or model.
    pub messages: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Prompt {
    model: String,
    tools: String,
    /// Without the closing bracket, so that a longer list begins with a shorter one.
    messages: String,
    each: Vec<String>,
}

impl ImplicitCache {
    /// A cache that reports its reads.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cache that reports nothing, like many local servers.
    pub fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    pub(crate) fn is_reported(&self) -> bool {
        !self.silent
    }

    pub(crate) fn bill(&mut self, raw: &[u8]) -> Bill {
        let prompt = Prompt::read(raw);
        let most = |of: fn(&Prompt, &Prompt) -> usize| self.seen.iter().map(|earlier| of(&prompt, earlier)).max();
        let overlap = Overlap {
            of_bytes: prompt.bytes(),
            bytes: most(Prompt::common_bytes).unwrap_or(0),
            of_messages: prompt.each.len(),
            messages: most(Prompt::common_messages).unwrap_or(0),
        };
        let bill = Bill {
            prompt: prompt.tokens(prompt.each.len()),
            read: if overlap.messages == 0 { 0 } else { prompt.tokens(overlap.messages) },
            last: prompt.each.last().map_or(0, |message| tokens(message.len())),
            overlap: Some(overlap),
            ..Bill::default()
        };
        self.seen.push(prompt);
        bill
    }
}

impl Prompt {
    fn read(raw: &[u8]) -> Self {
        // The Responses API has the system prompt in a member of its own.
        let [messages, instructions, items] = ["messages", "instructions", "input"].map(|name| raw_member(raw, name));
        let messages = if items.is_empty() { messages } else { items };
        let each: Vec<&RawValue> = serde_json::from_str(messages).unwrap_or_default();
        let prompt = Some(instructions).filter(|instructions| !instructions.is_empty());
        Self {
            model: raw_member(raw, "model").to_owned(),
            tools: raw_member(raw, "tools").to_owned(),
            messages: format!("{instructions}{}", messages.strip_suffix(']').unwrap_or(messages)),
            each: prompt.into_iter().chain(each.into_iter().map(RawValue::get)).map(str::to_owned).collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.tools.len() + self.messages.len()
    }

    /// Tokens of the tools and the first `messages` messages.
    fn tokens(&self, messages: usize) -> u64 {
        tokens(self.tools.len()) + self.each[..messages].iter().map(|message| tokens(message.len())).sum::<u64>()
    }

    fn common_bytes(&self, earlier: &Self) -> usize {
        let tools = common(self.tools.as_bytes(), earlier.tools.as_bytes());
        let all = self.tools == earlier.tools;
        tools + if all { common(self.messages.as_bytes(), earlier.messages.as_bytes()) } else { 0 }
    }

    fn common_messages(&self, earlier: &Self) -> usize {
        let same = self.model == earlier.model && self.tools == earlier.tools;
        if same { common(&self.each, &earlier.each) } else { 0 }
    }
}

fn common<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"[{"name":"a tool of some length"}]"#;

    fn body(model: &str, tools: &str, messages: &[&str]) -> Vec<u8> {
        let messages = messages.join(",");
        format!(r#"{{"messages":[{messages}],"model":"{model}","tools":{tools}}}"#).into_bytes()
    }

    fn overlap(cache: &mut ImplicitCache, body: &[u8]) -> Overlap {
        cache.bill(body).overlap.unwrap()
    }

    #[test]
    fn a_longer_conversation_reads_the_whole_shorter_one_in_any_key_order() {
        let mut cache = ImplicitCache::new();
        let (one, two, three) = (r#"{"role":"system"}"#, r#"{"role":"user"}"#, r#"{"role":"assistant"}"#);
        let first = cache.bill(&body("m", TOOLS, &[one, two]));
        assert_eq!((first.read, first.overlap.unwrap().bytes), (0, 0));
        let again = cache.bill(&body("m", TOOLS, &[one, two]));
        assert_eq!((again.read, again.prompt), (first.prompt, first.prompt));
        let longer = cache.bill(&body("m", TOOLS, &[one, two, three]));
        assert_eq!((longer.read, longer.prompt), (first.prompt, first.prompt + longer.last));
        let overlap = longer.overlap.unwrap();
        assert_eq!(overlap.bytes, TOOLS.len() + 1 + one.len() + 1 + two.len());
        assert_eq!((overlap.messages, overlap.of_messages), (2, 3));
        assert_eq!(overlap.of_bytes, overlap.bytes + 1 + three.len());
    }

    #[test]
    fn instructions_count_as_the_first_message() {
        let mut cache = ImplicitCache::new();
        let body = |instructions: &str, items: &str| {
            format!(r#"{{"model":"m","tools":{TOOLS},"instructions":"{instructions}","input":[{items}]}}"#).into_bytes()
        };
        let (one, two) = (r#"{"role":"user"}"#, r#"{"type":"function_call"}"#);
        let first = cache.bill(&body("You help.", one));
        let longer = cache.bill(&body("You help.", &format!("{one},{two}")));
        assert_eq!((longer.read, longer.prompt), (first.prompt, first.prompt + longer.last));
        assert_eq!((longer.overlap.unwrap().messages, longer.overlap.unwrap().of_messages), (2, 3));
        let changed = overlap(&mut cache, &body("You hold.", one));
        assert_eq!((changed.messages, changed.bytes), (0, TOOLS.len() + r#""You h"#.len()));
    }

    #[test]
    fn bytes_count_into_a_message_but_tokens_do_not() {
        let mut cache = ImplicitCache::new();
        cache.bill(&body("m", TOOLS, &[r#"{"content":"the same words"}"#]));
        let changed = cache.bill(&body("m", TOOLS, &[r#"{"content":"the same word!"}"#]));
        assert_eq!(changed.read, 0);
        assert_eq!(changed.overlap.unwrap().bytes, TOOLS.len() + r#"[{"content":"the same word"#.len());
    }

    #[test]
    fn other_tools_or_another_model_leave_nothing_to_read() {
        let mut cache = ImplicitCache::new();
        let messages = [r#"{"role":"system"}"#];
        cache.bill(&body("m", TOOLS, &messages));
        let other = TOOLS.replace("length", "width");
        let overlap_of_tools = TOOLS.find("length").unwrap();
        let found = overlap(&mut cache, &body("m", &other, &messages));
        assert_eq!((found.bytes, found.messages), (overlap_of_tools, 0));
        let found = overlap(&mut cache, &body("n", TOOLS, &messages));
        assert_eq!((found.bytes, found.messages), (found.of_bytes, 0));
        assert_eq!(overlap(&mut cache, br#"{"model":"m","messages":[{"role":"system"}]}"#).bytes, 0);
    }

    #[test]
    fn the_earlier_request_with_the_largest_overlap_counts() {
        let mut cache = ImplicitCache::new();
        let all = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#];
        cache.bill(&body("m", TOOLS, &all));
        cache.bill(&body("m", TOOLS, &all[..1]));
        assert_eq!(overlap(&mut cache, &body("m", TOOLS, &all)).messages, 3);
    }
}
