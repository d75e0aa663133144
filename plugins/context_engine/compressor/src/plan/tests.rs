//! Plans over conversations of every shape, put before the host's own judge.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use hermes_conversation::plan::{Ground as Judged, verify};
use hermes_conversation::{
    self as host, Conversation, Draft as Said, Item, MessageId, View, last_resort, render, tokens, validity,
};
use hermes_plugin::context_engine::{self as wit, Pressure, Timing};
use hermes_plugin::{Header, Role, ToolCall};
use proptest::prelude::*;

use super::*;
use crate::budget::{Marks, summary_tokens};
use crate::ledger::Ledger;
use crate::preparation::with_words;
use crate::prompt::{self, Circumstances};
use crate::shelf::Shelf;
use crate::shorter;
use crate::testing::pressure;
use crate::timing::{self, Quiet};
use crate::work::{self, Portion};

/// A session as the host keeps it.
struct World {
    conversation: Conversation,
    view: View,
    summaries: HashMap<String, host::Summary>,
    pressure: Pressure,
    config: Config,
    shelf: Shelf,
    jottings: Jottings,
    quiet: Quiet,
    compactions: u32,
    next_id: u64,
    /// Whether anything is prepared.
    works_ahead: bool,
    /// How many new summaries were ready when a plan was asked for, and how many there were.
    ready: (u32, u32),
    /// How much more the provider counts than the estimate says.
    skew: f64,
}

impl Source for World {
    fn messages(&self, range: MessageRange) -> Result<Vec<Message>, Error> {
        let span = self.conversation.span(host::MessageRange::new(MessageId(range.first), MessageId(range.last)));
        let message = |message: &host::Message| Message {
            id: message.id.0,
            role: role(message.role),
            content: message.content.clone(),
            images: 0,
            reasoning: None,
            tool_calls: message.tool_calls.iter().map(call).collect(),
            tool_call_id: message.tool_call_id.clone(),
            tool_name: message.tool_name.clone(),
            tokens: tokens::of_message(message),
            created_at: 0,
            extra: Vec::new(),
        };
        Ok(self.conversation.messages()[span].iter().map(message).collect())
    }

    fn summary(&self, key: &str) -> Result<String, Error> {
        self.summaries.get(key).map(|summary| summary.content.clone()).ok_or_else(|| Error::invalid(key))
    }

    fn count(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

fn call(call: &host::ToolCall) -> ToolCall {
    ToolCall { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() }
}

fn role(role: host::Role) -> Role {
    match role {
        host::Role::System => Role::System,
        host::Role::User => Role::User,
        host::Role::Assistant => Role::Assistant,
        host::Role::Tool => Role::Tool,
    }
}

fn range(range: &host::MessageRange) -> MessageRange {
    MessageRange::new(range.first.0, range.last.0)
}

fn range_back(range: MessageRange) -> host::MessageRange {
    host::MessageRange::new(MessageId(range.first), MessageId(range.last))
}

fn plan_back(plan: &Plan) -> host::Plan {
    let segment = |segment: &Segment| match segment.clone() {
        Segment::Keep(range) => host::Segment::Keep(range_back(range)),
        Segment::Restore(range) => host::Segment::Restore(range_back(range)),
        Segment::Excerpt(excerpt) => host::Segment::Excerpt(host::Excerpt {
            id: MessageId(excerpt.id),
            content: excerpt.content,
            arguments: excerpt.arguments,
        }),
        Segment::Summary(summary) => host::Segment::Summary(host::Summary {
            key: summary.key,
            content: summary.content,
            covers: summary.covers.into_iter().map(range_back).collect(),
        }),
        Segment::KeepSummary(key) => host::Segment::KeepSummary(key),
    };
    host::Plan { segments: plan.segments.iter().map(segment).collect(), reason: plan.reason.clone(), extra: Vec::new() }
}

impl World {
    fn new(window: u32, fixed: u32, config: Config) -> Self {
        Self {
            conversation: Conversation::default(),
            view: View::default(),
            summaries: HashMap::new(),
            pressure: pressure(window, window / 8, fixed),
            config,
            shelf: Shelf::default(),
            jottings: Jottings::default(),
            quiet: Quiet::Off,
            compactions: 0,
            next_id: 3,
            works_ahead: true,
            ready: (0, 0),
            skew: 1.0,
        }
    }

    /// Ids have gaps: other conversations are in the same store.
    fn push(&mut self, said: Said) {
        self.conversation.push(said.numbered(MessageId(self.next_id)));
        self.next_id += 1 + self.next_id % 3;
    }

    fn ledger(&self) -> Ledger {
        let header = |header: &host::Header| Header {
            id: header.id.0,
            role: role(header.role),
            turn: header.turn,
            group: header.group,
            tool_name: header.tool_name.clone(),
            tokens: header.tokens,
            bytes: header.bytes,
            images: 0,
            created_at: 0,
        };
        let headers: Vec<Header> = self.conversation.headers().iter().map(header).collect();
        let mut ledger = Ledger::new();
        ledger.observe(&headers);
        ledger
    }

    /// As the host tells it; of an excerpt it may leave out what it did not change.
    fn items(&self) -> Vec<wit::Item> {
        let item = |(item, tokens): &(Item, u32)| match item {
            Item::Messages(messages) => wit::Item::Messages(range(messages)),
            Item::Excerpt(excerpt) => wit::Item::Excerpt(wit::ShownExcerpt { id: excerpt.id.0, tokens: *tokens }),
            Item::Summary(summary) => wit::Item::Summary(wit::ShownSummary {
                key: summary.key.clone(),
                tokens: *tokens,
                covers: summary.covers.iter().map(range).collect(),
            }),
        };
        // Half of the time the view as it is stored, without what follows it.
        let items = if self.compactions.is_multiple_of(2) {
            self.conversation.items(&self.view)
        } else {
            self.view.items.clone()
        };
        self.conversation.priced(items).iter().map(item).collect()
    }

    fn tokens(&self) -> u32 {
        self.conversation.view_tokens(&self.view)
    }

    /// What messages may take, as the host reckons it.
    fn room(&self) -> u32 {
        let usable = Marks::of(&self.config, &self.pressure).usable;
        share(usable, 1.0 / self.skew).saturating_sub(self.pressure.fixed_tokens)
    }

    fn measure(&mut self) {
        self.pressure.prompt_tokens = share(self.tokens() + self.pressure.fixed_tokens, self.skew);
    }

    /// What the host does before a request.
    fn step(&mut self, has_model: bool) {
        self.measure();
        let marks = Marks::of(&self.config, &self.pressure);
        if self.pressure.prompt_tokens >= marks.prepare && self.works_ahead {
            self.prepare(has_model);
        }
        let ledger = self.ledger();
        let prepared = self.shelf.written(&ledger).or(self.shelf.listed(&ledger)).is_some();
        let mut quiet = self.quiet;
        let timing = timing::propose(&self.pressure, &marks, &mut quiet, prepared);
        self.quiet = quiet;
        if timing != Timing::Now {
            self.jot(&ledger);
        }
        if timing != Timing::NotNow {
            self.propose();
        }
        if self.tokens() > self.room() {
            self.last_resort();
        }
    }

    fn jot(&mut self, ledger: &Ledger) {
        let mut jottings = std::mem::take(&mut self.jottings);
        jottings.take(ledger, self).unwrap();
        self.jottings = jottings;
    }

    fn propose(&mut self) -> Option<u32> {
        self.measure();
        let (ledger, items) = (self.ledger(), self.items());
        let ground = Ground::new(&ledger, &items);
        self.jottings.keep_shown(&ground);
        let before = ground.before();
        assert!(before >= self.tokens(), "the engine takes the view for smaller than it is");
        let marks = Marks::of(&self.config, &self.pressure);
        let needed = timing::is_needed(&self.pressure, &marks);
        let planner = Planner {
            ground: &ground,
            config: &self.config,
            budget: Budget::of(&self.config, &self.pressure, &ground),
            ready: Ready {
                written: self.shelf.written(&ledger),
                listed: self.shelf.listed(&ledger),
                shorter: &self.shelf.shorter,
                jottings: Some(&self.jottings),
            },
            source: &*self,
            needed,
        };
        let draft = planner.plan().unwrap();
        assert_eq!(draft, planner.plan().unwrap(), "the same view gives the same plan");
        let unread = Planner { ready: Ready { jottings: None, ..planner.ready }, ..planner };
        let segments = |draft: &Option<super::Draft>| draft.as_ref().map(|draft| draft.plan.segments.clone());
        assert_eq!(segments(&draft), segments(&unread.plan().unwrap()), "what is read ahead is what would be read");
        let Some(draft) = draft.filter(|draft| draft.is_ready() || needed) else {
            if needed {
                self.assert_nothing_was_to_be_gained(&ground, &planner.budget);
            }
            self.quiet = Quiet::after_nothing(&self.pressure, &marks);
            return None;
        };
        self.adopt(&plan_back(&draft.plan));
        assert!(self.tokens() <= draft.tokens, "{} were promised, it is {}", draft.tokens, self.tokens());
        self.shelf.clear();
        self.ready = (self.ready.0 + draft.ready.0, self.ready.1 + draft.ready.1);
        self.quiet = Quiet::Measuring;
        self.compactions += 1;
        Some(draft.tokens)
    }

    #[track_caller]
    fn adopt(&mut self, plan: &host::Plan) {
        let judged = Judged {
            conversation: &self.conversation,
            view: &self.view,
            summaries: &self.summaries,
            limit: self.room(),
            must_shrink: true,
        };
        let view = verify(plan, &judged).unwrap_or_else(|refusal| panic!("{refusal}: {}", plan.reason));
        for summary in view.summaries() {
            self.summaries.insert(summary.key.clone(), summary.clone());
        }
        self.view = view;
        validity::check(&render::render(&self.conversation, &self.view)).unwrap();
        let prefix = self.view.summaries().map(tokens::of_summary).sum::<u32>();
        assert!(prefix <= crate::budget::PREFIX, "{prefix} tokens of summaries");
    }

    /// None is an answer only where the user's words and the newest group, its results cut if need be, are nearly all
    /// there is.
    fn assert_nothing_was_to_be_gained(&self, ground: &Ground<'_>, budget: &Budget) {
        let ledger = ground.ledger;
        let user = ledger.last_user().map_or(0, |at| ledger.tokens(at..at + 1));
        let newest = ledger.group(ground.len() - 1).map(|at| ground.cost(at));
        let (newest, texts) = if budget.before > budget.limit {
            (newest.map(|tokens| tokens.min(160)).sum::<u32>(), (budget.said + budget.calls + budget.notes) / 4)
        } else {
            (newest.sum::<u32>(), budget.said + budget.calls + budget.notes)
        };
        let least = user + newest + texts + 3 * FRAME + 100;
        assert!(
            least >= share(budget.worth.min(budget.limit), 0.9),
            "{} tokens, {user} of the user, {newest} newest, {texts} for texts: {budget:?}",
            budget.before
        );
    }

    /// Notes by rule, and with a model a summary of the length that was asked for.
    fn prepare(&mut self, has_model: bool) {
        let (ledger, items) = (self.ledger(), self.items());
        let ground = Ground::new(&ledger, &items);
        let budget = Budget::of(&self.config, &self.pressure, &ground);
        let least = share(Marks::of(&self.config, &self.pressure).usable, 0.05).max(150);
        let (written, listed) = (self.shelf.written(&ledger), self.shelf.listed(&ledger));
        let ready = Ready { written, listed, ..Ready::default() };
        let planner = Planner { ground: &ground, config: &self.config, budget, ready, source: &*self, needed: true };
        if let Some(listing) = planner.listing(least).unwrap() {
            let range = MessageRange::new(0, u64::MAX);
            let shorter = shorter::of(&self.messages(range).unwrap(), &*self);
            self.shelf.shorter = shorter;
            self.shelf.listed = Some(Prepared::new(listing.text, listing.tokens, &listing.covers, &ledger, None));
        }
        if !has_model {
            return;
        }
        for _ in 0..=ledger.len() {
            let base = self.shelf.written(&ledger);
            let portion = Portion { input: self.pressure.context_length / 2, least, enough: least };
            let work = work::next(&ground, &self.config, &budget, base, portion, self).unwrap();
            let Some(work) = work else { return };
            assert!(!work.messages.is_empty() && !work.covers.is_empty());
            let around = Circumstances { memory: "tea", now: "go on", focus: Some("boats"), clock: 1, offset: 0 };
            let asked = prompt::request(&work, portion, 500, around, self);
            let read = tokens::of_text(&asked.messages[1].content);
            assert!(read < portion.input + prompt::INSTRUCTIONS + 800, "{read} of {}", portion.input);
            let length = summary_tokens(work.folded, self.pressure.context_length).min(work.folded / 2);
            let text = with_words(words(length as usize, self.compactions as usize), &work, self);
            let count = self.count(&text);
            let written = Prepared::new(text, count, &work.covers, &ledger, None);
            self.shelf.listed.take_if(|listed| listed.last <= written.last);
            self.shelf.written = Some(written);
            if !work.more {
                return;
            }
        }
        panic!("there is always more to summarise");
    }

    fn last_resort(&mut self) {
        let limit = self.room();
        if let Some(plan) = last_resort::plan(&self.conversation, &self.view, &self.summaries, limit) {
            let judged = Judged {
                conversation: &self.conversation,
                view: &self.view,
                summaries: &self.summaries,
                limit,
                must_shrink: false,
            };
            if verify(&plan, &judged).is_ok() {
                self.adopt(&plan);
            }
        }
    }

    /// The user takes back the last turns.
    fn rewind(&mut self, turns: u32) {
        let last = self.conversation.headers().last().map_or(0, |header| header.turn);
        let kept = self.conversation.headers().iter().filter(|header| header.turn + turns <= last).count();
        if kept == 0 {
            return;
        }
        self.conversation = Conversation::new(self.conversation.messages()[..kept].to_vec());
        let newest = self.conversation.messages().last().map(|message| message.id);
        self.view.through = self.view.through.min(newest);
        self.view.items.retain(|item| !matches!(item, Item::Excerpt(excerpt) if Some(excerpt.id) > newest));
        self.shelf.rewound(newest.map_or(0, |id| id.0 + 1));
        let ledger = self.ledger();
        self.jottings.rewound(&ledger);
        self.quiet = Quiet::Off;
    }
}

fn words(count: usize, seed: usize) -> String {
    const WORDS: [&str; 8] = ["ferry", "berth", "late", "tide", "rope", "bell", "chart", "wind"];
    (0..count).map(|at| WORDS[(at * 7 + seed * 3 + at / 5) % WORDS.len()]).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone)]
struct Turn {
    user: usize,
    chinese: bool,
    /// Groups, of calls with words of arguments and of results.
    groups: Vec<Vec<(usize, usize)>>,
    answer: usize,
    rewind: u32,
}

fn say(world: &mut World, turn: &Turn, number: usize, scale: usize, has_model: bool) {
    let text = words((turn.user * scale).max(1), number);
    let text = if turn.chinese { text.replace("ferry ", "渡轮晚点").replace("berth ", "泊位") } else { text };
    world.push(Said::user(text, 0));
    world.step(has_model);
    for (step, group) in turn.groups.iter().enumerate() {
        let calls: Vec<host::ToolCall> = group
            .iter()
            .enumerate()
            .map(|(at, (arguments, _))| host::ToolCall {
                id: format!("call_{number}_{step}_{at}"),
                name: "write_file".into(),
                arguments: format!(r#"{{"path":"notes/{number}.md","content":"{}"}}"#, words(arguments * scale, at)),
            })
            .collect();
        world.push(Said::assistant("Looking.", calls.clone(), 0));
        for (call, (_, result)) in calls.iter().zip(group) {
            world.push(Said::result(call, words(result * scale, step), 0));
        }
        world.step(has_model);
    }
    world.push(Said::assistant(words((turn.answer * scale).max(1), number), Vec::new(), 0));
    if turn.rewind > 0 {
        world.rewind(turn.rewind);
    }
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1..60usize, 4 => 60..500usize, 1 => 500..6_000usize]
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let group = prop::collection::vec((prop_oneof![4 => 0..20usize, 1 => 20..2_000usize], sizes()), 1..4);
    let turn = (
        sizes(),
        any::<bool>(),
        prop::collection::vec(group, 0..5),
        sizes(),
        prop_oneof![9 => Just(0u32), 1 => 1..3u32],
    )
        .prop_map(|(user, chinese, groups, answer, rewind)| Turn { user, chinese, groups, answer, rewind });
    prop::collection::vec(turn, 5..40)
}

fn configs() -> impl Strategy<Value = Config> {
    (0.3..1.0f64, 0.10..0.8f64, 0..10usize, 0..30usize, prop::option::of(0.1..0.9f64)).prop_map(
        |(threshold, target_ratio, protect_first_n, protect_last_n, prepare_at)| Config {
            threshold: Some(threshold),
            target_ratio,
            protect_first_n,
            protect_last_n,
            prepare_at,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_accepted_whatever_was_said(
        turns in turns(),
        window in prop_oneof![4_000..20_000u32, 20_000..200_000u32],
        fixed in 0.0..0.6f64,
        config in prop_oneof![Just(Config::default()), configs()],
        skew in prop_oneof![Just(1.0), 1.0..2.0f64],
        models in prop::collection::vec(any::<bool>(), 40),
        works_ahead in prop::bool::weighted(0.8),
    ) {
        let mut world = World::new(window, share(window, fixed), config);
        world.skew = skew;
        world.works_ahead = works_ahead;
        let scale = (window as usize / 12_000).max(1);
        for (number, turn) in turns.iter().enumerate() {
            say(&mut world, turn, number, scale, models[number]);
        }
        world.pressure.moment = wit::Moment::Manual;
        world.propose();
        world.pressure.moment = wit::Moment::Overflow;
        world.propose();
    }
}

fn ordinary(number: usize) -> Turn {
    let groups = if number.is_multiple_of(3) { vec![vec![(5, 200), (5, 40)]] } else { Vec::new() };
    Turn { user: 150, chinese: false, groups, answer: 200, rewind: 0 }
}

fn hold(world: &mut World, compactions: u32, has_model: bool) -> Vec<u32> {
    let mut after = Vec::new();
    for number in 0.. {
        let before = world.compactions;
        say(world, &ordinary(number), number, 1, has_model);
        if world.compactions > before {
            after.push(world.tokens() + world.pressure.fixed_tokens);
        }
        if world.compactions >= compactions {
            return after;
        }
        assert!(number < 1_000, "{} compactions in a thousand turns", world.compactions);
    }
    after
}

#[test]
fn one_compaction_makes_room_for_many_turns() {
    for has_model in [false, true] {
        let mut world = World::new(12_000, 3_000, Config::default());
        hold(&mut world, 8, has_model);
        let turns = world.conversation.headers().last().unwrap().turn;
        assert!(turns >= 24, "{turns} turns took 8 compactions");
    }
}

#[test]
fn the_first_compaction_keeps_the_first_messages_and_later_ones_fold_them() {
    let mut world = World::new(12_000, 1_000, Config::default());
    world.push(Said::user("Count the ferries, berth by berth.", 0));
    world.push(Said::assistant("I will.", Vec::new(), 0));
    let first = world.conversation.messages()[0].id;
    hold(&mut world, 1, false);
    assert!(matches!(&world.view.items[0], Item::Messages(range) if range.first == first));
    hold(&mut world, 2, false);
    let folded = world.view.summaries().any(|summary| summary.covers.iter().any(|range| range.contains(first)));
    assert!(folded && world.view.summaries().any(|summary| summary.content.contains("Count the ferries")));
}

#[test]
fn what_a_model_wrote_outlives_compactions_without_one() {
    let mut world = World::new(12_000, 1_000, Config::default());
    hold(&mut world, 1, true);
    let written: Vec<String> = world.view.summaries().map(|summary| summary.content.clone()).collect();
    assert!(world.view.summaries().any(|summary| summary.key.starts_with(BY_MODEL)));
    hold(&mut world, 4, false);
    let shown: String = world.view.summaries().map(|summary| summary.content.clone()).collect();
    let beginning: String = written[0].chars().take(100).collect();
    assert!(shown.contains(&beginning), "{beginning} is not in {shown}");
}

#[test]
fn a_summary_that_was_written_ahead_is_used_and_what_is_newer_stays() {
    let mut world = World::new(20_000, 1_000, Config::default());
    hold(&mut world, 1, true);
    let keys: Vec<&str> = world.view.summaries().map(|summary| summary.key.as_str()).collect();
    assert!(keys.len() == 1 && keys[0].starts_with(BY_MODEL), "{keys:?}");
}

#[test]
fn users_words_before_a_long_run_of_tools_stay_in_front_of_the_newest_ones() {
    let mut world = World::new(12_000, 500, Config::default());
    let groups = (0..60).map(|_| vec![(10, 150)]).collect();
    say(&mut world, &Turn { user: 40, chinese: false, groups, answer: 5, rewind: 0 }, 0, 1, false);
    assert!(world.compactions > 1);
    let user = world.conversation.last_user().unwrap().id;
    let at = world.view.items.iter().position(|item| matches!(item, Item::Messages(range) if range.contains(user)));
    let summary = world.view.items.iter().position(|item| matches!(item, Item::Summary(_)));
    assert!(summary < at, "{:?}", world.view.items);
}

#[test]
fn a_result_larger_than_the_window_is_shown_shorter_beside_whole_ones() {
    let mut world = World::new(12_000, 500, Config::default());
    for number in 0..3 {
        say(&mut world, &ordinary(1), number, 1, false);
    }
    let huge = Turn { user: 20, chinese: false, groups: vec![vec![(4, 30_000), (4, 50)]], answer: 5, rewind: 0 };
    say(&mut world, &huge, 9, 1, false);
    let excerpts: Vec<&Item> = world.view.items.iter().filter(|item| matches!(item, Item::Excerpt(_))).collect();
    assert_eq!((excerpts.len(), world.compactions), (1, 1), "{:?}", world.view.items);
    assert!(world.tokens() <= world.room());
}

/// Whether the view shows a message, and if not, whether a summary in it stands for it.
fn is_accounted_for(world: &World, id: MessageId) -> bool {
    world.conversation.items(&world.view).iter().any(|item| match item {
        Item::Messages(range) => range.contains(id),
        Item::Excerpt(excerpt) => excerpt.id == id,
        Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(id)),
    })
}

#[test]
fn after_fifty_compactions_nothing_is_lost_and_no_summary_stands_in_another() {
    for models in [[true, true], [false, false], [true, false]] {
        let mut world = World::new(16_000, 1_000, Config::default());
        for round in 0..50usize {
            let before = world.compactions;
            for number in 0.. {
                assert!(number < 100, "no compaction in a hundred turns");
                world.push(Said::user(format!("Rule {round}.{number}: keep berth {number} free."), 0));
                say(&mut world, &ordinary(number), number, 1, models[round % 2]);
                if world.compactions > before {
                    break;
                }
            }
            let texts: Vec<&str> = world.view.summaries().map(|summary| summary.content.as_str()).collect();
            assert!(texts.len() <= 2, "{} summaries after {round}", texts.len());
            for text in &texts {
                assert!(text.matches("listed by rule").count() <= 1 && text.matches("What the user said").count() <= 1);
            }
            for message in world.conversation.messages() {
                assert!(is_accounted_for(&world, message.id), "{} after {round}", message.id);
            }
        }
        let newest = world.conversation.messages().iter().rev().filter(|message| message.role == host::Role::User);
        let rendered = render::render(&world.conversation, &world.view);
        for message in newest.filter(|message| message.content.starts_with("Rule")).take(4) {
            let shown = rendered.iter().any(|shown| shown.content.contains(&message.content));
            assert!(shown, "{} is not in sight, word for word", message.content);
        }
        assert!(world.ready.0 * 100 >= world.ready.1 * 99, "{:?} were ready", world.ready);
    }
}

#[test]
fn summaries_of_another_engine_stay_or_their_words_are_taken_over() {
    for (count, length, stay) in [(5usize, 20, true), (20, 400, false)] {
        let mut world = World::new(40_000, 1_000, Config::default());
        let turn = Turn { user: 200, chinese: false, groups: Vec::new(), answer: 200, rewind: 0 };
        for number in 0..40 {
            say(&mut world, &turn, number, 1, false);
        }
        let ids: Vec<MessageId> = world.conversation.messages().iter().map(|message| message.id).collect();
        let items = (0..count).map(|at| {
            Item::Summary(host::Summary {
                key: format!("lossless:{at}"),
                content: format!("Segment {at}. {}", words(length, at)),
                covers: vec![host::MessageRange::new(ids[at * 2], ids[at * 2 + 1])],
            })
        });
        world.view = View { items: items.collect(), through: Some(ids[count * 2 - 1]) };
        world.summaries = world.view.summaries().map(|summary| (summary.key.clone(), summary.clone())).collect();
        world.pressure.context_length = 20_000;
        assert!(world.propose().is_some());
        let foreign = world.view.summaries().filter(|summary| summary.key.starts_with("lossless:")).count();
        assert_eq!(foreign == count, stay, "{foreign} stay");
        let shown: String = world.view.summaries().map(|summary| summary.content.clone()).collect();
        assert!(shown.contains("Segment 0.") && shown.contains(&format!("Segment {}.", count - 1)), "{shown}");
    }
}

/// A planner over a conversation of which all but the newest messages are written about, and how often it looks things up.
struct Counting {
    reads: std::cell::Cell<u32>,
    counts: std::cell::Cell<u32>,
}

impl Source for Counting {
    fn messages(&self, _: MessageRange) -> Result<Vec<Message>, Error> {
        self.reads.set(self.reads.get() + 1);
        Ok(Vec::new())
    }

    fn summary(&self, key: &str) -> Result<String, Error> {
        self.reads.set(self.reads.get() + 1);
        Ok(key.to_owned())
    }

    fn count(&self, text: &str) -> u32 {
        self.counts.set(self.counts.get() + 1);
        tokens::of_text(text)
    }
}

fn plan_from_prepared(messages: u64, source: &Counting) -> (usize, std::time::Duration) {
    let all = crate::testing::ledger(&(1..=messages).map(|id| (id, 10)).collect::<Vec<_>>());
    let size = u32::try_from(messages * 10).unwrap();
    let mut pressure = pressure(size * 2, size / 10, 1_000);
    pressure.prompt_tokens = size + 1_000;
    let config = Config { threshold: Some(0.5), ..Config::default() };
    let covers = [MessageRange::new(1, messages * 9 / 10)];
    let written = Prepared::new("## Goal\nBoats.".into(), 5, &covers, &all, None);
    let view = [wit::Item::Messages(MessageRange::new(1, messages))];
    let start = std::time::Instant::now();
    let ground = Ground::new(&all, &view);
    let planner = Planner {
        ground: &ground,
        config: &config,
        budget: Budget::of(&config, &pressure, &ground),
        ready: Ready { written: Some(&written).filter(|written| written.holds(&all)), ..Ready::default() },
        source,
        needed: false,
    };
    let draft = planner.plan().unwrap().unwrap();
    assert!(draft.is_ready());
    (draft.plan.segments.len(), start.elapsed())
}

#[test]
fn a_plan_from_prepared_work_reads_nothing() {
    let source = Counting { reads: 0.into(), counts: 0.into() };
    let (segments, _) = plan_from_prepared(100_000, &source);
    assert_eq!((source.reads.get(), source.counts.get()), (0, 0));
    assert!(segments <= 5, "{segments}");
}

/// `cargo test -p hermes-guest-compressor -- --ignored --nocapture time`
#[test]
#[ignore = "prints times"]
fn time_of_plans_from_prepared_work() {
    let source = Counting { reads: 0.into(), counts: 0.into() };
    for messages in [10_000, 100_000, 1_000_000] {
        let mut times: Vec<_> = (0..200).map(|_| plan_from_prepared(messages, &source).1).collect();
        times.sort_unstable();
        println!("{messages} messages: median {:?}, p99 {:?}", times[100], times[197]);
    }
}

#[test]
fn a_large_old_result_that_stays_is_shown_as_a_line_and_the_newest_are_whole() {
    let config = Config { protect_last_n: 3, target_ratio: 0.1, ..Config::default() };
    let mut world = World::new(40_000, 1_000, config);
    let mut shortened = 0;
    for number in 0..60 {
        let groups = vec![vec![(4, 300)], vec![(200, 30)]];
        say(&mut world, &Turn { user: 20, chinese: false, groups, answer: 20, rewind: 0 }, number, 1, true);
        for item in &world.view.items {
            let Item::Excerpt(excerpt) = item else { continue };
            shortened += 1;
            let newest = world.conversation.messages().iter().rev().take(3).any(|message| message.id == excerpt.id);
            assert!(!newest, "{excerpt:?}");
        }
    }
    assert!(shortened > 0);
}

#[test]
fn nothing_is_proposed_where_there_is_nothing_to_fold() {
    let mut world = World::new(12_000, 500, Config::default());
    world.pressure.moment = wit::Moment::Manual;
    world.push(Said::user("hi", 0));
    assert_eq!(world.propose(), None);
    world.push(Said::assistant("Hello.", Vec::new(), 0));
    world.push(Said::user("bye", 0));
    assert_eq!(world.propose(), None);
}
