//! A simulation of a provider's prompt cache.
//!
//! A provider stores the prompt up to each mark, under a hash of everything up to there. A request finds the longest
//! stored prefix that ends at one of its own marks, or a few blocks before one. Reading a prefix refreshes its lifetime.
//! The part between the prefix and the last mark is written to the cache; the rest is fresh.

use std::collections::HashMap;

/// A position at which a prompt can be cut: after the fixed part, or after a block.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Hash of the prompt up to here.
    pub hash: blake3::Hash,
    /// Tokens of the prompt up to here.
    pub tokens: f64,
}

/// The possible cuts of a prompt, built block by block.
#[derive(Debug, Clone)]
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Starts with system prompt and tools, which are the same in every request.
    pub fn new(fixed_tokens: f64) -> Self {
        Self { links: vec![Link { hash: blake3::hash(b"system prompt and tools"), tokens: fixed_tokens }] }
    }

    /// Adds a block at the end.
    pub fn push(&mut self, hash: &blake3::Hash, tokens: f64) {
        let last = self.links[self.links.len() - 1];
        let mut hasher = blake3::Hasher::new();
        hasher.update(last.hash.as_bytes());
        hasher.update(hash.as_bytes());
        self.links.push(Link { hash: hasher.finalize(), tokens: last.tokens + tokens });
    }

    /// The cuts, beginning with that of the fixed part.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Tokens of the whole prompt.
    pub fn tokens(&self) -> f64 {
        self.links[self.links.len() - 1].tokens
    }

    /// The marks of a request: after the fixed part and after each of the last three blocks.
    pub fn marks(&self) -> Vec<usize> {
        let last = self.links.len() - 1;
        let mut marks = vec![0, last.saturating_sub(2), last.saturating_sub(1), last];
        marks.dedup();
        marks
    }
}

/// How the tokens of a prompt were served.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Served {
    /// Tokens read from the cache.
    pub read: f64,
    /// Tokens written to the cache.
    pub written: f64,
    /// Tokens after the last mark, which the cache does not store.
    pub fresh: f64,
}

/// The contents of a provider's cache.
#[derive(Debug, Clone)]
pub struct Cache {
    ttl_ms: u64,
    look_back: usize,
    /// The last millisecond at which each prefix is still stored.
    kept: HashMap<blake3::Hash, u64>,
}

impl Cache {
    /// An empty cache. A prefix lives for `ttl_ms` after its last use; a lookup goes back `look_back` blocks from a mark.
    pub fn new(ttl_ms: u64, look_back: usize) -> Self {
        Self { ttl_ms, look_back, kept: HashMap::new() }
    }

    /// Serves a prompt with marks at the links with these indices.
    pub fn serve(&mut self, now_ms: u64, chain: &Chain, marks: &[usize]) -> Served {
        let links = chain.links();
        let alive = |at: &usize| self.kept.get(&links[*at].hash).is_some_and(|until| *until >= now_ms);
        let found = marks
            .iter()
            .filter_map(|mark| (mark.saturating_sub(self.look_back)..=*mark).rev().find(|at| alive(at)))
            .max();
        let read = found.map_or(0.0, |at| links[at].tokens);
        let marked = marks.iter().max().map_or(0.0, |mark| links[*mark].tokens).max(read);
        for at in marks.iter().copied().chain(found) {
            self.kept.insert(links[at].hash, now_ms + self.ttl_ms);
        }
        Served { read, written: marked - read, fresh: chain.tokens() - marked }
    }

    /// How many tokens of a prompt would be read from the cache if it were sent now.
    pub fn warm(&self, now_ms: u64, chain: &Chain) -> f64 {
        self.clone().serve(now_ms, chain, &chain.marks()).read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prompt of 1,000 fixed tokens and blocks of 100 tokens each, named by letters.
    fn chain(blocks: &str) -> Chain {
        let mut chain = Chain::new(1_000.0);
        for letter in blocks.bytes() {
            chain.push(&blake3::hash(&[letter]), 100.0);
        }
        chain
    }

    fn served(read: f64, written: f64, fresh: f64) -> Served {
        Served { read, written, fresh }
    }

    #[test]
    fn a_growing_prompt_is_read_up_to_its_previous_end() {
        let mut cache = Cache::new(300_000, 20);
        let mut serve = |now, blocks: &str| {
            let chain = chain(blocks);
            cache.serve(now, &chain, &chain.marks())
        };
        // Worked out by hand: the first prompt is all new; later ones only write the added part.
        let table = [
            (0, "a", served(0.0, 1_100.0, 0.0)),
            (1_000, "abc", served(1_100.0, 200.0, 0.0)),
            // 300 s after its last use the prefix is still stored; one millisecond later it is not.
            (301_000, "abcd", served(1_300.0, 100.0, 0.0)),
            (601_001, "abcde", served(0.0, 1_500.0, 0.0)),
            // With another first block, only the fixed part is found.
            (602_000, "xbcde", served(1_000.0, 500.0, 0.0)),
            // The first view again: it is still stored.
            (603_000, "abcde", served(1_500.0, 0.0, 0.0)),
            // Cut back to a prefix at which no request has ended for more than 300 s.
            (604_000, "ab", served(1_000.0, 200.0, 0.0)),
        ];
        for (now, blocks, expected) in table {
            assert_eq!(serve(now, blocks), expected, "{blocks} at {now}");
        }
    }

    #[test]
    fn a_prefix_beyond_the_look_back_is_not_found() {
        let long: String = "abcdefghijklmnopqrstuvwxyz".into();
        for (added, found) in [(22, true), (23, false)] {
            let mut cache = Cache::new(300_000, 20);
            let first = chain(&long[..1]);
            cache.serve(0, &first, &first.marks());
            let second = chain(&long[..=added]);
            let expected = if found { 1_100.0 } else { 1_000.0 };
            // The earliest of the last three marks is two blocks before the end; the look-back is twenty blocks from there.
            assert_eq!(cache.serve(1, &second, &second.marks()).read, expected, "{added} blocks more");
        }
    }

    #[test]
    fn reading_refreshes_a_prefix_and_tokens_after_the_last_mark_are_fresh() {
        let mut cache = Cache::new(1_000, 20);
        let prompt = chain("abc");
        assert_eq!(cache.serve(0, &prompt, &[0, 1]), served(0.0, 1_100.0, 200.0));
        assert_eq!(cache.serve(900, &prompt, &[0, 1]), served(1_100.0, 0.0, 200.0));
        assert_eq!(cache.serve(1_900, &prompt, &[0, 1]), served(1_100.0, 0.0, 200.0));
        assert_eq!(cache.warm(2_900, &prompt), 1_100.0);
        assert_eq!(cache.warm(2_901, &prompt), 0.0);
        assert_eq!(cache.serve(3_000, &prompt, &[]), served(0.0, 0.0, 1_300.0));
    }

    #[test]
    fn marks_follow_the_fixed_part_and_the_last_three_blocks() {
        assert_eq!(chain("").marks(), [0]);
        assert_eq!(chain("a").marks(), [0, 1]);
        assert_eq!(chain("ab").marks(), [0, 1, 2]);
        assert_eq!(chain("abcde").marks(), [0, 3, 4, 5]);
    }
}
