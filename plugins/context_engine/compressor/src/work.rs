//! Input for the next summary: all messages that the next plan would fold, in portions that fit the model.

use hermes_plugin::context_engine::ShownSummary;
use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::Budget;
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::excerpt::cap;
use crate::layout::Layout;
use crate::set::Set;
use crate::source::Source;
use crate::storage::Prepared;
use crate::summary_key::is_by_rule;

/// Tokens of a message besides its texts: number, role and time.
const ENTRY: u32 = 25;

/// One portion.
#[derive(Debug)]
pub(crate) struct Work {
    /// Texts of earlier summaries, to be merged into the new one.
    pub(crate) earlier: Vec<String>,
    pub(crate) messages: Vec<Message>,
    /// Token limit of a single message.
    pub(crate) each: u32,
    /// Messages that the new summary will cover.
    pub(crate) covers: Vec<MessageRange>,
    /// Tokens of all messages it will cover.
    pub(crate) folded: u32,
    /// Whether messages remain for another portion.
    pub(crate) more: bool,
}

/// Limits of a portion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portion {
    /// Tokens of the input.
    pub(crate) input: u32,
    /// A remainder below this many tokens is not worth another call.
    pub(crate) least: u32,
    /// Tokens of new messages that justify the first portion.
    pub(crate) enough: u32,
}

impl Portion {
    /// Token limit of a single message.
    fn each(&self) -> u32 {
        (self.input / 8).clamp(150, 1_500)
    }

    /// Token limit of earlier summaries.
    pub(crate) fn earlier(&self) -> u32 {
        self.input / 2
    }
}

/// The next portion, or `None` if there are too few new messages. `prepared` is the summary to continue.
pub(crate) fn next(
    current: &CurrentView<'_>,
    config: &Config,
    budget: &Budget,
    prepared: Option<&Prepared>,
    portion: Portion,
    source: &impl Source,
) -> Result<Option<Work>, Error> {
    let index = current.index;
    let layout = Layout::choose(current, config, budget, true, 1.0);
    let covered = prepared.map_or_else(|| Set::empty(current.len()), |prepared| index.named(&prepared.covers()));
    let open = layout.kept.neither(&covered);
    let shown = open.and(&current.shown);
    let new = current.said(&shown);
    if new < portion.enough.max(1) {
        return Ok(None);
    }

    // Messages that were only listed by rule are read again if they fit.
    let (listed, told): (Vec<_>, Vec<_>) =
        current.earlier(&open).into_iter().partition(|summary: &&ShownSummary| is_by_rule(&summary.key));
    let again = open.without(&current.shown).and(&current.covered_by(&listed)).without(&current.covered_by(&told));
    let read_again = new.saturating_add(current.said(&again)) <= portion.input / 2;
    let again = if read_again { again } else { Set::empty(current.len()) };

    let mut texts: Vec<String> = prepared.map(|prepared| prepared.text.clone()).into_iter().collect();
    for summary in told.iter().chain(if read_again { &[][..] } else { &listed }) {
        texts.push(source.summary(&summary.key)?);
    }
    let of_texts = texts.iter().map(|text| source.count(text)).fold(0, u32::saturating_add);
    let room = portion.input.saturating_sub(of_texts.min(portion.earlier()));

    let to_read = shown.or(&again);
    let (taken, each) = take(current, &to_read, room, portion.each());
    let mut messages = Vec::new();
    for range in index.ranges(&taken) {
        messages.extend(source.messages(range)?);
    }
    let hidden = open.without(&current.shown).without(&again);
    let stood_for = covered.or(&taken).or(&hidden);
    Ok(Some(Work {
        earlier: texts,
        messages,
        each,
        covers: index.ranges(&stood_for),
        folded: current.said(&stood_for),
        more: current.said(&to_read.without(&taken)) >= portion.least.max(1),
    }))
}

/// The oldest groups that fit (at least one, to guarantee progress), and the token limit per message.
fn take(current: &CurrentView<'_>, to_read: &Set, room: u32, each: u32) -> (Set, u32) {
    let mut taken = Set::empty(current.len());
    let mut left = room;
    let mut at = 0;
    for first in to_read.iter() {
        if first < at {
            continue;
        }
        let group = current.index.group(first);
        at = group.end;
        let wanted: Vec<usize> = group.filter(|at| to_read.contains(*at)).collect();
        let costs: Vec<u32> = wanted.iter().map(|at| current.index.tokens(*at..*at + 1).min(each) + ENTRY).collect();
        let cost = costs.iter().copied().fold(0, u32::saturating_add);
        if cost > left && left < room {
            break;
        }
        wanted.into_iter().for_each(|at| taken.insert(at..at + 1));
        if cost > left {
            return (taken, cap(&costs, left).saturating_sub(ENTRY).clamp(10, each));
        }
        left -= cost;
    }
    (taken, each)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::context_engine::{Item, ShownSummary};

    use super::*;
    use crate::message_index::MessageIndex;
    use crate::testing::{Ruler, index, pressure};

    const PORTION: Portion = Portion { input: 100_000, least: 100, enough: 100 };

    fn talk() -> MessageIndex {
        index(&(1..=20).map(|id| (id, 500)).collect::<Vec<_>>())
    }

    fn work(view: &[Item], prepared: Option<&Prepared>, portion: Portion) -> Option<Work> {
        let all = talk();
        let current = CurrentView::new(&all, view);
        let config = Config { protect_last_n: 4, ..Config::default() };
        let mut pressure = pressure(12_000, 0, 0);
        pressure.prompt_tokens = current.before();
        let budget = Budget::of(&config, &pressure, &current);
        next(&current, &config, &budget, prepared, portion, &Texts).unwrap()
    }

    struct Texts;

    impl Source for Texts {
        fn messages(&self, _: MessageRange) -> Result<Vec<Message>, Error> {
            Ok(Vec::new())
        }
        fn summary(&self, key: &str) -> Result<String, Error> {
            Ok(format!("text of {key}"))
        }
        fn count(&self, text: &str) -> u32 {
            Ruler.count(text)
        }
    }

    fn folded(key: &str, last: u64) -> Vec<Item> {
        let covers = vec![MessageRange::new(1, last)];
        vec![
            Item::Summary(ShownSummary { key: key.into(), tokens: 100, covers }),
            Item::Messages(MessageRange::new(last + 1, 20)),
        ]
    }

    #[test]
    fn a_portion_lies_between_head_and_tail() {
        let work = work(&[], None, PORTION).unwrap();
        assert_eq!(work.covers, [MessageRange::new(3, 16)]);
        assert!(work.earlier.is_empty() && !work.more);
    }

    #[test]
    fn a_portion_continues_an_earlier_summary() {
        let work = work(&folded("compressor:summary:x", 8), None, PORTION).unwrap();
        assert_eq!(work.covers, [MessageRange::new(1, 16)]);
        assert_eq!(work.earlier, ["text of compressor:summary:x"]);
    }

    #[test]
    fn messages_listed_by_rule_are_read_again_while_they_fit() {
        let reread = work(&folded("host:8", 8), None, PORTION).unwrap();
        assert_eq!((reread.covers, reread.earlier.len()), (vec![MessageRange::new(1, 16)], 0));
        let told = work(&folded("host:8", 8), None, Portion { input: 10_000, ..PORTION }).unwrap();
        assert_eq!((told.covers, told.earlier.len()), (vec![MessageRange::new(1, 16)], 1));
    }

    #[test]
    fn portions_continue_each_other() {
        let all = talk();
        let small = Portion { input: 1_600, least: 100, enough: 100 };
        let first = work(&[], None, small).unwrap();
        assert!(first.more);
        let prepared = Prepared::new("so far".into(), 2, &first.covers, &all, None);
        let second = work(&[], Some(&prepared), small).unwrap();
        assert_eq!(second.earlier, ["so far"]);
        assert!(second.folded > first.folded && second.covers[0].first == first.covers[0].first);
    }

    #[test]
    fn too_few_new_messages_give_no_portion() {
        let all = talk();
        let prepared = Prepared::new("text".into(), 1, &[MessageRange::new(3, 16)], &all, None);
        assert!(work(&[], Some(&prepared), PORTION).is_none());
    }
}
