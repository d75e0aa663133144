//! The new view: what stays, a summary that was written ahead, and a digest by rule of whatever neither has.
//!
//! Tried from comfortable to tight; the first that reaches the goal wins. Whatever leaves the view is covered.

use std::collections::BTreeMap;

use hermes_plugin::context_engine::{Excerpt, Plan, Segment, ShownSummary, Summary};
use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::{Budget, share};
use crate::config::Config;
use crate::digest::{Room, digest};
use crate::excerpt::{self, shorten};
use crate::ground::Ground;
use crate::shelf::{Prepared, fnv};
use crate::source::Source;
use crate::stay::Stay;

/// What the host puts around a summary.
pub(crate) const FRAME: u32 = 115;
/// Keys of digests begin with it.
pub(crate) const BY_RULE: &str = "compressor:digest:";
const BY_MODEL: &str = "compressor:summary:";
/// More earlier summaries than this become one.
const MOST_EARLIER: usize = 3;

/// What a plan is made from.
pub(crate) struct Planner<'a, S> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) config: &'a Config,
    pub(crate) budget: Budget,
    pub(crate) prepared: Option<&'a Prepared>,
    pub(crate) source: &'a S,
}

/// A plan and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    /// What the new view takes.
    pub(crate) tokens: u32,
    /// Whether it uses the summary that was written ahead.
    pub(crate) prepared: bool,
}

impl Draft {
    /// Tells plans apart.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", fnv(format!("{:?}", self.plan.segments).bytes()))
    }
}

/// How tight it gets.
struct Level {
    head: bool,
    prepared: bool,
    /// Share of the budgets for the newest messages and for texts.
    tail: f64,
    texts: f64,
    cut: Cut,
}

/// Whether the newest group is shown shorter, and to what end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    No,
    ToGoal,
    ToLimit,
}

const LEVELS: [Level; 7] = [
    Level { head: true, prepared: true, tail: 1.0, texts: 1.0, cut: Cut::No },
    Level { head: false, prepared: true, tail: 1.0, texts: 1.0, cut: Cut::No },
    Level { head: false, prepared: true, tail: 0.5, texts: 0.6, cut: Cut::No },
    Level { head: false, prepared: true, tail: 0.0, texts: 0.35, cut: Cut::No },
    Level { head: false, prepared: false, tail: 0.0, texts: 0.35, cut: Cut::No },
    Level { head: false, prepared: false, tail: 0.0, texts: 0.25, cut: Cut::ToGoal },
    Level { head: false, prepared: false, tail: 0.0, texts: 0.15, cut: Cut::ToLimit },
];

impl<S: Source> Planner<'_, S> {
    /// The plan, or none when nothing worth it is to be gained.
    pub(crate) fn plan(&self) -> Result<Option<Draft>, Error> {
        let most = self.budget.limit.min(self.budget.worth).min(self.budget.before.saturating_sub(1));
        let mut best: Option<Draft> = None;
        for level in &LEVELS {
            // A large newest group that fits with room to spare had better stay whole.
            if level.cut != Cut::No
                && best.as_ref().is_some_and(|best| best.tokens <= most.min(share(self.budget.limit, 0.8)))
            {
                break;
            }
            let Some(draft) = self.attempt(level)? else { continue };
            if draft.tokens <= most.min(self.budget.goal) {
                return Ok(Some(draft));
            }
            if best.as_ref().is_none_or(|best| draft.tokens < best.tokens) {
                best = Some(draft);
            }
        }
        Ok(best.filter(|best| best.tokens <= most))
    }

    fn attempt(&self, level: &Level) -> Result<Option<Draft>, Error> {
        let ground = self.ground;
        let mut stay = Stay::choose(ground, self.config, &self.budget, level.head, level.tail);
        let Some(excerpts) = self.cut(level, &mut stay)? else { return Ok(None) };
        let prepared = self.prepared.filter(|prepared| level.prepared && self.is_worth(prepared, &stay));
        let covered = prepared.map_or_else(|| vec![false; ground.len()], |prepared| ground.named(&prepared.covers()));
        if let Some(prepared) = prepared {
            self.keep_newer(level, prepared, &covered, &mut stay);
        }

        let open: Vec<bool> = stay.kept.iter().zip(&covered).map(|(kept, covered)| !kept && !covered).collect();
        let earlier = earlier(ground, &open);
        let of_earlier = earlier.iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        let stays = earlier.len() <= MOST_EARLIER && of_earlier <= share(self.budget.earlier, level.texts);
        let (stays, merged) = if stays { (earlier, Vec::new()) } else { (Vec::new(), earlier) };

        let mut texts: Vec<(u64, Segment)> = Vec::new();
        let mut tokens = stay.tokens;
        for summary in &stays {
            tokens = tokens.saturating_add(summary.tokens);
            texts.push((newest(&summary.covers), Segment::KeepSummary(summary.key.clone())));
        }
        if let Some(prepared) = prepared {
            tokens = tokens.saturating_add(self.source.count(&prepared.text)).saturating_add(FRAME);
            texts.push((prepared.last, summary(BY_MODEL, &prepared.text, prepared.covers())));
        }
        if let Some(content) = self.by_rule(level, &open, &merged)? {
            let stood_for = ground.named(&stays.iter().flat_map(|summary| summary.covers.clone()).collect::<Vec<_>>());
            let covers = ground.ranges(|at| open[at] && (ground.is_shown(at) || !stood_for[at]));
            tokens = tokens.saturating_add(self.source.count(&content)).saturating_add(FRAME);
            texts.push((newest(&covers), summary(BY_RULE, &content, covers)));
        } else if prepared.is_none() && excerpts.is_empty() {
            return Ok(None);
        }
        texts.sort_by_key(|(newest, _)| *newest);

        let mut segments = self.messages(&stay, &excerpts, 0..stay.head);
        segments.extend(texts.into_iter().map(|(_, segment)| segment));
        segments.extend(self.messages(&stay, &excerpts, stay.head..ground.len()));
        let folded = (0..ground.len()).filter(|at| ground.is_shown(*at) && !stay.kept[*at]).count();
        let folded = if folded == 1 { "1 message was".to_owned() } else { format!("{folded} messages were") };
        let reason = match prepared {
            Some(_) => format!("{folded} folded into a summary that was written ahead"),
            None if excerpts.is_empty() => format!("{folded} folded by rule: no summary was at hand"),
            None => format!("{folded} folded by rule, and the newest ones are shown shorter to fit the window"),
        };
        Ok(Some(Draft { plan: Plan { segments, reason, extra: Vec::new() }, tokens, prepared: prepared.is_some() }))
    }

    /// Shorter renderings of the newest group, where the level asks for them; none when they do not help.
    fn cut(&self, level: &Level, stay: &mut Stay) -> Result<Option<BTreeMap<usize, Excerpt>>, Error> {
        let ground = self.ground;
        let mut excerpts = BTreeMap::new();
        let target = match level.cut {
            Cut::No => return Ok(Some(excerpts)),
            Cut::ToGoal => self.budget.goal,
            Cut::ToLimit => share(self.budget.limit, 0.9),
        };
        let newest = stay.tail..ground.len();
        let costs: Vec<u32> =
            newest.clone().map(|at| if Some(at) == stay.user { 0 } else { ground.cost(at) }).collect();
        let cost = costs.iter().copied().fold(0, u32::saturating_add);
        let texts =
            share(self.budget.said + self.budget.calls + self.budget.earlier, level.texts).saturating_add(2 * FRAME);
        let allowed = target.saturating_sub(texts).saturating_sub(stay.tokens.saturating_sub(cost));
        if cost <= allowed {
            return Ok(Some(excerpts));
        }
        let messages = self.read(|at| newest.contains(&at))?;
        if messages.len() != costs.len() {
            return Ok(None);
        }
        let Some(shown) = excerpt::group(&messages, &costs, allowed, self.source) else { return Ok(None) };
        for (at, (excerpt, tokens)) in newest.zip(shown) {
            if let Some(excerpt) = excerpt {
                stay.tokens = stay.tokens.saturating_sub(ground.cost(at)).saturating_add(tokens);
                excerpts.insert(at, excerpt);
            }
        }
        Ok(Some(excerpts))
    }

    /// Whether a summary saves more than it costs.
    fn is_worth(&self, prepared: &Prepared, stay: &Stay) -> bool {
        let named = self.ground.named(&prepared.covers());
        let folds = |at: &usize| named[*at] && !stay.kept[*at] && self.ground.is_shown(*at);
        let saved = (0..self.ground.len()).filter(folds).map(|at| self.ground.cost(at)).fold(0, u32::saturating_add);
        saved > self.source.count(&prepared.text).saturating_add(FRAME)
    }

    /// Keeps what is newer than the summary as it is, as far as it fits.
    fn keep_newer(&self, level: &Level, prepared: &Prepared, covered: &[bool], stay: &mut Stay) {
        let ground = self.ground;
        let text = self.source.count(&prepared.text).saturating_add(FRAME);
        let mut left = self.budget.goal.saturating_sub(stay.tokens).saturating_sub(text);
        let mut whole = stay.clone();
        while whole.next_group(ground).is_some()
            && ground.group(whole.tail - 1).any(|at| !covered[at] && !whole.kept[at])
        {
            whole.extend(ground);
        }
        let open: Vec<bool> = whole.kept.iter().zip(covered).map(|(kept, covered)| !kept && !covered).collect();
        let of_earlier = earlier(ground, &open).iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        left = left.saturating_sub(of_earlier.min(self.budget.earlier));
        if whole.tokens - stay.tokens > left || open.iter().enumerate().any(|(at, open)| *open && ground.is_shown(at)) {
            let texts = share(self.budget.said + self.budget.calls, level.texts).saturating_add(FRAME);
            left = left.saturating_sub(texts);
        }
        while stay.tail > whole.tail {
            match stay.next_group(ground) {
                Some(cost) if cost <= left => left -= cost,
                _ => break,
            }
            stay.extend(ground);
        }
    }

    /// The digest of what is shown and leaves, behind what the merged summaries say; none when there is neither.
    fn by_rule(&self, level: &Level, open: &[bool], merged: &[&ShownSummary]) -> Result<Option<String>, Error> {
        let messages = self.read(|at| open[at] && self.ground.is_shown(at))?;
        if messages.is_empty() && merged.is_empty() {
            return Ok(None);
        }
        let mut parts = Vec::new();
        if !merged.is_empty() {
            let texts =
                merged.iter().map(|summary| self.source.summary(&summary.key)).collect::<Result<Vec<_>, _>>()?;
            parts.push(shorten(&texts.join("\n\n"), share(self.budget.earlier, level.texts), self.source));
        }
        if !messages.is_empty() {
            let room =
                Room { said: share(self.budget.said, level.texts), calls: share(self.budget.calls, level.texts) };
            parts.push(digest(&messages, room, self.source));
        }
        Ok(Some(parts.join("\n\n")))
    }

    fn read(&self, holds: impl Fn(usize) -> bool) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for range in self.ground.ranges(holds) {
            messages.extend(self.source.messages(range)?);
        }
        Ok(messages)
    }

    fn messages(&self, stay: &Stay, excerpts: &BTreeMap<usize, Excerpt>, span: std::ops::Range<usize>) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut before = None;
        for at in span.filter(|at| stay.kept[*at]) {
            let id = self.ground.headers[at].id;
            if let Some(excerpt) = excerpts.get(&at) {
                segments.push(Segment::Excerpt(excerpt.clone()));
            } else if stay.is_restored(self.ground, at) {
                segments.push(Segment::Restore(MessageRange::one(id)));
            } else {
                match segments.last_mut() {
                    Some(Segment::Keep(range)) if before == at.checked_sub(1) => range.last = id,
                    _ => segments.push(Segment::Keep(MessageRange::one(id))),
                }
            }
            before = Some(at);
        }
        segments
    }
}

/// Summaries of the view that alone stand for some of these messages.
pub(crate) fn earlier<'a>(ground: &Ground<'a>, open: &[bool]) -> Vec<&'a ShownSummary> {
    let alone = |range: &MessageRange| ground.span(*range).any(|at| open[at] && !ground.is_shown(at));
    ground.summaries.iter().copied().filter(|summary| summary.covers.iter().any(alone)).collect()
}

fn newest(covers: &[MessageRange]) -> u64 {
    covers.iter().map(|range| range.last).max().unwrap_or_default()
}

/// A summary whose key follows from its text and covers, so that one key never means two things.
fn summary(kind: &str, content: &str, covers: Vec<MessageRange>) -> Segment {
    let first = covers.iter().map(|range| range.first).min().unwrap_or_default();
    let ids = covers.iter().flat_map(|range| [range.first, range.last]).flat_map(u64::to_le_bytes);
    let hash = fnv(content.bytes().chain(ids));
    let key = format!("{kind}{first}-{}:{hash:016x}", newest(&covers));
    Segment::Summary(Summary { key, content: content.to_owned(), covers })
}

#[cfg(test)]
mod tests;
