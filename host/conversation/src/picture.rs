//! A view as a list of stretches: what a request consists of, and what each stretch represents.
//!
//! All numbers are the host's estimates. A view does not know who made a summary and when; the caller passes that in.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{Conversation, Item, MessageId, MessageRange, Summary, View, covers, reminder};

/// Who first put a summary into a view, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Made {
    /// The engine, or `host`.
    pub by: String,
    /// Unix time in milliseconds.
    pub at: u64,
}

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Stretch {
    /// The list of tools.
    Tools {
        /// Tokens.
        tokens: u32,
    },
    /// The system prompt.
    SystemPrompt {
        /// Tokens.
        tokens: u32,
    },
    /// Consecutive messages as they were said.
    Verbatim {
        /// From the first to the last.
        ids: MessageRange,
        /// How many.
        messages: usize,
        /// Tokens.
        tokens: u32,
    },
    /// Consecutive messages, each shortened.
    Shortened {
        /// From the first to the last.
        ids: MessageRange,
        /// How many.
        messages: usize,
        /// Tokens as they are shown.
        tokens: u32,
        /// Tokens as they were said.
        said: u32,
    },
    /// A text that replaces messages.
    Summarised {
        /// Its key.
        key: String,
        /// Who made it, if known.
        made: Option<Made>,
        /// The messages that it covers.
        covers: Vec<MessageRange>,
        /// Messages that it covers and that the view does not show.
        messages: usize,
        /// Tokens as it is shown.
        tokens: u32,
        /// Tokens of those messages as they were said.
        said: u32,
    },
}

impl Stretch {
    /// Its tokens in a request.
    pub fn tokens(&self) -> u32 {
        match self {
            Self::Tools { tokens }
            | Self::SystemPrompt { tokens }
            | Self::Verbatim { tokens, .. }
            | Self::Shortened { tokens, .. }
            | Self::Summarised { tokens, .. } => *tokens,
        }
    }

    /// Whether it belongs to the conversation, not to the part before it.
    fn is_of_view(&self) -> bool {
        !matches!(self, Self::Tools { .. } | Self::SystemPrompt { .. })
    }
}

/// The sums over all stretches of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Messages that are shown or replaced.
    pub messages: usize,
    /// Tokens in a request.
    pub tokens: u32,
    /// Tokens of the same messages as they were said.
    pub said: u32,
}

/// The whole of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Tokens of the tools.
    pub tools: u32,
    /// Tokens of the system prompt.
    pub system_prompt: u32,
    /// Messages as they were said.
    pub verbatim: Sum,
    /// Messages shown shorter.
    pub shortened: Sum,
    /// Messages that only summaries represent, each counted once.
    pub summarised: Sum,
}

impl Sums {
    /// Tokens of a request that consists of these.
    pub fn tokens(&self) -> u32 {
        let view = self.verbatim.tokens.saturating_add(self.shortened.tokens).saturating_add(self.summarised.tokens);
        view.saturating_add(self.tools).saturating_add(self.system_prompt)
    }
}

/// What the next request would consist of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// In the order of the request.
    pub stretches: Vec<Stretch>,
    /// By kind.
    pub sums: Sums,
}

impl Picture {
    /// Draws a view after a system prompt and tools of this many tokens. `made` tells by key where summaries come from.
    pub fn of(
        conversation: &Conversation,
        view: &View,
        (tools, system_prompt): (u32, u32),
        made: &HashMap<String, Made>,
    ) -> Self {
        let items = conversation.items(view);
        let shown = shown(conversation, &items);
        let mut sums = Sums { tools, system_prompt, ..Sums::default() };
        let mut stretches = Vec::new();
        if tools > 0 {
            stretches.push(Stretch::Tools { tokens: tools });
        }
        if system_prompt > 0 {
            stretches.push(Stretch::SystemPrompt { tokens: system_prompt });
        }
        let mut stood_for = HashSet::new();
        for (item, tokens) in &conversation.priced_items(view) {
            let tokens = *tokens;
            match item {
                Item::Messages(range) => {
                    let span = conversation.span(*range);
                    add(&mut sums.verbatim, span.len(), tokens, tokens);
                    extend(&mut stretches, conversation, *range, span.len(), tokens);
                }
                Item::Excerpt(excerpt) => {
                    let range = MessageRange::one(excerpt.id);
                    let said = conversation.item_tokens(&Item::Messages(range));
                    add(&mut sums.shortened, 1, tokens, said);
                    extend_shortened(&mut stretches, conversation, excerpt.id, tokens, said);
                }
                Item::Summary(summary) => {
                    let covered: Vec<usize> = covered(conversation, summary).filter(|at| !shown.contains(at)).collect();
                    let said = |at: &usize| conversation.headers()[*at].tokens;
                    let new: Vec<&usize> = covered.iter().filter(|at| stood_for.insert(**at)).collect();
                    let said_anew = new.iter().map(|at| said(at)).fold(0, u32::saturating_add);
                    add(&mut sums.summarised, new.len(), tokens, said_anew);
                    stretches.push(Stretch::Summarised {
                        key: summary.key.clone(),
                        made: made.get(&summary.key).cloned(),
                        covers: covers::merged(&summary.covers, conversation),
                        messages: covered.len(),
                        tokens,
                        said: covered.iter().map(said).fold(0, u32::saturating_add),
                    });
                }
            }
        }
        Self { stretches, sums }
    }
}

/// A stretch of a new view, and what the old view has in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The stretch of the new view.
    pub stretch: Stretch,
    /// Tokens of the same content in the old view.
    pub before: u32,
}

/// Compares two views: every token of the old view is counted at one stretch of the new one.
pub fn compare(conversation: &Conversation, old: &View, new: &View) -> Vec<Change> {
    let picture = Picture::of(conversation, new, (0, 0), &HashMap::new());
    let stretches = picture.stretches.into_iter().filter(Stretch::is_of_view);
    let mut changes: Vec<Change> = stretches.map(|stretch| Change { stretch, before: 0 }).collect();
    let places = places(conversation, &changes, old);
    let mut count = |place: Option<usize>, tokens: u32| {
        // A verified view accounts for everything. In any other view, the last stretch gets the rest.
        let place = place.unwrap_or_else(|| changes.len().saturating_sub(1));
        if let Some(change) = changes.get_mut(place) {
            change.before = change.before.saturating_add(tokens);
        }
    };
    for (item, tokens) in conversation.priced_items(old) {
        match &item {
            Item::Messages(range) => {
                for at in conversation.span(*range) {
                    count(places.messages[at], conversation.headers()[at].tokens);
                }
            }
            Item::Excerpt(excerpt) => {
                let at = conversation.position(excerpt.id);
                count(at.and_then(|at| places.messages[at]), tokens);
            }
            Item::Summary(summary) => {
                let kept = places.summaries.get(&summary.key).copied();
                let folded = || covered(conversation, summary).find_map(|at| places.messages[at]);
                count(kept.or_else(folded), tokens);
            }
        }
    }
    changes
}

/// The stretches of a view in which the messages and summaries of a conversation are.
struct Places {
    messages: Vec<Option<usize>>,
    summaries: HashMap<String, usize>,
}

fn places(conversation: &Conversation, changes: &[Change], old: &View) -> Places {
    let mut places = Places { messages: vec![None; conversation.messages().len()], summaries: HashMap::new() };
    // A shown message is where it is shown; only for other messages a summary is looked up.
    for (place, change) in changes.iter().enumerate() {
        if let Stretch::Verbatim { ids, .. } | Stretch::Shortened { ids, .. } = &change.stretch {
            places.messages[conversation.span(*ids)].fill(Some(place));
        }
    }
    let kept: HashSet<&str> = old.summaries().map(|summary| summary.key.as_str()).collect();
    // A summary that was there already has folded nothing now, if another one could have.
    for was_there in [false, true] {
        for (place, change) in changes.iter().enumerate() {
            if let Stretch::Summarised { key, covers, .. } = &change.stretch
                && kept.contains(key.as_str()) == was_there
            {
                places.summaries.insert(key.clone(), place);
                for at in covers::spans(covers, conversation).into_iter().flatten() {
                    places.messages[at].get_or_insert(place);
                }
            }
        }
    }
    places
}

/// The tokens of the messages before and after each of these views was made, oldest first, for the conversation at that
/// time.
pub fn steps(conversation: &Conversation, views: &[View]) -> Vec<(u32, u32)> {
    let mut before = &View::default();
    let mut steps = Vec::with_capacity(views.len());
    for view in views {
        let through = view.through;
        steps.push((tokens_through(conversation, before, through), tokens_through(conversation, view, through)));
        before = view;
    }
    steps
}

/// Tokens of a view over the conversation up to a message.
fn tokens_through(conversation: &Conversation, view: &View, through: Option<MessageId>) -> u32 {
    let items = conversation.priced(view.items.clone()).into_iter().map(|(_, tokens)| tokens);
    let end = through.map_or(0, |id| conversation.messages().partition_point(|message| message.id <= id));
    let rest = conversation.after(view);
    let rest = conversation.headers()[rest.start.min(end)..end].iter().map(|header| header.tokens);
    let reminders = reminder::of_view(conversation, view);
    let reminders = reminders.values().map(|reminder| reminder::tokens(reminder));
    items.chain(rest).chain(reminders).fold(0, u32::saturating_add)
}

fn add(sum: &mut Sum, messages: usize, tokens: u32, said: u32) {
    sum.messages += messages;
    sum.tokens = sum.tokens.saturating_add(tokens);
    sum.said = sum.said.saturating_add(said);
}

/// Positions of messages that the view shows, shorter or not.
fn shown(conversation: &Conversation, items: &[Item]) -> HashSet<usize> {
    let ranges = items.iter().filter_map(|item| match item {
        Item::Messages(range) => Some(*range),
        Item::Excerpt(excerpt) => Some(MessageRange::one(excerpt.id)),
        Item::Summary(_) => None,
    });
    ranges.flat_map(|range| conversation.span(range)).collect()
}

/// Positions of messages that a summary covers, each once.
fn covered(conversation: &Conversation, summary: &Summary) -> impl Iterator<Item = usize> {
    covers::spans(&summary.covers, conversation).into_iter().flatten()
}

fn are_neighbours(conversation: &Conversation, first: MessageId, second: MessageId) -> bool {
    let place = |id| conversation.position(id);
    matches!((place(first), place(second)), (Some(first), Some(second)) if first + 1 == second)
}

fn extend(stretches: &mut Vec<Stretch>, conversation: &Conversation, range: MessageRange, count: usize, more: u32) {
    // Ids have gaps: a range ends at existing messages.
    let span = conversation.span(range);
    let Some(here) = conversation.messages().get(span) else { return };
    let (Some(first), Some(last)) = (here.first(), here.last()) else { return };
    if let Some(Stretch::Verbatim { ids, messages, tokens }) = stretches.last_mut()
        && are_neighbours(conversation, ids.last, first.id)
    {
        ids.last = last.id;
        *messages += count;
        *tokens = tokens.saturating_add(more);
        return;
    }
    stretches.push(Stretch::Verbatim { ids: MessageRange::new(first.id, last.id), messages: count, tokens: more });
}

fn extend_shortened(
    stretches: &mut Vec<Stretch>,
    conversation: &Conversation,
    id: MessageId,
    more: u32,
    more_said: u32,
) {
    if let Some(Stretch::Shortened { ids, messages, tokens, said }) = stretches.last_mut()
        && are_neighbours(conversation, ids.last, id)
    {
        ids.last = id;
        *messages += 1;
        *tokens = tokens.saturating_add(more);
        *said = said.saturating_add(more_said);
        return;
    }
    stretches.push(Stretch::Shortened { ids: MessageRange::one(id), messages: 1, tokens: more, said: more_said });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Excerpt, Message};

    /// Messages with the ids 10, 20, …
    fn conversation(count: u64) -> Conversation {
        let text = "one two three four five six seven eight nine ten";
        Conversation::new((1..=count).map(|n| Message { id: MessageId(n * 10), draft: Draft::user(text, n) }))
    }

    fn range(first: u64, last: u64) -> MessageRange {
        MessageRange::new(MessageId(first), MessageId(last))
    }

    fn summary(key: &str, covers: Vec<MessageRange>) -> Item {
        Item::Summary(Summary { key: key.to_owned(), content: "short".to_owned(), covers })
    }

    fn excerpt(id: u64) -> Item {
        Item::Excerpt(Excerpt {
            id: MessageId(id),
            content: Some("one".to_owned()),
            arguments: Vec::new(),
            keep_images: false,
        })
    }

    fn view() -> View {
        let items = vec![
            Item::Messages(range(10, 20)),
            summary("a", vec![range(30, 50)]),
            // Restates a part, and covers what is shown.
            summary("b", vec![range(50, 70), range(10, 10)]),
            excerpt(80),
            excerpt(90),
            Item::Messages(range(100, 100)),
        ];
        View { items, through: Some(MessageId(100)) }
    }

    #[test]
    fn a_view_is_drawn_stretch_by_stretch() {
        let conversation = conversation(12);
        let each = conversation.headers()[0].tokens;
        let made = HashMap::from([("a".to_owned(), Made { by: "compressor".to_owned(), at: 7 })]);
        let Picture { stretches, sums } = Picture::of(&conversation, &view(), (70, 30), &made);
        let [tools, prompt, first, a, b, shorter, last] = &stretches[..] else { panic!("{stretches:?}") };
        assert_eq!((tools.tokens(), prompt.tokens()), (70, 30));
        assert_eq!(first, &Stretch::Verbatim { ids: range(10, 20), messages: 2, tokens: 2 * each });
        assert!(matches!(a, Stretch::Summarised { made: Some(made), messages: 3, said, .. }
            if made.by == "compressor" && *said == 3 * each));
        assert!(matches!(b, Stretch::Summarised { made: None, messages: 3, .. }));
        assert!(matches!(shorter, Stretch::Shortened { ids, messages: 2, said, .. }
            if *ids == range(80, 90) && *said == 2 * each));
        // Messages since the view join the last stretch of verbatim messages.
        assert_eq!(last, &Stretch::Verbatim { ids: range(100, 120), messages: 3, tokens: 3 * each });
        assert_eq!((sums.verbatim.messages, sums.shortened.messages, sums.summarised.messages), (5, 2, 5));
        assert_eq!(sums.summarised.said, 5 * each);
        assert_eq!(sums.tokens(), 100 + conversation.view_tokens(&view()));
    }

    #[test]
    fn a_comparison_puts_each_old_token_where_its_messages_went() {
        let conversation = conversation(12);
        let each = conversation.headers()[0].tokens;
        let of = |item: &Item| conversation.item_tokens(item);
        // As the first of a row.
        let first = |item: &Item| conversation.priced(vec![item.clone()])[0].1;
        let items = vec![
            summary("c", vec![range(10, 70)]),
            Item::Messages(range(80, 80)),
            excerpt(90),
            Item::Messages(range(100, 120)),
        ];
        let new = View { items, through: Some(MessageId(120)) };
        let changes = compare(&conversation, &view(), &new);
        let before: Vec<u32> = changes.iter().map(|change| change.before).collect();
        let folded = 2 * each + first(&summary("a", vec![range(30, 50)])) + of(&summary("b", vec![range(50, 70)]));
        assert_eq!(before, [folded, of(&excerpt(80)), of(&excerpt(90)), 3 * each]);
        let kept = View { items: vec![summary("a", vec![range(30, 50)]), summary("d", vec![range(10, 120)])], ..new };
        let before: Vec<u32> = compare(&conversation, &view(), &kept).iter().map(|change| change.before).collect();
        assert_eq!(before[0], first(&summary("a", vec![range(30, 50)])));
        assert_eq!(before.iter().sum::<u32>(), conversation.view_tokens(&view()));
    }

    #[test]
    fn steps_are_of_the_conversation_as_it_stood() {
        let conversation = conversation(12);
        let each = conversation.headers()[0].tokens;
        let first = View { items: vec![summary("a", vec![range(10, 40)])], through: Some(MessageId(40)) };
        let short = conversation.priced(first.items.clone())[0].1;
        assert_eq!(
            steps(&conversation, &[first.clone(), view()]),
            [(4 * each, short), (short + 6 * each, conversation.view_tokens(&view()) - 2 * each)]
        );
        assert_eq!(steps(&conversation, &[]), []);
        assert_eq!(steps(&conversation, &[View::default()]), [(0, 0)]);
    }
}
