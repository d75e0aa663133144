//! A provider with explicit cache marks, by Anthropic's rules.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Bill, tokens};
use crate::wire::list;

/// Number of blocks before a mark where a written prefix is still found.
const LOOK_BACK: usize = 20;

const FIVE_MINUTES: Duration = Duration::from_secs(5 * 60);
const AN_HOUR: Duration = Duration::from_secs(60 * 60);

/// A prompt is a flat list of blocks: tools, system, messages. A mark on a block writes the prefix that ends there. A request reads
/// the longest written prefix that ends at one of its marks or at most 20 blocks before one. A written prefix lives for five minutes
/// or an hour, and each use renews it.
///
/// Chat completions with marks, as some gateways accept them, follow the same rules.
#[derive(Debug, Default)]
pub struct BreakpointCache {
    now: Duration,
    /// Shorter prefixes are not kept.
    minimum: u64,
    written: HashMap<u64, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    lifetime: Duration,
    until: Duration,
}

/// A block, described by the prefix that it ends.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Hash of the prefix, without marks.
    prefix: u64,
    /// Tokens of the prefix.
    tokens: u64,
    mark: Option<Duration>,
}

impl BreakpointCache {
    /// A cache without a minimum length.
    pub fn new() -> Self {
        Self::default()
    }

    /// A cache that keeps no prefix with fewer tokens.
    pub fn with_minimum(tokens: u64) -> Self {
        Self { minimum: tokens, ..Self::default() }
    }

    /// Advances its clock.
    pub fn advance(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn bill(&mut self, body: &Value) -> Bill {
        let blocks = Blocks::of(body).done;
        let marks: Vec<(usize, Duration)> =
            blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block.mark?))).collect();
        let within_reach = marks.iter().flat_map(|(at, _)| at.saturating_sub(LOOK_BACK)..=*at);
        let read = within_reach.filter(|at| self.lives(blocks[*at].prefix)).max();

        let end_of = |at: usize| blocks[at].tokens;
        let last = blocks.len().checked_sub(1);
        let prompt = last.map_or(0, end_of);
        let mut bill = Bill {
            prompt,
            read: read.map_or(0, end_of),
            last: last.and_then(|last| last.checked_sub(1)).map_or(prompt, |before| prompt - end_of(before)),
            ..Bill::default()
        };
        if let Some(at) = read {
            self.use_again(blocks[at].prefix);
        }
        let mut done = bill.read;
        for (at, lifetime) in marks {
            let Block { prefix, tokens, .. } = blocks[at];
            if tokens < self.minimum {
                continue;
            }
            if self.lives(prefix) {
                self.use_again(prefix);
            } else {
                self.written.insert(prefix, Entry { lifetime, until: self.now + lifetime });
            }
            let new = tokens.saturating_sub(done);
            bill.written += new;
            bill.written_for_an_hour += if lifetime == AN_HOUR { new } else { 0 };
            done = done.max(tokens);
        }
        bill
    }

    fn lives(&self, prefix: u64) -> bool {
        self.written.get(&prefix).is_some_and(|entry| self.now < entry.until)
    }

    fn use_again(&mut self, prefix: u64) {
        if let Some(entry) = self.written.get_mut(&prefix) {
            entry.until = self.now + entry.lifetime;
        }
    }
}

/// The blocks so far.
struct Blocks {
    done: Vec<Block>,
    hash: DefaultHasher,
    tokens: u64,
}

impl Blocks {
    fn of(body: &Value) -> Self {
        let mut blocks = Self { done: Vec::new(), hash: DefaultHasher::new(), tokens: 0 };
        // Models do not share caches.
        body["model"].to_string().hash(&mut blocks.hash);
        for tool in list(&body["tools"]) {
            blocks.push("tools", tool);
        }
        blocks.push_content("system", &body["system"]);
        for message in list(&body["messages"]) {
            let role = message["role"].as_str().unwrap_or_default();
            let answers = message["tool_call_id"].as_str().unwrap_or_default();
            let place = format!("{role} {answers}");
            blocks.push_content(&place, &message["content"]);
            list(&message["tool_calls"]).iter().for_each(|call| blocks.push(&place, call));
        }
        blocks
    }

    /// Adds a content; a plain text counts as one block.
    fn push_content(&mut self, place: &str, content: &Value) {
        match content {
            Value::String(text) => self.push(place, &json!({"type": "text", "text": text})),
            content => list(content).iter().for_each(|block| self.push(place, block)),
        }
    }

    fn push(&mut self, place: &str, block: &Value) {
        let mut block = block.clone();
        let mark = block.as_object_mut().and_then(|block| block.shift_remove("cache_control"));
        let text = block.to_string();
        (place, &text).hash(&mut self.hash);
        self.tokens += tokens(text.len());
        self.done.push(Block {
            prefix: self.hash.finish(),
            tokens: self.tokens,
            mark: mark.filter(Value::is_object).map(|mark| if mark["ttl"] == "1h" { AN_HOUR } else { FIVE_MINUTES }),
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A user message with so many blocks of equal size, some of them marked.
    fn body(blocks: usize, marks: &[usize]) -> Value {
        marked(blocks, marks, &json!({"type": "ephemeral"}))
    }

    fn marked(blocks: usize, marks: &[usize], mark: &Value) -> Value {
        let blocks: Vec<Value> = (0..blocks)
            .map(|number| {
                let mut block = json!({"type": "text", "text": format!("block {number:03}")});
                if marks.contains(&number) {
                    block["cache_control"] = mark.clone();
                }
                block
            })
            .collect();
        json!({"model": "m", "messages": [{"role": "user", "content": blocks}]})
    }

    /// Blocks read, written, and neither.
    fn counts(bill: Bill) -> (u64, u64, u64) {
        let size = tokens(r#"{"type":"text","text":"block 000"}"#.len());
        assert_eq!((bill.last, bill.prompt % size), (size, 0));
        (bill.read / size, bill.written / size, (bill.prompt - bill.read - bill.written) / size)
    }

    #[test]
    fn unmarked_blocks_are_not_kept() {
        let mut cache = BreakpointCache::new();
        for _ in 0..2 {
            assert_eq!(counts(cache.bill(&body(4, &[]))), (0, 0, 4));
        }
    }

    #[test]
    fn a_mark_writes_its_prefix_and_a_longer_request_reads_it() {
        let mut cache = BreakpointCache::new();
        assert_eq!(counts(cache.bill(&body(4, &[2]))), (0, 3, 1));
        assert_eq!(counts(cache.bill(&body(4, &[2]))), (3, 0, 1));
        assert_eq!(counts(cache.bill(&body(8, &[2, 7]))), (3, 5, 0));
        assert_eq!(counts(cache.bill(&body(9, &[8]))), (8, 1, 0));
    }

    #[test]
    fn a_prefix_is_found_up_to_twenty_blocks_before_a_mark() {
        for (length, read) in [(23, 3), (24, 0)] {
            let mut cache = BreakpointCache::new();
            cache.bill(&body(3, &[2]));
            assert_eq!(counts(cache.bill(&body(length, &[length - 1]))).0, read, "{length} blocks");
        }
        // A mark at the end of the earlier request bridges any burst.
        let mut cache = BreakpointCache::new();
        cache.bill(&body(3, &[2]));
        assert_eq!(counts(cache.bill(&body(90, &[2, 89]))), (3, 87, 0));
    }

    /// The tokens lost in a conversation that grows by bursts, given the positions of the marks.
    fn lost(marks: impl Fn(usize, usize) -> Vec<usize>) -> u64 {
        let mut cache = BreakpointCache::new();
        let (mut length, mut before, mut lost) = (3, 0, 0);
        for burst in [2, 2, 80, 2, 41, 2] {
            let previous = length;
            length += burst;
            let bill = cache.bill(&body(length, &marks(previous, length)));
            lost += before - bill.read.min(before);
            before = bill.prompt;
        }
        lost
    }

    #[test]
    fn marks_on_the_last_blocks_alone_lose_a_burst() {
        assert!(lost(|_, length| vec![0, length - 3, length - 2, length - 1]) > 0);
        assert_eq!(lost(|previous, length| vec![0, 1, previous - 1, length - 1]), 0);
    }

    #[test]
    fn nothing_is_found_after_a_mark() {
        let mut cache = BreakpointCache::new();
        cache.bill(&body(10, &[9]));
        assert_eq!(counts(cache.bill(&body(12, &[5]))), (0, 6, 6));
    }

    #[test]
    fn a_changed_block_loses_everything_after_it_and_marks_change_nothing() {
        let mut cache = BreakpointCache::new();
        cache.bill(&body(6, &[1, 3, 5]));
        let mut changed = body(6, &[1, 5]);
        changed["messages"][0]["content"][4]["text"] = json!("block !!!");
        assert_eq!(counts(cache.bill(&changed)), (4, 2, 0));
        changed["messages"][0]["content"][0]["text"] = json!("block !!!");
        assert_eq!(counts(cache.bill(&changed)), (0, 6, 0));
        changed["model"] = json!("n");
        assert_eq!(counts(cache.bill(&changed)), (0, 6, 0));
    }

    #[test]
    fn tools_and_system_precede_the_messages_and_a_text_is_a_block() {
        let mut cache = BreakpointCache::new();
        let tools = json!([{"name": "read_file", "input_schema": {"type": "object"}}]);
        let mark = json!({"type": "ephemeral"});
        let system = json!([{"type": "text", "text": "You help.", "cache_control": mark}]);
        let first = cache.bill(
            &json!({"model": "m", "messages": [{"role": "user", "content": "a"}], "system": system, "tools": tools}),
        );
        assert!(first.written > 0);
        let second = cache.bill(
            &json!({"model": "m", "tools": tools, "system": system, "messages": [{"role": "user", "content": "b"}]}),
        );
        assert_eq!(second.read, first.written);
        let none = cache.bill(&json!({"model": "m", "system": system, "messages": [{"role": "user", "content": "b"}]}));
        assert_eq!(none.read, 0);
        let [text, list] = [json!("a"), json!([{"type": "text", "text": "a"}])]
            .map(|content| Blocks::of(&json!({"messages": [{"role": "user", "content": content}]})).done[0].prefix);
        assert_eq!(text, list);
    }

    #[test]
    fn a_prefix_expires_after_five_minutes_without_use() {
        let mut cache = BreakpointCache::new();
        cache.bill(&body(3, &[2]));
        for _ in 0..3 {
            cache.advance(4 * MINUTE);
            assert_eq!(counts(cache.bill(&body(4, &[2]))).0, 3);
        }
        cache.advance(5 * MINUTE);
        assert_eq!(counts(cache.bill(&body(4, &[2]))), (0, 3, 1));
    }

    #[test]
    fn an_hour_costs_extra_and_lasts_longer() {
        let hour = json!({"type": "ephemeral", "ttl": "1h"});
        let mut cache = BreakpointCache::new();
        let first = cache.bill(&marked(3, &[2], &hour));
        assert_eq!((first.written, first.written_for_an_hour), (first.prompt, first.prompt));
        cache.advance(59 * MINUTE);
        assert_eq!(counts(cache.bill(&marked(3, &[2], &hour))).0, 3);
        cache.advance(60 * MINUTE);
        assert_eq!(counts(cache.bill(&marked(3, &[2], &hour))).0, 0);
    }

    #[test]
    fn a_prefix_below_the_minimum_is_not_kept() {
        let size = tokens(r#"{"type":"text","text":"block 000"}"#.len());
        let mut cache = BreakpointCache::with_minimum(5 * size);
        assert_eq!(counts(cache.bill(&body(6, &[3]))), (0, 0, 6));
        assert_eq!(counts(cache.bill(&body(6, &[3, 4]))), (0, 5, 1));
        assert_eq!(counts(cache.bill(&body(6, &[3, 4]))), (5, 0, 1));
    }

    #[test]
    fn chat_completions_with_marks_are_billed_too() {
        let mut cache = BreakpointCache::new();
        let chat = |more: &[Value]| {
            let mark = json!({"type": "ephemeral"});
            let mut messages = vec![
                json!({"role": "system", "content": [{"type": "text", "text": "You help.", "cache_control": mark}]}),
                json!({"role": "user", "content": "hi"}),
            ];
            messages.extend_from_slice(more);
            json!({"model": "m", "messages": messages})
        };
        let first = cache.bill(&chat(&[]));
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]});
        let second = cache.bill(&chat(&[call, json!({"role": "tool", "tool_call_id": "a", "content": "x"})]));
        assert_eq!((second.read, second.written), (first.written, 0));
        assert!(second.prompt > first.prompt);
    }
}
