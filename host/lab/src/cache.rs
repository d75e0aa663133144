//! A provider's prompt cache, simulated.
//!
//! A provider keeps what stands before a mark, under a hash of everything up to there. A request finds the longest such
//! piece that ends at one of its own marks or up to some blocks before one. Reading refreshes its lifetime; what lies
//! between it and the last mark is written; the rest is fresh.

use std::collections::HashMap;

/// Where a prompt could be cut: after each block, the fixed part first.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Of everything up to here.
    pub hash: blake3::Hash,
    /// Tokens up to here.
    pub tokens: f64,
}

/// The cuts of a prompt, made block by block.
#[derive(Debug, Clone)]
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// System prompt and tools, which are the same in every request.
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

    /// The cuts, the fixed part's first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Tokens of the whole prompt.
    pub fn tokens(&self) -> f64 {
        self.links[self.links.len() - 1].tokens
    }

    /// Behind the fixed part and behind each of the last three blocks.
    pub fn marks(&self) -> Vec<usize> {
        let last = self.links.len() - 1;
        let mut marks = vec![0, last.saturating_sub(2), last.saturating_sub(1), last];
        marks.dedup();
        marks
    }
}

/// How a prompt was served.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Served {
    /// Tokens that were read from the cache.
    pub read: f64,
    /// Tokens that were written to it.
    pub written: f64,
    /// Tokens behind the last mark.
    pub fresh: f64,
}

/// What a provider has kept.
#[derive(Debug, Clone)]
pub struct Cache {
    ttl_ms: u64,
    look_back: usize,
    /// Until when, in milliseconds, the end included.
    kept: HashMap<blake3::Hash, u64>,
}

impl Cache {
    /// An empty one.
    pub fn new(ttl_ms: u64, look_back: usize) -> Self {
        Self { ttl_ms, look_back, kept: HashMap::new() }
    }

    /// Serves a prompt with marks at these links.
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

    /// Tokens of a prompt that would be read if it were sent now.
    pub fn warm(&self, now_ms: u64, chain: &Chain) -> f64 {
        self.clone().serve(now_ms, chain, &chain.marks()).read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prompt of blocks of 100 tokens each, named by letters, behind 1,000 that are fixed.
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
    fn a_growing_prompt_is_read_up_to_where_it_ended_before() {
        let mut cache = Cache::new(300_000, 20);
        let mut serve = |now, blocks: &str| {
            let chain = chain(blocks);
            cache.serve(now, &chain, &chain.marks())
        };
        // Worked out by hand: the first is all new; then only what was added is written.
        let table = [
            (0, "a", served(0.0, 1_100.0, 0.0)),
            (1_000, "abc", served(1_100.0, 200.0, 0.0)),
            // 300 s after its last use the end is still there; a millisecond later it is not.
            (301_000, "abcd", served(1_300.0, 100.0, 0.0)),
            (601_001, "abcde", served(0.0, 1_500.0, 0.0)),
            // Another first block: nothing but the fixed part is found.
            (602_000, "xbcde", served(1_000.0, 500.0, 0.0)),
            // The first view again: it has not been forgotten.
            (603_000, "abcde", served(1_500.0, 0.0, 0.0)),
            // Cut back to where no request has ended for more than 300 s.
            (604_000, "ab", served(1_000.0, 200.0, 0.0)),
        ];
        for (now, blocks, expected) in table {
            assert_eq!(serve(now, blocks), expected, "{blocks} at {now}");
        }
    }

    #[test]
    fn what_lies_farther_back_than_the_provider_looks_is_not_found() {
        let long: String = "abcdefghijklmnopqrstuvwxyz".into();
        for (added, found) in [(22, true), (23, false)] {
            let mut cache = Cache::new(300_000, 20);
            let first = chain(&long[..1]);
            cache.serve(0, &first, &first.marks());
            let second = chain(&long[..=added]);
            let expected = if found { 1_100.0 } else { 1_000.0 };
            // The earliest of the last three marks stands two blocks before the end, and looks back twenty from there.
            assert_eq!(cache.serve(1, &second, &second.marks()).read, expected, "{added} blocks more");
        }
    }

    #[test]
    fn reading_refreshes_and_what_is_behind_the_last_mark_is_fresh() {
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
    fn marks_stand_behind_the_fixed_part_and_the_last_three_blocks() {
        assert_eq!(chain("").marks(), [0]);
        assert_eq!(chain("a").marks(), [0, 1]);
        assert_eq!(chain("ab").marks(), [0, 1, 2]);
        assert_eq!(chain("abcde").marks(), [0, 3, 4, 5]);
    }
}
