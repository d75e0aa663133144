//! Plans over generated conversations, judged by the host's verifier.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use hermes_conversation::plan::{ReferenceState as Judged, verify};
use hermes_conversation::{
    self as host, Conversation, Draft as Said, Item, MessageId, View, last_resort, render, tokens, validity,
};
use hermes_guest_engine::parts;
use hermes_plugin::context_engine::{self as wit, Pressure, Timing};
use hermes_plugin::history::MessageParts;
use hermes_plugin::{Blob, Header, Media, MediaSource, Part, Role, ToolCall};
use proptest::prelude::*;

use super::*;
use crate::budget::{Thresholds, summary_tokens};
use crate::message_index::MessageIndex;
use crate::preparation::with_words;
use crate::prompt::{self, PromptContext};
use crate::shortening;
use crate::storage::SessionState;
use crate::testing::pressure;
use crate::timing::{self, Cooldown};
use crate::work::{self, Portion};

/// A session as the host keeps it.
struct World {
    conversation: Conversation,
    view: View,
    summaries: HashMap<String, host::Summary>,
    pressure: Pressure,
    config: Config,
    state: SessionState,
    entries: RuleEntries,
    cooldown: Cooldown,
    compactions: u32,
    next_id: u64,
    /// Whether prepared work exists.
    works_ahead: bool,
    /// Number of prepared summaries in proposals, and number of all new ones.
    ready: (u32, u32),
    /// Ratio of the provider's token count to the estimate.
    skew: f64,
}

impl Source for World {
    fn messages(&self, range: MessageRange) -> Result<Vec<Message>, Error> {
        let span = self.conversation.span(host::MessageRange::new(MessageId(range.first), MessageId(range.last)));
        let message = |message: &host::Message| Message {
            id: message.id.0,
            role: role(message.role),
            content: message.content.clone(),
            images: message.images(),
            reasoning: None,
            tool_calls: message.tool_calls.iter().map(call).collect(),
            tool_call_id: message.tool_call_id.clone(),
            tool_name: message.tool_name.clone(),
            tokens: tokens::of_message(message),
            created_at: 0,
            extra: Vec::new(),
            author: None,
        };
        let said = &self.conversation.messages()[span];
        let mut messages: Vec<Message> = said.iter().map(message).collect();
        parts::describe(&mut messages, &said.iter().flat_map(parts_of).collect::<Vec<_>>());
        Ok(messages)
    }

    fn summary(&self, key: &str) -> Result<String, Error> {
        self.summaries.get(key).map(|summary| summary.content.clone()).ok_or_else(|| Error::invalid(key))
    }

    fn count(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// The host's descriptions of the pictures in a message.
fn parts_of(message: &host::Message) -> Vec<MessageParts> {
    let image = |media: &host::Media| {
        let blob = media.blob().unwrap();
        Part::Image(Media {
            source: MediaSource::Blob(Blob { hash: blob.hash.to_string(), size: blob.size }),
            media_type: media.media_type.clone(),
            name: media.name.clone(),
            width: media.width,
            height: media.height,
            extra: Vec::new(),
        })
    };
    vec![MessageParts { id: message.id.0, parts: message.media().map(image).collect() }]
}

fn with_a_picture(said: Said) -> Said {
    let picture = host::Part::Image(host::Media::image(b"GIF89a\x01\0\x01\0".to_vec(), Some("ferry.gif")).unwrap());
    let mut parts = said.all_parts();
    match parts.first_mut() {
        Some(host::Part::ToolResult(result)) => result.parts.push(picture),
        _ => parts.push(picture),
    }
    said.with_parts(parts)
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
            keep_images: excerpt.keep_images,
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
            state: SessionState::default(),
            entries: RuleEntries::default(),
            cooldown: Cooldown::Off,
            compactions: 0,
            next_id: 3,
            works_ahead: true,
            ready: (0, 0),
            skew: 1.0,
        }
    }

    /// Appends a message. Ids have gaps, as in a store with several conversations.
    fn push(&mut self, said: Said) {
        self.conversation.push(said.numbered(MessageId(self.next_id)));
        self.next_id += 1 + self.next_id % 3;
    }

    fn index(&self) -> MessageIndex {
        let header = |header: &host::Header| Header {
            id: header.id.0,
            role: role(header.role),
            turn: header.turn,
            group: header.group,
            tool_name: header.tool_name.clone(),
            tokens: header.tokens,
            bytes: header.bytes,
            images: header.images,
            created_at: 0,
            extra: Vec::new(),
        };
        let headers: Vec<Header> = self.conversation.headers().iter().map(header).collect();
        let mut index = MessageIndex::new();
        index.observe(&headers);
        index
    }

    /// The view as the host reports it. It can omit the unchanged parts of an excerpt.
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
        // In half of the cases, without the messages that follow the stored view.
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

    /// Tokens available for messages, as the host computes it.
    fn room(&self) -> u32 {
        let usable = Thresholds::of(&self.config, &self.pressure).usable;
        share(usable, 1.0 / self.skew).saturating_sub(self.pressure.fixed_tokens)
    }

    fn measure(&mut self) {
        self.pressure.prompt_tokens = share(self.tokens() + self.pressure.fixed_tokens, self.skew);
    }

    /// What the host does before a request.
    fn step(&mut self, has_model: bool) {
        self.measure();
        let thresholds = Thresholds::of(&self.config, &self.pressure);
        if self.pressure.prompt_tokens >= thresholds.prepare && self.works_ahead {
            self.prepare(has_model);
        }
        let index = self.index();
        let prepared = self.state.written(&index).or(self.state.listed(&index)).is_some();
        let mut cooldown = self.cooldown;
        let timing = timing::propose(&self.pressure, &thresholds, &mut cooldown, prepared);
        self.cooldown = cooldown;
        if timing != Timing::Now {
            self.jot(&index);
        }
        if timing != Timing::NotNow {
            self.propose();
        }
        if self.tokens() > self.room() {
            self.last_resort();
        }
    }

    fn jot(&mut self, index: &MessageIndex) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.take(index, self).unwrap();
        self.entries = entries;
    }

    fn propose(&mut self) -> Option<u32> {
        self.measure();
        let (index, items) = (self.index(), self.items());
        let current = CurrentView::new(&index, &items);
        self.entries.keep_shown(&current);
        let before = current.before();
        assert!(before >= self.tokens(), "the engine takes the view for smaller than it is");
        let thresholds = Thresholds::of(&self.config, &self.pressure);
        let needed = timing::is_needed(&self.pressure, &thresholds);
        let planner = Planner {
            current: &current,
            config: &self.config,
            budget: Budget::of(&self.config, &self.pressure, &current),
            ready: PreparedWork {
                written: self.state.written(&index),
                listed: self.state.listed(&index),
                shorter: &self.state.shorter,
                entries: Some(&self.entries),
            },
            source: &*self,
            needed,
        };
        let draft = planner.plan().unwrap();
        assert_eq!(draft, planner.plan().unwrap(), "the same view gives the same plan");
        let unread = Planner { ready: PreparedWork { entries: None, ..planner.ready }, ..planner };
        let segments = |draft: &Option<super::PlannedView>| draft.as_ref().map(|draft| draft.plan.segments.clone());
        assert_eq!(segments(&draft), segments(&unread.plan().unwrap()), "what is read ahead is what would be read");
        let Some(draft) = draft.filter(|draft| draft.is_ready() || needed) else {
            if needed {
                self.assert_nothing_was_to_be_gained(&current, &planner.budget);
            }
            self.cooldown = Cooldown::after_nothing(&self.pressure, &thresholds);
            return None;
        };
        self.adopt(&plan_back(&draft.plan));
        assert!(self.tokens() <= draft.tokens, "{} were promised, it is {}", draft.tokens, self.tokens());
        self.state.clear();
        self.ready = (self.ready.0 + draft.ready.0, self.ready.1 + draft.ready.1);
        self.cooldown = Cooldown::Measuring;
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

    /// An empty proposal is correct only if the user's message and the newest group, with its results cut if needed, make
    /// up nearly everything.
    fn assert_nothing_was_to_be_gained(&self, current: &CurrentView<'_>, budget: &Budget) {
        let index = current.index;
        let user = index.last_user().map_or(0, |at| index.tokens(at..at + 1));
        let newest = index.group(current.len() - 1).map(|at| current.cost(at));
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

    /// Prepares a rule-based list and, with a model, a summary of the requested length.
    fn prepare(&mut self, has_model: bool) {
        let (index, items) = (self.index(), self.items());
        let current = CurrentView::new(&index, &items);
        let budget = Budget::of(&self.config, &self.pressure, &current);
        let least = share(Thresholds::of(&self.config, &self.pressure).usable, 0.05).max(150);
        let (written, listed) = (self.state.written(&index), self.state.listed(&index));
        let ready = PreparedWork { written, listed, ..PreparedWork::default() };
        let planner = Planner { current: &current, config: &self.config, budget, ready, source: &*self, needed: true };
        if let Some(listing) = planner.listing(least).unwrap() {
            let range = MessageRange::new(0, u64::MAX);
            let shorter = shortening::of(&self.messages(range).unwrap(), &*self);
            self.state.shorter = shorter;
            self.state.listed = Some(Prepared::new(listing.text, listing.tokens, &listing.covers, &index, None));
        }
        if !has_model {
            return;
        }
        for _ in 0..=index.len() {
            let base = self.state.written(&index);
            let portion = Portion { input: self.pressure.context_length / 2, least, enough: least };
            let work = work::next(&current, &self.config, &budget, base, portion, self).unwrap();
            let Some(work) = work else { return };
            assert!(!work.messages.is_empty() && !work.covers.is_empty());
            let around = PromptContext { memory: "tea", now: "go on", focus: Some("boats"), clock: 1, offset: 0 };
            let asked = prompt::request(&work, portion, 500, around, self);
            let read = tokens::of_text(&asked.messages[1].texts());
            assert!(read < portion.input + prompt::INSTRUCTIONS + 800, "{read} of {}", portion.input);
            let length = summary_tokens(work.folded, self.pressure.context_length).min(work.folded / 2);
            let text = with_words(words(length as usize, self.compactions as usize), &work, self);
            let count = self.count(&text);
            let written = Prepared::new(text, count, &work.covers, &index, None);
            self.state.listed.take_if(|listed| listed.last <= written.last);
            self.state.written = Some(written);
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

    /// The user rewinds some turns.
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
        self.state.rewound(newest.map_or(0, |id| id.0 + 1));
        let index = self.index();
        self.entries.rewound(&index);
        self.cooldown = Cooldown::Off;
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
    /// Groups of calls: words in the arguments and in the result.
    groups: Vec<Vec<(usize, usize)>>,
    answer: usize,
    rewind: u32,
}

fn say(world: &mut World, turn: &Turn, number: usize, scale: usize, has_model: bool) {
    let text = words((turn.user * scale).max(1), number);
    let text = if turn.chinese { text.replace("ferry ", "渡轮晚点").replace("berth ", "泊位") } else { text };
    let said = Said::user(text, 0);
    world.push(if turn.user.is_multiple_of(4) { with_a_picture(said) } else { said });
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
            let said = Said::result(call, words(result * scale, step), 0);
            world.push(if result % 4 == 0 { with_a_picture(said) } else { said });
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
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_accepted(
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
fn a_models_summary_survives_compactions_without_a_model() {
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
fn a_prepared_summary_is_used_and_newer_messages_stay() {
    let mut world = World::new(20_000, 1_000, Config::default());
    hold(&mut world, 1, true);
    let keys: Vec<&str> = world.view.summaries().map(|summary| summary.key.as_str()).collect();
    assert!(keys.len() == 1 && keys[0].starts_with(BY_MODEL), "{keys:?}");
}

#[test]
fn the_users_message_before_a_long_run_of_tools_stays_before_the_newest_messages() {
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
fn a_result_larger_than_the_window_is_cut_beside_whole_ones() {
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

/// Whether the view shows a message or a summary in it covers the message.
fn is_accounted_for(world: &World, id: MessageId) -> bool {
    world.conversation.items(&world.view).iter().any(|item| match item {
        Item::Messages(range) => range.contains(id),
        Item::Excerpt(excerpt) => excerpt.id == id,
        Item::Summary(summary) => summary.covers.iter().any(|range| range.contains(id)),
    })
}

#[test]
fn after_fifty_compactions_nothing_is_lost_and_no_summary_is_nested() {
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
fn another_engines_summaries_stay_or_are_merged() {
    for (count, length, layout) in [(5usize, 20, true), (20, 400, false)] {
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
        assert_eq!(foreign == count, layout, "{foreign} stay");
        let shown: String = world.view.summaries().map(|summary| summary.content.clone()).collect();
        assert!(shown.contains("Segment 0.") && shown.contains(&format!("Segment {}.", count - 1)), "{shown}");
    }
}

/// A planner over a conversation that is summarised except for its newest messages; counts lookups.
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
    let all = crate::testing::index(&(1..=messages).map(|id| (id, 10)).collect::<Vec<_>>());
    let size = u32::try_from(messages * 10).unwrap();
    let mut pressure = pressure(size * 2, size / 10, 1_000);
    pressure.prompt_tokens = size + 1_000;
    let config = Config { threshold: Some(0.5), ..Config::default() };
    let covers = [MessageRange::new(1, messages * 9 / 10)];
    let written = Prepared::new("## Goal\nBoats.".into(), 5, &covers, &all, None);
    let view = [wit::Item::Messages(MessageRange::new(1, messages))];
    let start = std::time::Instant::now();
    let current = CurrentView::new(&all, &view);
    let planner = Planner {
        current: &current,
        config: &config,
        budget: Budget::of(&config, &pressure, &current),
        ready: PreparedWork {
            written: Some(&written).filter(|written| written.holds(&all)),
            ..PreparedWork::default()
        },
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
fn a_large_old_result_becomes_a_line_and_the_newest_stay_whole() {
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
fn nothing_is_proposed_when_there_is_nothing_to_fold() {
    let mut world = World::new(12_000, 500, Config::default());
    world.pressure.moment = wit::Moment::Manual;
    world.push(Said::user("hi", 0));
    assert_eq!(world.propose(), None);
    world.push(Said::assistant("Hello.", Vec::new(), 0));
    world.push(Said::user("bye", 0));
    assert_eq!(world.propose(), None);
}
