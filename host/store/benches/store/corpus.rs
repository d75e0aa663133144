//! Generated conversations, the same in every run. Words and characters are distributed as in real texts.

use hermes_conversation::{Draft, Model, ToolCall};
use hermes_store::{NewSession, Sort};

/// The average bytes of text of a message.
const LENGTH: usize = 400;
const LATIN: usize = 30_000;
const HAN: u32 = 3_500;

/// A search, with the peer's figures at 10,000, 100,000 and 500,000 messages.
pub(crate) struct Search {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) sort: Sort,
    pub(crate) peer: [Option<f64>; 3],
}

const fn search(name: &'static str, text: &'static str, sort: Sort, peer: [Option<f64>; 3]) -> Search {
    Search { name, text, sort, peer }
}

pub(crate) const SEARCHES: [Search; 17] = [
    search("rare word", "zanzibar", Sort::Rank, [Some(8.1), Some(53.0), Some(41.0)]),
    search("common word", "deployment", Sort::Rank, [Some(36.0), Some(99.0), Some(382.0)]),
    search("common word", "deployment", Sort::Newest, [Some(68.0), Some(141.0), Some(550.0)]),
    search("two words", "deployment kubernetes", Sort::Rank, [Some(32.0), Some(90.0), Some(282.0)]),
    search("phrase", "\"kubernetes deployment\"", Sort::Rank, [Some(31.0), Some(86.0), Some(101.0)]),
    search("beginning", "zanzi*", Sort::Rank, [Some(8.2), Some(41.0), Some(44.0)]),
    search("miss", "nowheretobefound", Sort::Rank, [Some(0.04), Some(0.04), Some(0.04)]),
    search("part of a word", "anziba", Sort::Rank, [None; 3]),
    search("path", "src/main.rs", Sort::Rank, [None; 3]),
    search("signs", "C++", Sort::Rank, [None; 3]),
    search("5 chars, rare", "大别山项目", Sort::Rank, [Some(7.5), Some(42.0), Some(47.0)]),
    search("3 chars, common", "数据库", Sort::Rank, [Some(2.4), Some(26.0), Some(53.0)]),
    search("2 chars, rare", "大别", Sort::Rank, [Some(20.0), Some(169.0), Some(783.0)]),
    search("2 chars, common", "数据", Sort::Rank, [Some(20.0), Some(169.0), Some(783.0)]),
    search("2 chars, common", "数据", Sort::Newest, [Some(20.0), Some(169.0), Some(783.0)]),
    search("1 char", "库", Sort::Rank, [None; 3]),
    search("either", "大别 OR 项目", Sort::Rank, [Some(31.0), Some(286.0), Some(1_468.0)]),
];

/// When a message was said, by its number.
pub(crate) fn time_of(number: u64) -> u64 {
    1_795_300_000_000 + number * 1_000
}

pub(crate) fn session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada/engine".into(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}

pub(crate) struct Corpus {
    state: u64,
    number: u64,
    words: Vec<String>,
}

impl Corpus {
    pub(crate) fn new(seed: u64) -> Self {
        let mut corpus = Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), number: 0, words: Vec::new() };
        const SYLLABLES: [&str; 40] = [
            "an", "ber", "con", "da", "er", "fi", "gra", "he", "in", "jo", "ka", "lo", "men", "na", "or", "pre", "qui",
            "ra", "st", "ti", "un", "ve", "wa", "xi", "yo", "ze", "tion", "ing", "ed", "al", "ble", "cy", "ment",
            "ous", "ser", "ver", "log", "net", "path", "code",
        ];
        for _ in 0..LATIN {
            let syllables = 1 + corpus.below(4);
            let word = (0..syllables).map(|_| SYLLABLES[corpus.below(SYLLABLES.len() as u64) as usize]).collect();
            corpus.words.push(word);
        }
        corpus
    }

    /// The same words in another order.
    pub(crate) fn reordered(mut self, seed: u64) -> Self {
        self.state = self.state.wrapping_add(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        self
    }

    /// One message in five is Chinese; one in ten is a tool call or a result.
    pub(crate) fn draft(&mut self) -> Draft {
        self.number += 1;
        let (number, at) = (self.number, time_of(self.number));
        let mut text = if number % 5 == 0 { self.chinese() } else { self.english() };
        if number % 2_000 == 7 {
            text.push_str(" zanzibar");
        }
        if number % 2_000 == 15 {
            text.push_str("大别山项目");
        }
        let call = || ToolCall {
            id: format!("call_{number}"),
            name: "read_file".into(),
            arguments: format!(r#"{{"path":"src/module_{}/main.rs"}}"#, number % 500),
        };
        match number % 20 {
            3 => Draft::assistant(text, vec![call()], at),
            4 => Draft::result(&call(), text, at),
            n if n % 2 == 0 => Draft::user(text, at),
            _ => Draft::assistant(text, Vec::new(), at),
        }
    }

    /// A question with eight words, rare and common ones.
    pub(crate) fn question(&mut self) -> String {
        format!("When did we speak about the deployment of {}?", self.some_words(8, LATIN))
    }

    /// A question with three words, rare and common ones.
    pub(crate) fn short_question(&mut self) -> String {
        format!("What was it about {}?", self.some_words(3, LATIN))
    }

    /// A question with three of the most common words.
    pub(crate) fn common_question(&mut self) -> String {
        format!("What was it about {}?", self.some_words(3, 30))
    }

    /// Six characters, rare and common ones, and a common word.
    pub(crate) fn chinese_question(&mut self) -> String {
        let characters = (0..6).filter_map(|_| char::from_u32(0x4e00 + self.uneven(u64::from(HAN)) as u32));
        characters.chain("数据库".chars()).collect()
    }

    /// Of the most common words, some.
    fn some_words(&mut self, count: usize, of: usize) -> String {
        let words = (0..count).map(|_| self.uneven(of as u64) as usize).collect::<Vec<_>>();
        words.into_iter().map(|word| self.words[word].as_str()).collect::<Vec<_>>().join(" ")
    }

    fn english(&mut self) -> String {
        let mut text = String::with_capacity(LENGTH + 40);
        let length = LENGTH / 2 + self.below(LENGTH as u64) as usize;
        if self.below(100) < 53 {
            text.push_str("The deployment of the ");
        }
        if self.below(100) < 10 {
            text.push_str("kubernetes deployment ");
        }
        match self.below(300) {
            0 => text.push_str("in C++ and "),
            1 => text.push_str("see src/main.rs:12 for "),
            _ => {}
        }
        while text.len() < length {
            let word = self.uneven(LATIN as u64) as usize;
            text.push_str(&self.words[word].clone());
            text.push_str(if self.below(12) == 0 { ". " } else { " " });
        }
        text
    }

    fn chinese(&mut self) -> String {
        let mut text = String::with_capacity(LENGTH + 40);
        let length = LENGTH / 2 + self.below(LENGTH as u64) as usize;
        while text.len() < length {
            match self.below(60) {
                0 => text.push_str("数据库"),
                1 => text.push_str("项目"),
                2 => text.push_str(" heaptrack "),
                3..8 => text.push('，'),
                _ => text.extend(char::from_u32(0x4e00 + self.uneven(u64::from(HAN)) as u32)),
            }
        }
        text
    }

    /// A random index with Zipf's distribution.
    fn uneven(&mut self, most: u64) -> u64 {
        let share = self.next() as f64 / u64::MAX as f64;
        ((most as f64).powf(share) as u64 - 1).min(most - 1)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
