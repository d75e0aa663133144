//! What the next summary is written from: everything that the next plan would fold, in portions that a model can read.

use hermes_plugin::context_engine::ShownSummary;
use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::Budget;
use crate::config::Config;
use crate::excerpt::cap;
use crate::ground::Ground;
use crate::plan::is_by_rule;
use crate::set::Set;
use crate::shelf::Prepared;
use crate::source::Source;
use crate::stay::Stay;

/// Tokens beside a message's texts: its number, role and time.
const ENTRY: u32 = 25;

/// One portion.
#[derive(Debug)]
pub(crate) struct Work {
    /// What earlier summaries say; it goes into the new one.
    pub(crate) earlier: Vec<String>,
    pub(crate) messages: Vec<Message>,
    /// Tokens that a single message gets.
    pub(crate) each: u32,
    /// What the new summary will stand for.
    pub(crate) covers: Vec<MessageRange>,
    /// Tokens of all that it will stand for.
    pub(crate) folded: u32,
    /// Whether messages are left for a next portion.
    pub(crate) more: bool,
}

/// How much of it a model is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portion {
    /// Tokens of the input.
    pub(crate) input: u32,
    /// Tokens below which what is left over is not worth another call.
    pub(crate) least: u32,
    /// Tokens of new messages that are worth the first one.
    pub(crate) enough: u32,
}

impl Portion {
    /// Tokens that a single message gets.
    fn each(&self) -> u32 {
        (self.input / 8).clamp(150, 1_500)
    }

    /// Tokens for what earlier summaries say.
    pub(crate) fn earlier(&self) -> u32 {
        self.input / 2
    }
}

/// The next portion, or none when too little is new; `prepared` is the summary that it continues.
pub(crate) fn next(
    ground: &Ground<'_>,
    config: &Config,
    budget: &Budget,
    prepared: Option<&Prepared>,
    portion: Portion,
    source: &impl Source,
) -> Result<Option<Work>, Error> {
    let ledger = ground.ledger;
    let stay = Stay::choose(ground, config, budget, true, 1.0);
    let covered = prepared.map_or_else(|| Set::empty(ground.len()), |prepared| ledger.named(&prepared.covers()));
    let open = stay.kept.neither(&covered);
    let shown = open.and(&ground.shown);
    let new = ground.said(&shown);
    if new < portion.enough.max(1) {
        return Ok(None);
    }

    // What was only listed by rule is worth reading again, if a model can read it at once.
    let (listed, told): (Vec<_>, Vec<_>) =
        ground.earlier(&open).into_iter().partition(|summary: &&ShownSummary| is_by_rule(&summary.key));
    let again = open.without(&ground.shown).and(&ground.covered_by(&listed)).without(&ground.covered_by(&told));
    let read_again = new.saturating_add(ground.said(&again)) <= portion.input / 2;
    let again = if read_again { again } else { Set::empty(ground.len()) };

    let mut texts: Vec<String> = prepared.map(|prepared| prepared.text.clone()).into_iter().collect();
    for summary in told.iter().chain(if read_again { &[][..] } else { &listed }) {
        texts.push(source.summary(&summary.key)?);
    }
    let of_texts = texts.iter().map(|text| source.count(text)).fold(0, u32::saturating_add);
    let room = portion.input.saturating_sub(of_texts.min(portion.earlier()));

    let to_read = shown.or(&again);
    let (taken, each) = take(ground, &to_read, room, portion.each());
    let mut messages = Vec::new();
    for range in ledger.ranges(&taken) {
        messages.extend(source.messages(range)?);
    }
    let hidden = open.without(&ground.shown).without(&again);
    let stood_for = covered.or(&taken).or(&hidden);
    Ok(Some(Work {
        earlier: texts,
        messages,
        each,
        covers: ledger.ranges(&stood_for),
        folded: ground.said(&stood_for),
        more: ground.said(&to_read.without(&taken)) >= portion.least.max(1),
    }))
}

/// As many of the oldest groups as the room holds, at least one or it would never end, and what each message gets.
fn take(ground: &Ground<'_>, to_read: &Set, room: u32, each: u32) -> (Set, u32) {
    let mut taken = Set::empty(ground.len());
    let mut left = room;
    let mut at = 0;
    for first in to_read.iter() {
        if first < at {
            continue;
        }
        let group = ground.ledger.group(first);
        at = group.end;
        let wanted: Vec<usize> = group.filter(|at| to_read.contains(*at)).collect();
        let costs: Vec<u32> = wanted.iter().map(|at| ground.ledger.tokens(*at..*at + 1).min(each) + ENTRY).collect();
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
    use crate::ledger::Ledger;
    use crate::testing::{Ruler, ledger, pressure};

    const PORTION: Portion = Portion { input: 100_000, least: 100, enough: 100 };

    fn talk() -> Ledger {
        ledger(&(1..=20).map(|id| (id, 500)).collect::<Vec<_>>())
    }

    fn work(view: &[Item], prepared: Option<&Prepared>, portion: Portion) -> Option<Work> {
        let all = talk();
        let ground = Ground::new(&all, view);
        let config = Config { protect_last_n: 4, ..Config::default() };
        let mut pressure = pressure(12_000, 0, 0);
        pressure.prompt_tokens = ground.before();
        let budget = Budget::of(&config, &pressure, &ground);
        next(&ground, &config, &budget, prepared, portion, &Texts).unwrap()
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
    fn it_takes_what_lies_between_head_and_tail() {
        let work = work(&[], None, PORTION).unwrap();
        assert_eq!(work.covers, [MessageRange::new(3, 16)]);
        assert!(work.earlier.is_empty() && !work.more);
    }

    #[test]
    fn it_goes_on_from_what_an_earlier_summary_says() {
        let work = work(&folded("compressor:summary:x", 8), None, PORTION).unwrap();
        assert_eq!(work.covers, [MessageRange::new(1, 16)]);
        assert_eq!(work.earlier, ["text of compressor:summary:x"]);
    }

    #[test]
    fn what_was_only_listed_is_read_again_while_a_model_can() {
        let reread = work(&folded("host:8", 8), None, PORTION).unwrap();
        assert_eq!((reread.covers, reread.earlier.len()), (vec![MessageRange::new(1, 16)], 0));
        let told = work(&folded("host:8", 8), None, Portion { input: 10_000, ..PORTION }).unwrap();
        assert_eq!((told.covers, told.earlier.len()), (vec![MessageRange::new(1, 16)], 1));
    }

    #[test]
    fn it_comes_in_portions_that_continue_each_other() {
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
    fn nothing_new_is_no_work() {
        let all = talk();
        let prepared = Prepared::new("text".into(), 1, &[MessageRange::new(3, 16)], &all, None);
        assert!(work(&[], Some(&prepared), PORTION).is_none());
    }
}
