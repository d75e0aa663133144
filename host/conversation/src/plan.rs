//! The plan that a context engine proposes, and the only check between a plan and the view.

mod limits;

use std::collections::{HashMap, HashSet};

pub use limits::{BESIDE_MESSAGES, MOST_TEXT, parts_limit};

use crate::{
    Conversation, Excerpt, Item, MessageId, MessageRange, Summary, View, covers, one_line_within, reminder, tokens,
};

/// A part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Messages of the view as it shows them, excerpts included.
    Keep(MessageRange),
    /// Messages in full that are folded or shortened in the view.
    Restore(MessageRange),
    /// A shortened message.
    Excerpt(Excerpt),
    /// A new summary.
    Summary(Summary),
    /// A summary that is or was in a view of the conversation, by its key.
    KeepSummary(String),
}

impl Segment {
    /// The last message that it shows.
    fn last_shown(&self) -> Option<MessageId> {
        match self {
            Self::Keep(range) | Self::Restore(range) => Some(range.last),
            Self::Excerpt(excerpt) => Some(excerpt.id),
            Self::Summary(_) | Self::KeepSummary(_) => None,
        }
    }
}

/// A new view of a conversation. Messages that the plan does not name leave the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order of the view.
    pub segments: Vec<Segment>,
    /// One line for the user: what was done, and why now.
    pub reason: String,
    /// Further information of the engine, by key: `prepared` is `n/m` if n of m new texts were ready in advance.
    pub extra: Vec<(String, String)>,
}

impl Plan {
    /// Adapts the plan to messages that were appended since it was made: messages after `through` follow in full. If
    /// the engine already knew some of them, they stay where the engine put them.
    ///
    /// `None` if the plan was made for another conversation, because messages were rewound.
    pub fn rebase(mut self, through: Option<MessageId>, conversation: &Conversation) -> Option<Self> {
        let start = match through {
            Some(through) => conversation.position(through)? + 1,
            None => 0,
        };
        let shown = self.segments.iter().filter_map(Segment::last_shown).max();
        let start = shown.map_or(start, |last| start.max(conversation.span(MessageRange::one(last)).end));
        if let [first, .., last] | [first @ last] = &conversation.messages()[start..] {
            self.segments.push(Segment::Keep(MessageRange::new(first.id, last.id)));
        }
        Some(self)
    }
}

/// The state against which a plan is checked.
pub struct ReferenceState<'a> {
    /// The log.
    pub conversation: &'a Conversation,
    /// The view in force.
    pub view: &'a View,
    /// Every summary that is or was in a view of the conversation, by its key.
    pub summaries: &'a HashMap<String, Summary>,
    /// The limit for the messages of a request, in tokens.
    pub limit: u32,
    /// Whether the new view must be smaller than the old one. It need not be if the provider's cache is cold or breaks
    /// anyway.
    pub must_shrink: bool,
}

/// The rule that a plan violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has more segments, or more ranges of covered messages, than a view of the conversation can need.
    #[error("the plan has {parts} segments or covered ranges; a plan for this conversation has at most {most}")]
    TooManyParts {
        /// Segments or ranges.
        parts: usize,
        /// The limit.
        most: usize,
    },
    /// Its texts are larger than any window.
    #[error("the texts of the plan have {bytes} bytes; a plan has at most {MOST_TEXT}")]
    TooMuchText {
        /// Bytes of texts and keys.
        bytes: usize,
    },
    /// A range contains no message of the conversation.
    #[error("no message of this conversation lies in {0}")]
    NoSuchMessage(MessageRange),
    /// `Keep` names a message that the view does not show.
    #[error("message {0} is not in the view: it can be restored, not kept")]
    NotInView(MessageId),
    /// A message appears twice, or after a later one.
    #[error("message {0} stands twice or out of order")]
    Order(MessageId),
    /// A message would be lost.
    #[error("message {0} is neither shown nor covered by a summary")]
    Uncovered(MessageId),
    /// A call would be separated from its results.
    #[error("the tool call of message {0} is split from its results")]
    SplitGroup(MessageId),
    /// The newest message of the user would not be shown in full.
    #[error("the newest message of the user, {0}, is not shown as it was said")]
    LastUser(MessageId),
    /// A known key is used with another text or other covers.
    #[error("the summary `{0}` was used before with another text or other covers")]
    KeyChanged(String),
    /// A key is empty, too long, or used twice.
    #[error("the summary key `{0}` is empty, longer than 200 bytes, or stands twice")]
    Key(String),
    /// `KeepSummary` names a key that no view had.
    #[error("no summary has the key `{0}`")]
    NoSuchSummary(String),
    /// A summary covers no message.
    #[error("the summary `{0}` has no text or covers nothing")]
    EmptySummary(String),
    /// An excerpt is not a shorter rendering of its message.
    #[error("the excerpt of message {id}: {why}")]
    Excerpt {
        /// The message.
        id: MessageId,
        /// The reason.
        why: &'static str,
    },
    /// The new view does not fit the window.
    #[error("the new view takes {tokens} tokens, {limit} fit")]
    TooLarge {
        /// Estimate for the new view.
        tokens: u32,
        /// The limit.
        limit: u32,
    },
    /// The new view is not smaller than the old one.
    #[error("the new view takes {tokens} tokens, the old one {before}")]
    NotSmaller {
        /// Estimate for the new view.
        tokens: u32,
        /// Estimate for the old one.
        before: u32,
    },
}

impl Refusal {
    /// A short name of the rule, stable across versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooManyParts { .. } => "too-many-parts",
            Self::TooMuchText { .. } => "too-much-text",
            Self::NoSuchMessage(_) => "no-such-message",
            Self::NotInView(_) => "not-in-view",
            Self::Order(_) => "order",
            Self::Uncovered(_) => "uncovered",
            Self::SplitGroup(_) => "split-group",
            Self::LastUser(_) => "last-user",
            Self::KeyChanged(_) => "key-changed",
            Self::Key(_) => "key",
            Self::NoSuchSummary(_) => "no-such-summary",
            Self::EmptySummary(_) => "empty-summary",
            Self::Excerpt { .. } => "excerpt",
            Self::TooLarge { .. } => "too-large",
            Self::NotSmaller { .. } => "not-smaller",
        }
    }

    /// The tokens that the new view takes and the most that it may take, if its size is why.
    pub fn size(&self) -> Option<(u32, u32)> {
        match *self {
            Self::TooLarge { tokens, limit } => Some((tokens, limit)),
            Self::NotSmaller { tokens, before } => Some((tokens, before.saturating_sub(1))),
            _ => None,
        }
    }
}

/// The view that a plan makes, or the first rule that it violates.
///
/// The limits of a plan are checked first, so that the work is linear in the conversation and the view in force, whatever
/// the plan contains.
pub fn verify(plan: &Plan, ground: &ReferenceState<'_>) -> Result<View, Refusal> {
    limits::check(plan, ground.conversation)?;
    let items = items(plan, ground)?;
    check_coverage(&items, ground.conversation)?;
    check_groups(&items, ground.conversation)?;
    check_last_user(&items, ground.conversation)?;
    let view = View { items, through: ground.conversation.messages().last().map(|message| message.id) };
    check_size(&view, ground)?;
    Ok(view)
}

/// The most tokens of a view that fits and is small enough, whatever results with reminders it hides.
pub fn room(ground: &ReferenceState<'_>) -> u32 {
    let smaller = match ground.must_shrink {
        true => ground.conversation.view_tokens(ground.view).saturating_sub(1),
        false => u32::MAX,
    };
    ground.limit.min(smaller).saturating_sub(reminder::most_tokens(ground.conversation))
}

/// How the view in force shows a message.
enum Standing<'a> {
    AsSaid,
    Shorter(&'a Excerpt),
}

fn standings<'a>(ground: &'a ReferenceState<'_>) -> HashMap<MessageId, Standing<'a>> {
    let conversation = ground.conversation;
    let mut standings = HashMap::new();
    for item in &ground.view.items {
        match item {
            Item::Messages(range) => {
                for message in &conversation.messages()[conversation.span(*range)] {
                    standings.insert(message.id, Standing::AsSaid);
                }
            }
            Item::Excerpt(excerpt) => drop(standings.insert(excerpt.id, Standing::Shorter(excerpt))),
            Item::Summary(_) => {}
        }
    }
    for message in &conversation.messages()[conversation.after(ground.view)] {
        standings.insert(message.id, Standing::AsSaid);
    }
    standings
}

/// The items of a plan. The order is checked while they are made: no message, and so no text, comes twice.
fn items(plan: &Plan, ground: &ReferenceState<'_>) -> Result<Vec<Item>, Refusal> {
    let standings = standings(ground);
    let mut items = Vec::new();
    let mut keys = HashSet::new();
    let mut before = None;
    let mut in_order = |id: MessageId| if before.replace(id) >= Some(id) { Err(Refusal::Order(id)) } else { Ok(()) };
    for segment in &plan.segments {
        match segment {
            Segment::Keep(range) => {
                for id in named(ground.conversation, *range)? {
                    let standing = standings.get(&id).ok_or(Refusal::NotInView(id))?;
                    in_order(id)?;
                    match standing {
                        Standing::AsSaid => push_message(&mut items, ground.conversation, id),
                        Standing::Shorter(excerpt) => items.push(Item::Excerpt((*excerpt).clone())),
                    }
                }
            }
            Segment::Restore(range) => {
                for id in named(ground.conversation, *range)? {
                    in_order(id)?;
                    push_message(&mut items, ground.conversation, id);
                }
            }
            Segment::Excerpt(excerpt) => {
                check_excerpt(excerpt, ground.conversation)?;
                in_order(excerpt.id)?;
                items.push(Item::Excerpt(excerpt.clone()));
            }
            Segment::Summary(summary) => {
                let summary = checked_summary(summary, ground)?;
                if !keys.insert(summary.key.clone()) {
                    return Err(Refusal::Key(summary.key));
                }
                items.push(Item::Summary(summary));
            }
            Segment::KeepSummary(key) => {
                let summary = ground.summaries.get(key).ok_or_else(|| Refusal::NoSuchSummary(shown_key(key)))?;
                if !keys.insert(key.clone()) {
                    return Err(Refusal::Key(shown_key(key)));
                }
                items.push(Item::Summary(summary.clone()));
            }
        }
    }
    Ok(items)
}

/// A key in an error: an engine can write any text.
fn shown_key(key: &str) -> String {
    one_line_within(&key[..key.floor_char_boundary(LONGEST_KEY)], 60)
}

fn named(conversation: &Conversation, range: MessageRange) -> Result<impl Iterator<Item = MessageId> + '_, Refusal> {
    let span = conversation.span(range);
    if span.is_empty() {
        return Err(Refusal::NoSuchMessage(range));
    }
    Ok(conversation.messages()[span].iter().map(|message| message.id))
}

/// Consecutive messages become one range, so that views stay small.
fn push_message(items: &mut Vec<Item>, conversation: &Conversation, id: MessageId) {
    let before = conversation.position(id).and_then(|at| at.checked_sub(1)).map(|at| conversation.messages()[at].id);
    match items.last_mut() {
        Some(Item::Messages(range)) if Some(range.last) == before => range.last = id,
        _ => items.push(Item::Messages(MessageRange::one(id))),
    }
}

/// The most bytes of a summary's key.
const LONGEST_KEY: usize = 200;

/// The summary as the view contains it: the known one, or the new one with its covers in few ranges.
fn checked_summary(summary: &Summary, ground: &ReferenceState<'_>) -> Result<Summary, Refusal> {
    if summary.key.is_empty() || summary.key.len() > LONGEST_KEY {
        return Err(Refusal::Key(shown_key(&summary.key)));
    }
    if summary.content.trim().is_empty() || summary.covers.is_empty() {
        return Err(Refusal::EmptySummary(summary.key.clone()));
    }
    let merged = |covers: &[MessageRange]| covers::merged(covers, ground.conversation);
    for range in &summary.covers {
        if ground.conversation.span(*range).is_empty() {
            return Err(Refusal::NoSuchMessage(*range));
        }
    }
    let summary = Summary { covers: merged(&summary.covers), ..summary.clone() };
    match ground.summaries.get(&summary.key) {
        Some(known) if known.content != summary.content || merged(&known.covers) != summary.covers => {
            Err(Refusal::KeyChanged(summary.key))
        }
        Some(known) => Ok(known.clone()),
        None => Ok(summary),
    }
}

fn check_excerpt(excerpt: &Excerpt, conversation: &Conversation) -> Result<(), Refusal> {
    let id = excerpt.id;
    let refuse = |why| Err(Refusal::Excerpt { id, why });
    let Some(message) = conversation.get(id) else {
        return Err(Refusal::NoSuchMessage(MessageRange::one(id)));
    };
    let calls: HashSet<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    let mut named = HashSet::new();
    for (call, arguments) in &excerpt.arguments {
        if !calls.contains(call.as_str()) {
            return refuse("it names a call that the message does not make");
        }
        if !named.insert(call.as_str()) {
            return refuse("it names a call twice");
        }
        if !matches!(serde_json::from_str(arguments), Ok(serde_json::Value::Object(_))) {
            return refuse("its arguments are no JSON object");
        }
    }
    if excerpt.content.as_ref().is_some_and(|content| content.trim().is_empty()) && message.tool_calls.is_empty() {
        return refuse("it is empty");
    }
    if tokens::of_excerpt(message, excerpt) > tokens::of_message(message) {
        return refuse("it is longer than the message");
    }
    Ok(())
}

fn shown<'a>(items: &'a [Item], conversation: &'a Conversation) -> impl Iterator<Item = (usize, MessageId)> + 'a {
    items.iter().enumerate().flat_map(|(at, item)| {
        let range = match item {
            Item::Messages(range) => Some(*range),
            Item::Excerpt(excerpt) => Some(MessageRange::one(excerpt.id)),
            Item::Summary(_) => None,
        };
        let span = range.map_or(0..0, |range| conversation.span(range));
        conversation.messages()[span].iter().map(move |message| (at, message.id))
    })
}

fn check_coverage(items: &[Item], conversation: &Conversation) -> Result<(), Refusal> {
    let ranges = items.iter().flat_map(|item| match item {
        Item::Messages(range) => std::slice::from_ref(range),
        Item::Excerpt(_) => &[],
        Item::Summary(summary) => summary.covers.as_slice(),
    });
    let excerpts = items.iter().filter_map(|item| match item {
        Item::Excerpt(excerpt) => Some(MessageRange::one(excerpt.id)),
        Item::Messages(_) | Item::Summary(_) => None,
    });
    let spans = ranges.copied().chain(excerpts).map(|range| conversation.span(range));
    match covers::first_gap(spans, conversation.messages().len()) {
        Some(at) => Err(Refusal::Uncovered(conversation.messages()[at].id)),
        None => Ok(()),
    }
}

/// The messages of a group are either all shown, one after the other, or not at all.
fn check_groups(items: &[Item], conversation: &Conversation) -> Result<(), Refusal> {
    let headers = conversation.headers();
    let shown: Vec<(usize, usize)> = shown(items, conversation)
        .filter_map(|(item, id)| conversation.position(id).map(|position| (item, position)))
        .collect();
    for (at, &(item, position)) in shown.iter().enumerate() {
        let group = headers[position].group;
        let follows_in_group = position > 0 && headers[position - 1].group == group;
        if follows_in_group {
            let previous = at.checked_sub(1).map(|at| shown[at]);
            let beside = previous.is_some_and(|(before, earlier)| {
                earlier + 1 == position && !items[before + 1..item.max(before + 1)].iter().any(is_summary)
            });
            if !beside {
                return Err(Refusal::SplitGroup(MessageId(group)));
            }
        }
        let goes_on = headers.get(position + 1).is_some_and(|next| next.group == group);
        if goes_on && shown.get(at + 1).is_none_or(|&(_, next)| next != position + 1) {
            return Err(Refusal::SplitGroup(MessageId(group)));
        }
    }
    Ok(())
}

fn is_summary(item: &Item) -> bool {
    matches!(item, Item::Summary(_))
}

fn check_last_user(items: &[Item], conversation: &Conversation) -> Result<(), Refusal> {
    let Some(last) = conversation.last_user() else { return Ok(()) };
    let verbatim = items.iter().any(|item| matches!(item, Item::Messages(range) if range.contains(last.id)));
    if verbatim { Ok(()) } else { Err(Refusal::LastUser(last.id)) }
}

fn check_size(view: &View, ground: &ReferenceState<'_>) -> Result<(), Refusal> {
    let tokens = ground.conversation.view_tokens(view);
    if tokens > ground.limit {
        return Err(Refusal::TooLarge { tokens, limit: ground.limit });
    }
    let before = ground.conversation.view_tokens(ground.view);
    if ground.must_shrink && tokens >= before {
        return Err(Refusal::NotSmaller { tokens, before });
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Draft;

    #[test]
    fn a_plan_that_fills_the_room_is_valid_and_one_token_more_is_refused_with_the_numbers() {
        let drafts =
            (1..9).map(|at| if at == 8 { Draft::user("go on", at) } else { Draft::user("word ".repeat(50), at) });
        let conversation = Conversation::new(drafts.zip(1..).map(|(draft, id)| draft.numbered(MessageId(id))));
        let covers = vec![MessageRange::new(MessageId(1), MessageId(7))];
        let summary = Summary { key: "k".to_owned(), content: "short".to_owned(), covers };
        let rest = Segment::Keep(MessageRange::one(MessageId(8)));
        let plan = Plan { segments: vec![Segment::Summary(summary), rest], reason: String::new(), extra: Vec::new() };
        let (view, summaries) = (View::default(), HashMap::new());
        let ground = |limit, must_shrink| ReferenceState {
            conversation: &conversation,
            view: &view,
            summaries: &summaries,
            limit,
            must_shrink,
        };
        let tokens = conversation.view_tokens(&verify(&plan, &ground(10_000, true)).unwrap());
        assert_eq!(room(&ground(tokens, false)), tokens);
        verify(&plan, &ground(tokens, false)).unwrap();
        let refusal = verify(&plan, &ground(tokens - 1, false)).unwrap_err();
        assert_eq!((refusal.code(), refusal.size()), ("too-large", Some((tokens, tokens - 1))));
        // A view that must shrink is smaller than this one, however large the window is.
        let before = conversation.view_tokens(&view);
        assert_eq!(room(&ground(10_000, true)), before - 1);
        let whole = Segment::Keep(MessageRange::new(MessageId(1), MessageId(8)));
        let refusal = verify(&Plan { segments: vec![whole], ..plan }, &ground(10_000, true)).unwrap_err();
        assert_eq!((refusal.code(), refusal.size()), ("not-smaller", Some((before, before - 1))));
    }
}
