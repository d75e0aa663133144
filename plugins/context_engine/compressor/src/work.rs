//! What the next summary is written from: everything that the next plan would fold, in portions that a model can read.

use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::Budget;
use crate::config::Config;
use crate::ground::Ground;
use crate::plan::{BY_RULE, earlier};
use crate::shelf::Prepared;
use crate::source::Source;
use crate::stay::Stay;

/// The host's own digests.
const BY_HOST: &str = "host:";

/// One portion.
#[derive(Debug)]
pub(crate) struct Work {
    /// What earlier summaries say; it goes into the new one.
    pub(crate) earlier: Vec<String>,
    pub(crate) messages: Vec<Message>,
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
    /// Tokens below which new messages are not worth a call.
    pub(crate) least: u32,
}

impl Portion {
    /// Tokens that a single message gets.
    pub(crate) fn each(&self) -> u32 {
        (self.input / 8).clamp(150, 1_500)
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
    let stay = Stay::choose(ground, config, budget, true, 1.0);
    let covered = prepared.map_or_else(|| vec![false; ground.len()], |prepared| ground.named(&prepared.covers()));
    let open: Vec<bool> = stay.kept.iter().zip(&covered).map(|(kept, covered)| !kept && !covered).collect();
    let tokens = |holds: &dyn Fn(usize) -> bool| {
        (0..ground.len()).filter(|at| holds(*at)).map(|at| ground.headers[at].tokens).fold(0, u32::saturating_add)
    };
    let new = tokens(&|at| open[at] && ground.is_shown(at));
    if new < portion.least.max(1) {
        return Ok(None);
    }

    // What was only listed by rule is worth reading again, if a model can read it at once.
    let (listed, told): (Vec<_>, Vec<_>) = earlier(ground, &open)
        .into_iter()
        .partition(|summary| summary.key.starts_with(BY_RULE) || summary.key.starts_with(BY_HOST));
    let of = |summaries: &[&hermes_plugin::context_engine::ShownSummary]| {
        ground.named(&summaries.iter().flat_map(|summary| summary.covers.clone()).collect::<Vec<_>>())
    };
    let (by_listed, by_told) = (of(&listed), of(&told));
    let again = |at: usize| open[at] && !ground.is_shown(at) && by_listed[at] && !by_told[at];
    let read_again = new.saturating_add(tokens(&again)) <= portion.input / 2;

    let mut texts: Vec<String> = prepared.map(|prepared| prepared.text.clone()).into_iter().collect();
    for summary in told.iter().chain(if read_again { &[][..] } else { &listed }) {
        texts.push(source.summary(&summary.key)?);
    }
    let of_texts = texts.iter().map(|text| source.count(text)).fold(0, u32::saturating_add);
    let room = portion.input.saturating_sub(of_texts.min(portion.input / 2));

    let to_read = |at: usize| open[at] && (ground.is_shown(at) || read_again && again(at));
    let mut taken = vec![false; ground.len()];
    let mut left = room;
    let mut at = 0;
    while at < ground.len() {
        let group = ground.group(at);
        at = group.end;
        let cost = group.clone().filter(|at| to_read(*at)).map(|at| ground.headers[at].tokens.min(portion.each()) + 12);
        let cost = cost.fold(0, u32::saturating_add);
        if cost == 0 {
            continue;
        }
        // At least one group at a time, or it would never end.
        if cost > left && left < room {
            break;
        }
        left = left.saturating_sub(cost);
        group.filter(|at| to_read(*at)).for_each(|at| taken[at] = true);
    }

    let mut messages = Vec::new();
    for range in ground.ranges(|at| taken[at]) {
        messages.extend(source.messages(range)?);
    }
    let stood_for =
        |at: usize| covered[at] || taken[at] || open[at] && !ground.is_shown(at) && !(read_again && again(at));
    let rest = tokens(&|at| to_read(at) && !taken[at]);
    Ok(Some(Work {
        earlier: texts,
        messages,
        covers: ground.ranges(stood_for),
        folded: tokens(&stood_for),
        more: rest >= portion.least.max(1),
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::context_engine::{Item, ShownSummary};

    use super::*;
    use crate::testing::{Ruler, headers, pressure};

    const PORTION: Portion = Portion { input: 100_000, least: 100 };

    fn work(view: &[Item], prepared: Option<&Prepared>, portion: Portion) -> Option<Work> {
        let all = headers(&(1..=20).map(|id| (id, 500)).collect::<Vec<_>>());
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
        let all = headers(&(1..=20).map(|id| (id, 500)).collect::<Vec<_>>());
        let ground = Ground::new(&all, &[]);
        let small = Portion { input: 1_600, least: 100 };
        let first = work(&[], None, small).unwrap();
        assert!(first.more);
        let prepared = Prepared::new("so far".into(), &first.covers, &ground, None);
        let second = work(&[], Some(&prepared), small).unwrap();
        assert_eq!(second.earlier, ["so far"]);
        assert!(second.folded > first.folded && second.covers[0].first == first.covers[0].first);
    }

    #[test]
    fn nothing_new_is_no_work() {
        let all = headers(&(1..=20).map(|id| (id, 500)).collect::<Vec<_>>());
        let ground = Ground::new(&all, &[]);
        let prepared = Prepared::new("text".into(), &[MessageRange::new(3, 16)], &ground, None);
        assert!(work(&[], Some(&prepared), PORTION).is_none());
    }
}
