//! Generates conversations for tests. Each is a function of a seed; one with fewer turns is the beginning of a longer one.

mod words;

use hermes_conversation::media::{Blob, Source};
use hermes_conversation::{BlobId, Draft, Media, Part, ToolCall, closing};

use self::words::Words;

/// Random numbers from a seed (SplitMix64). Written out, so that a seed gives the same conversation in every version.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in this many calls, on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64);
        &from[usize::try_from(at).unwrap_or(0)]
    }
}

/// An event in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "events are passed on one at a time and never stored in bulk")]
pub enum Event {
    /// A message is added. Between two messages the conversation may have open calls.
    Said(Draft),
    /// A request is due: all calls are answered, and the model's reply comes next.
    Request {
        /// Unix time in milliseconds.
        now_ms: u64,
    },
    /// The user rewinds up to this many of the last turns.
    Rewind(u32),
    /// The conversation continues in a branch that shares its history so far.
    Branch,
    /// The process ends normally, and another one resumes the session.
    Restart,
    /// The engine's instance is killed.
    Kill,
    /// The model changes to one with a window of this many tokens.
    Model(u32),
    /// The host's fallback replaces the engine for a while.
    SwitchEngine,
}

impl Event {
    /// The kind of the event, in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Said(_) => "message",
            Self::Request { .. } => "request",
            Self::Rewind(_) => "rewind",
            Self::Branch => "branch",
            Self::Restart => "restart",
            Self::Kill => "kill",
            Self::Model(_) => "model",
            Self::SwitchEngine => "engine",
        }
    }
}

/// The messages and requests of a session with turns of about so many tokens. Every other turn has a tool call. A turn follows
/// within a minute, and after ten of them the user is away for an hour.
pub(crate) fn session(seed: u64, turn_tokens: u32, turns: u32) -> Vec<Event> {
    let mut author = Author {
        words: Words::for_window(turn_tokens),
        dice: Dice::new(seed),
        is_long: false,
        now_ms: 1_767_225_600_000,
        calls: 0,
        events: Vec::new(),
        last: String::new(),
        attached: Dice::new(seed),
    };
    for turn in 0..turns {
        author.pass(if turn % 10 == 9 { 3_600_000 } else { 60_000 });
        let with_call = turn % 2 == 1;
        let asked = if with_call { turn_tokens / 20 } else { turn_tokens * 7 / 10 };
        let text = author.words.prose(&mut author.dice, asked);
        author.say(Draft::user(text, author.now_ms));
        author.request();
        if with_call {
            author.calls += 1;
            let arguments = serde_json::json!({ "path": format!("src/part_{turn}.rs") }).to_string();
            let call = ToolCall { id: format!("call-{}", author.calls), name: "read_file".to_owned(), arguments };
            author.say(Draft::assistant("", vec![call.clone()], author.now_ms));
            author.pass(500);
            let text = author.words.prose(&mut author.dice, turn_tokens * 13 / 20);
            author.say(Draft::result(&call, text, author.now_ms));
            author.request();
        }
        let text = author.words.prose(&mut author.dice, turn_tokens * 3 / 10);
        author.say(Draft::assistant(text, Vec::new(), author.now_ms));
    }
    author.events
}

/// A generated conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its seed.
    pub seed: u64,
    /// The number of turns.
    pub turns: u32,
    /// The first window in tokens: small, so that compaction is necessary.
    pub window: u32,
    /// The events in order.
    pub events: Vec<Event>,
}

impl Scenario {
    /// The conversation of a seed. With fewer turns, it is the beginning of the longer one.
    pub fn new(seed: u64, turns: u32) -> Self {
        let mut dice = Dice::new(seed);
        let is_long = Self::is_long(seed);
        let windows = if is_long { [3_000, 4_000, 8_000, 16_000] } else { [1_500, 1_500, 2_000, 3_000] };
        let window = *dice.pick(&windows);
        let mut author = Author {
            words: Words::for_window(window),
            dice,
            is_long,
            now_ms: 1_767_225_600_000,
            calls: 0,
            events: Vec::new(),
            last: String::new(),
            attached: Dice::new(seed ^ 0x7069_6374_7572_6573),
        };
        for _ in 0..turns {
            author.turn();
        }
        Self { seed, turns, window, events: author.events }
    }

    /// The default number of turns for a seed.
    pub fn usual_turns(seed: u64) -> u32 {
        let mut dice = Dice::new(seed ^ 0x005e_ed0f_7475_726e);
        let (least, most) = if Self::is_long(seed) { (6, 10) } else { (2, 3) };
        least + dice.below(most) as u32
    }

    /// One conversation in twenty has many turns and calls; the others are short, so that many of them can be tested.
    fn is_long(seed: u64) -> bool {
        Dice::new(seed ^ 0x6c6f_6e67).one_in(20)
    }

    /// All messages of the conversation.
    pub fn drafts(&self) -> impl Iterator<Item = &Draft> {
        self.events.iter().filter_map(|event| match event {
            Event::Said(draft) => Some(draft),
            _ => None,
        })
    }
}

struct Author {
    words: Words,
    dice: Dice,
    is_long: bool,
    now_ms: u64,
    calls: u64,
    events: Vec<Event>,
    /// The last user message, which may be repeated.
    last: String,
    /// Pictures and refusals, apart from the other numbers, so that a seed keeps its texts.
    attached: Dice,
}

impl Author {
    fn turn(&mut self) {
        let pause = *self.dice.pick(&[1_000, 20_000, 290_000, 310_000, 4_000_000]);
        self.pass(pause);
        self.event_between_turns();
        let text = if self.dice.one_in(12) { self.last.clone() } else { self.words.user(&mut self.dice) };
        self.last.clone_from(&text);
        let draft = Draft::user(text, self.now_ms);
        let draft = self.attach(draft, 8);
        self.say(draft);
        let groups = if self.is_long { [0, 1, 1, 2, 3, 6] } else { [0, 1, 1, 1, 1, 3] };
        let groups = *self.dice.pick(&groups);
        for _ in 0..groups {
            if !self.group() {
                return;
            }
        }
        self.request();
        if self.dice.one_in(25) {
            // Interrupted before the reply.
            return self.say(Draft::assistant(closing::INTERRUPTED_TURN, Vec::new(), self.now_ms).by_host());
        }
        let reply = if self.dice.one_in(20) { String::new() } else { self.words.assistant(&mut self.dice) };
        let reply = Draft::assistant(reply, Vec::new(), self.now_ms);
        let is_refusal = self.attached.one_in(15) && !reply.content.is_empty();
        let refusal = vec![Part::Refusal { text: reply.content.clone() }];
        self.say(if is_refusal { reply.with_parts(refusal) } else { reply });
    }

    /// The message, once in so many times with a picture; in long conversations also with a file.
    fn attach(&mut self, draft: Draft, times: u64) -> Draft {
        if !self.attached.one_in(times) {
            return draft;
        }
        let number = self.attached.below(1_000);
        let size = 300 + self.attached.below(40_000);
        let is_file = self.is_long && self.attached.one_in(4);
        let (media_type, ending) = if is_file { ("application/pdf", "pdf") } else { ("image/png", "png") };
        let hash = BlobId::of(format!("{number}.{ending}").as_bytes());
        let media = Media {
            source: Source::Blob(Blob { hash, size, bytes: None }),
            media_type: media_type.to_owned(),
            name: Some(format!("chart-{number}.{ending}")),
            width: (!is_file).then_some(64),
            height: (!is_file).then_some(48),
        };
        let part = if is_file { Part::File(media) } else { Part::Image(media) };
        let mut parts = draft.all_parts();
        match parts.first_mut() {
            Some(Part::ToolResult(result)) => result.parts.push(part),
            _ => parts.push(part),
        }
        draft.with_parts(parts)
    }

    /// Adds calls and their results. Returns false if the user interrupted them, and with them the turn.
    fn group(&mut self) -> bool {
        self.request();
        let counts = if self.is_long { [1, 1, 1, 2, 3, 8] } else { [1, 1, 1, 1, 2, 4] };
        let count = *self.dice.pick(&counts);
        let mut calls: Vec<ToolCall> = Vec::new();
        for _ in 0..count {
            self.calls += 1;
            // Some providers number the calls of each message from zero.
            let id = if self.dice.one_in(5) { format!("call_{}", calls.len()) } else { format!("call-{}", self.calls) };
            let (name, arguments) = self.words.call(&mut self.dice);
            calls.push(ToolCall { id, name, arguments });
        }
        let text = if self.dice.one_in(2) { String::new() } else { self.words.assistant(&mut self.dice) };
        let reasoning = self.dice.one_in(6).then(|| self.words.assistant(&mut self.dice));
        self.say(Draft { reasoning, ..Draft::assistant(text, calls.clone(), self.now_ms) });
        let answered = if self.dice.one_in(20) { self.dice.below(count) as usize } else { calls.len() };
        if self.dice.one_in(3) {
            // Results in another order than the calls.
            calls.reverse();
        }
        for (at, call) in calls.iter().enumerate() {
            self.pass(500);
            let draft = if at < answered {
                let result = Draft::result(call, self.words.result(&mut self.dice), self.now_ms);
                self.attach(result, 10)
            } else {
                Draft::result(call, closing::INTERRUPTED_CALL, self.now_ms).by_host()
            };
            self.say(draft);
        }
        if answered < calls.len() {
            self.say(Draft::assistant(closing::INTERRUPTED_TURN, Vec::new(), self.now_ms).by_host());
        }
        answered == calls.len()
    }

    /// May add an event between two turns.
    fn event_between_turns(&mut self) {
        let event = match self.dice.below(40) {
            0 | 1 => Event::Rewind(1 + self.dice.below(3) as u32),
            2 => Event::Branch,
            3 | 4 => Event::Restart,
            5 | 6 => Event::Kill,
            7 => {
                let smallest = if self.is_long { 3_000 } else { 1_500 };
                Event::Model(smallest * *self.dice.pick(&[1, 2, 4, 16]))
            }
            8 => Event::SwitchEngine,
            _ => return,
        };
        self.events.push(event);
    }

    fn request(&mut self) {
        self.pass(2_000);
        self.events.push(Event::Request { now_ms: self.now_ms });
    }

    fn say(&mut self, draft: Draft) {
        self.events.push(Event::Said(draft));
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now_ms += 1 + self.dice.below(milliseconds);
    }
}

#[cfg(test)]
mod tests {
    use hermes_conversation::{Conversation, MessageId, View, render, validity};

    use super::*;

    #[test]
    fn a_seed_gives_one_conversation_and_fewer_turns_give_its_beginning() {
        for seed in 0..50 {
            let long = Scenario::new(seed, 20);
            assert_eq!(long, Scenario::new(seed, 20));
            let short = Scenario::new(seed, 7);
            assert!(long.events.starts_with(&short.events), "seed {seed}");
        }
        assert_ne!(Scenario::new(1, 9).events, Scenario::new(2, 9).events);
    }

    #[test]
    fn conversations_are_valid_and_include_rare_cases() {
        let mut seen = [0; 9];
        for seed in 0..200 {
            let scenario = Scenario::new(seed, Scenario::usual_turns(seed));
            let drafts = scenario.drafts().cloned().zip(1..);
            let conversation = Conversation::new(drafts.map(|(draft, id)| draft.numbered(MessageId(id))));
            let shown = render::render(&conversation, &View::default());
            assert_eq!(validity::check(&shown), Ok(()), "seed {seed}");
            for draft in scenario.drafts() {
                seen[0] += u32::from(draft.tool_calls.len() > 1);
                seen[1] += u32::from(draft.content.len() > 50_000);
                seen[2] += u32::from(draft.content.is_empty());
                seen[3] += u32::from(draft.content.contains('错'));
                seen[4] += u32::from(draft.content.contains('\0'));
                seen[5] += u32::from(draft.content == closing::INTERRUPTED_CALL);
                seen[6] += u32::from(draft.content.contains("[image]"));
            }
            seen[7] += u32::from(scenario.events.iter().any(|event| matches!(event, Event::Rewind(_))));
            seen[8] += u32::from(scenario.events.contains(&Event::Branch));
        }
        assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
    }
}
