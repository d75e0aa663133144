//! The new view: what stays, a summary that was written ahead, and a list by rule of whatever neither has, put together
//! from entries that are there already.
//!
//! Tried from comfortable to tight; the first that reaches the goal wins. Whatever leaves the view is covered.

use std::collections::BTreeMap;

use hermes_plugin::context_engine::{Excerpt, Plan, Segment, ShownSummary, Summary};
use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::{Budget, FRAME, LIST, PREFIX, share};
use crate::config::Config;
use crate::digest::digest;
use crate::excerpt;
use crate::ground::Ground;
use crate::jottings::Jottings;
use crate::notes::{Notes, Room};
use crate::set::Set;
use crate::shelf::{Prepared, fnv};
use crate::shorter::Shorter;
use crate::source::Source;
use crate::stay::Stay;
use hermes_guest_secrets::inert;

/// Keys of digests begin with it.
const BY_RULE: &str = "compressor:digest:";
const BY_MODEL: &str = "compressor:summary:";
/// Tokens of a list's own words.
const HEADINGS: u32 = 60;
/// The host's own digests.
const BY_HOST: &str = "host:";

/// What was prepared for a plan.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ready<'a> {
    pub(crate) written: Option<&'a Prepared>,
    pub(crate) listed: Option<&'a Prepared>,
    pub(crate) shorter: &'a [Shorter],
    pub(crate) jottings: Option<&'a Jottings>,
}

/// What a plan is made from.
pub(crate) struct Planner<'a, S> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) config: &'a Config,
    pub(crate) budget: Budget,
    pub(crate) ready: Ready<'a>,
    pub(crate) source: &'a S,
    /// Without it only what was made ahead is worth a new view.
    pub(crate) needed: bool,
}

/// A plan and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    /// What the new view takes.
    pub(crate) tokens: u32,
    /// Of its new summaries, how many are from work ahead, and how many there are.
    pub(crate) ready: (u32, u32),
}

impl Draft {
    /// Tells plans apart.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", fnv(format!("{:?}", self.plan.segments).bytes()))
    }

    /// Whether no message had to be read for it on the spot.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.1 > 0 && self.ready.0 == self.ready.1
    }
}

/// A summary by rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listing {
    pub(crate) text: String,
    pub(crate) tokens: u32,
    pub(crate) covers: Vec<MessageRange>,
    /// Whether it is put together from work ahead alone.
    ready: bool,
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
        for level in LEVELS.iter().filter(|level| self.needed || level.prepared) {
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
        let Some(mut excerpts) = self.cut(level, &mut stay)? else { return Ok(None) };
        let may_use = |prepared: &&Prepared| level.prepared && self.is_worth(prepared, &stay);
        let written = self.ready.written.filter(may_use);
        let listed = self.ready.listed.filter(may_use);
        let named = |prepared: &Prepared| ground.ledger.named(&prepared.covers());
        let mut covered = written.map_or_else(|| Set::empty(ground.len()), named);
        if let Some(prepared) = written.or(listed) {
            self.keep_newer(level, prepared, &mut stay);
        }
        let is_needed = |_: &&Prepared| !stay.kept.neither(&covered).and(&ground.shown).is_empty();
        let listed = listed.filter(is_needed);
        if let Some(listed) = listed {
            covered = covered.or(&named(listed));
        }
        let open = stay.kept.neither(&covered);
        let (stays, merged) = self.earlier(level, &open, written, listed);
        if !self.needed && (!merged.is_empty() || open.meets_both(&ground.shown)) {
            return Ok(None);
        }
        let list = self.list(level, &open, &stays, &merged, listed, written)?;

        let mut texts: Vec<(u64, Segment)> = Vec::new();
        let mut tokens = 0u32;
        let mut ready = (0, 0);
        for summary in &stays {
            tokens = tokens.saturating_add(summary.tokens);
            texts.push((newest(&summary.covers), Segment::KeepSummary(summary.key.clone())));
        }
        if let Some(written) = written {
            tokens = tokens.saturating_add(written.tokens).saturating_add(FRAME);
            texts.push((written.last, summary(BY_MODEL, &written.text, written.covers())));
            ready = (1, 1);
        }
        if let Some(list) = list {
            tokens = tokens.saturating_add(list.tokens).saturating_add(FRAME);
            ready = (ready.0 + u32::from(list.ready), ready.1 + 1);
            texts.push((newest(&list.covers), summary(BY_RULE, &list.text, list.covers)));
        } else if written.is_none() && excerpts.is_empty() {
            return Ok(None);
        }
        texts.sort_by_key(|(newest, _)| *newest);
        if level.cut == Cut::No {
            self.shorten(&mut stay, &mut excerpts);
        }
        tokens = tokens.saturating_add(stay.tokens);

        let mut segments = self.messages(&stay, &excerpts, 0..stay.head);
        segments.extend(texts.into_iter().map(|(_, segment)| segment));
        segments.extend(self.messages(&stay, &excerpts, stay.head..ground.len()));
        let reason = self.reason(level, &stay, written.is_some(), !excerpts.is_empty());
        let extra = vec![("prepared".to_owned(), format!("{}/{}", ready.0, ready.1))];
        Ok(Some(Draft { plan: Plan { segments, reason, extra }, tokens, ready }))
    }

    fn reason(&self, level: &Level, stay: &Stay, written: bool, shorter: bool) -> String {
        let folded = self.ground.shown.without(&stay.kept).count();
        let folded = if folded == 1 { "1 message was".to_owned() } else { format!("{folded} messages were") };
        match (written, shorter && level.cut != Cut::No) {
            (true, _) => format!("{folded} folded into a summary that a model wrote"),
            (false, false) => format!("{folded} folded by rule: no summary was at hand"),
            (false, true) => {
                format!("{folded} folded by rule, and the newest ones are shown shorter to fit the window")
            }
        }
    }

    /// Earlier summaries: which stay as they are, and whose words a list takes over.
    fn earlier(
        &self,
        level: &Level,
        open: &Set,
        written: Option<&Prepared>,
        listed: Option<&Prepared>,
    ) -> (Vec<&ShownSummary>, Vec<&ShownSummary>) {
        let earlier = self.ground.earlier(open);
        let is_listed = listed.is_some() || open.meets_both(&self.ground.shown);
        // Two lists are better one.
        let (lists, told): (Vec<_>, Vec<_>) =
            earlier.into_iter().partition(|summary| is_listed && is_by_rule(&summary.key));
        let of =
            |summaries: &[&ShownSummary]| summaries.iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        let taken = written.map_or(0, |written| written.tokens + FRAME) + if is_listed { LIST + FRAME } else { 0 };
        let room = share(self.budget.earlier, level.texts).min(PREFIX.saturating_sub(taken));
        if of(&told) <= room { (told, lists) } else { (Vec::new(), [told, lists].concat()) }
    }

    /// The text by rule of what is shown and leaves, and of what merged summaries and an earlier list say.
    fn list(
        &self,
        level: &Level,
        open: &Set,
        stays: &[&ShownSummary],
        merged: &[&ShownSummary],
        listed: Option<&Prepared>,
        written: Option<&Prepared>,
    ) -> Result<Option<Listing>, Error> {
        let ground = self.ground;
        let fresh = open.and(&ground.shown);
        if fresh.is_empty() && merged.is_empty() {
            return Ok(listed.map(|listed| Listing {
                text: listed.text.clone(),
                tokens: listed.tokens,
                covers: listed.covers(),
                ready: true,
            }));
        }
        let budget = &self.budget;
        let taken = stays.iter().map(|summary| summary.tokens).fold(0, u32::saturating_add)
            + written.map_or(0, |written| written.tokens + FRAME);
        let left = PREFIX.saturating_sub(taken).saturating_sub(FRAME + HEADINGS);
        let said = share(budget.said, level.texts).min(left / 2);
        let done = share(budget.calls, level.texts).min(left / 4);
        let room = Room { written: share(budget.notes, level.texts).min(left - said - done), said, done };

        let mut parts =
            merged.iter().map(|summary| self.source.summary(&summary.key)).collect::<Result<Vec<_>, _>>()?;
        parts.extend(listed.map(|listed| listed.text.clone()));
        let mut parts: Vec<Notes> = parts.iter().map(|text| Notes::parse(text)).collect();
        // Each keeps its share: none is cut away by those beside it.
        let sizes: Vec<u32> = parts.iter().map(|part| self.source.count(&part.written)).collect();
        let most = excerpt::cap(&sizes, room.written);
        let mut notes = Notes::default();
        for part in &mut parts {
            part.written = excerpt::shorten(&part.written, most, self.source);
            notes.absorb(std::mem::take(part));
        }
        let (jotted, unread) =
            self.ready.jottings.map_or_else(|| (Notes::default(), fresh.clone()), |of| of.of(ground.ledger, &fresh));
        notes.absorb(jotted);
        notes.absorb(digest(&self.read(&unread)?));
        notes.written = inert(&notes.written).into_owned();
        let notes = notes.within(room, self.source);
        // What a summary that stays stands for needs no second one.
        let stood_for = ground.covered_by(stays).without(&ground.shown);
        let mut covers = open.without(&stood_for);
        if let Some(listed) = listed {
            covers = covers.or(&ground.ledger.named(&listed.covers()));
        }
        let covers = ground.ledger.ranges(&covers);
        let (Some(first), Some(last)) = (covers.first(), covers.last()) else { return Ok(None) };
        let text = notes.by_rule(first.first, last.last);
        let tokens = self.source.count(&text);
        Ok(Some(Listing { text, tokens, covers, ready: unread.is_empty() }))
    }

    /// The list that the next plan would need beside what is written, worked out ahead; none where there is too little.
    pub(crate) fn listing(&self, least: u32) -> Result<Option<Listing>, Error> {
        let ground = self.ground;
        let level = &LEVELS[0];
        let stay = Stay::choose(ground, self.config, &self.budget, level.head, level.tail);
        let written = self.ready.written;
        let covered = written.map_or_else(|| Set::empty(ground.len()), |of| ground.ledger.named(&of.covers()));
        let open = stay.kept.neither(&covered);
        let listed = self.ready.listed.map_or_else(|| covered.clone(), |of| ground.ledger.named(&of.covers()));
        if ground.said(&open.and(&ground.shown).without(&listed)) < least.max(1) {
            return Ok(None);
        }
        let (stays, merged) = self.earlier(level, &open, written, None);
        self.list(level, &open, &stays, &merged, None, written)
    }

    /// Old results as a line, large arguments cut, old images left out: where the view is replaced anyway it costs
    /// nothing more, and the newest messages are not touched.
    fn shorten(&self, stay: &mut Stay, excerpts: &mut BTreeMap<usize, Excerpt>) {
        let ground = self.ground;
        let is_whole = |at: usize| stay.kept.contains(at) && ground.is_shown(at) && !ground.is_shorter(at);
        let mut saved = 0u32;
        for shorter in self.ready.shorter {
            let Some(at) = ground.ledger.position(shorter.id) else { continue };
            if at < stay.head || Some(at) == stay.user || !is_whole(at) {
                continue;
            }
            let stands = |id: &u64| ground.ledger.position(*id).is_some_and(|at| at >= stay.safe && is_whole(at));
            if let Some(newer) = shorter.same.filter(stands) {
                excerpts.insert(at, shorter.pointer(newer));
                saved = saved.saturating_add(shorter.saves.saturating_sub(10));
            } else if at < stay.safe {
                excerpts.insert(at, shorter.excerpt());
                saved = saved.saturating_add(shorter.saves);
            }
        }
        let newest = (0..ground.len()).rev().find(|at| ground.ledger.images(*at) > 0);
        let old = stay.head..newest.unwrap_or(0).min(stay.safe);
        for at in old.filter(|at| ground.ledger.images(*at) > 0 && Some(*at) != stay.user && is_whole(*at)) {
            let id = ground.ledger.id(at);
            let bare = || Excerpt { id, content: None, arguments: Vec::new(), keep_images: false };
            excerpts.entry(at).or_insert_with(bare).keep_images = false;
        }
        stay.tokens = stay.tokens.saturating_sub(saved);
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
            share(self.budget.said + self.budget.calls + self.budget.notes, level.texts).saturating_add(2 * FRAME);
        let allowed = target.saturating_sub(texts).saturating_sub(stay.tokens.saturating_sub(cost));
        if cost <= allowed {
            return Ok(Some(excerpts));
        }
        let mut wanted = Set::empty(ground.len());
        wanted.insert(newest.clone());
        let messages = self.read(&wanted)?;
        if messages.len() != costs.len() {
            return Ok(None);
        }
        let Some(shown) = excerpt::group(&messages, &costs, allowed, self.source) else { return Ok(None) };
        for (at, (excerpt, tokens)) in newest.zip(shown) {
            // What is shown shorter already is not made shorter by the same words again.
            if let Some(excerpt) = excerpt.filter(|_| tokens < ground.least_cost(at)) {
                stay.tokens = stay.tokens.saturating_sub(ground.cost(at)).saturating_add(tokens);
                excerpts.insert(at, excerpt);
            }
        }
        Ok(Some(excerpts))
    }

    /// Whether a summary saves more than it costs.
    fn is_worth(&self, prepared: &Prepared, stay: &Stay) -> bool {
        let ground = self.ground;
        let folds = ground.ledger.named(&prepared.covers()).and(&ground.shown).without(&stay.kept);
        ground.costs(&folds) > prepared.tokens.saturating_add(FRAME)
    }

    /// Keeps what is newer than the summary as it is, as far as it fits.
    fn keep_newer(&self, level: &Level, prepared: &Prepared, stay: &mut Stay) {
        let ground = self.ground;
        let covered = ground.ledger.named(&prepared.covers());
        let text = prepared.tokens.saturating_add(FRAME);
        let mut left = self.budget.goal.saturating_sub(stay.tokens).saturating_sub(text);
        let mut whole = stay.clone();
        while whole.next_group(ground).is_some()
            && ground.ledger.group(whole.tail - 1).any(|at| !covered.contains(at) && !whole.kept.contains(at))
        {
            whole.extend(ground);
        }
        let open = whole.kept.neither(&covered);
        let of_earlier = ground.earlier(&open).iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        left = left.saturating_sub(of_earlier.min(self.budget.earlier));
        if whole.tokens - stay.tokens > left || open.meets_both(&ground.shown) {
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

    fn read(&self, set: &Set) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for range in self.ground.ledger.ranges(set) {
            messages.extend(self.source.messages(range)?);
        }
        Ok(messages)
    }

    fn messages(&self, stay: &Stay, excerpts: &BTreeMap<usize, Excerpt>, span: std::ops::Range<usize>) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut before = None;
        for at in span.filter(|at| stay.kept.contains(*at)) {
            let id = self.ground.ledger.id(at);
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

/// Whether it is this engine's, or the host's digest.
pub(crate) fn is_own(key: &str) -> bool {
    key.starts_with(BY_MODEL) || is_by_rule(key)
}

/// Whether no model wrote it.
pub(crate) fn is_by_rule(key: &str) -> bool {
    key.starts_with(BY_RULE) || key.starts_with(BY_HOST)
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
