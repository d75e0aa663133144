//! Builds the new view from the messages that stay, a prepared summary, and a rule-based list for all other messages.
//!
//! Layouts are tried from comfortable to tight; the first that reaches the goal wins. Every message that leaves the view is
//! covered by a summary.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hermes_plugin::context_engine::{Excerpt, Plan, Segment, ShownSummary, Summary};
use hermes_plugin::{Error, Message, MessageRange};

use crate::budget::{Budget, FRAME, LIST, PREFIX, share};
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::digest::digest;
use crate::entries::RuleEntries;
use crate::excerpt;
use crate::layout::Layout;
use crate::notes::{NoteBudget, Notes};
use crate::set::Set;
use crate::shortening::Shortened;
use crate::source::Source;
use crate::storage::Prepared;
use crate::summary_key::{BY_MODEL, BY_RULE, is_by_rule};
use hermes_guest_engine::fnv;
use hermes_guest_secrets::inert;

/// Tokens of a list's headings.
const HEADINGS: u32 = 60;
/// Fewest tokens that a picture saves when a line of text replaces it.
const PICTURE: u32 = 200;

/// Work prepared for a plan.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PreparedWork<'a> {
    pub(crate) written: Option<&'a Prepared>,
    pub(crate) listed: Option<&'a Prepared>,
    pub(crate) shorter: &'a [Shortened],
    pub(crate) entries: Option<&'a RuleEntries>,
}

/// Input for a plan.
pub(crate) struct Planner<'a, S> {
    pub(crate) current: &'a CurrentView<'a>,
    pub(crate) config: &'a Config,
    pub(crate) budget: Budget,
    pub(crate) ready: PreparedWork<'a>,
    pub(crate) source: &'a S,
    /// If false, only prepared work justifies a new view.
    pub(crate) needed: bool,
}

/// A plan and its figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedView {
    pub(crate) plan: Plan,
    /// Tokens of the new view.
    pub(crate) tokens: u32,
    /// Number of new summaries that were prepared, and number of all new summaries.
    pub(crate) ready: (u32, u32),
}

impl PlannedView {
    /// A hash that distinguishes plans.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", fnv(format!("{:?}", self.plan.segments).bytes()))
    }

    /// Whether no message had to be read on the spot.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.1 > 0 && self.ready.0 == self.ready.1
    }
}

/// A rule-based summary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleSummary {
    pub(crate) text: String,
    pub(crate) tokens: u32,
    pub(crate) covers: Vec<MessageRange>,
    /// Whether it was made from prepared entries alone.
    ready: bool,
}

/// How tightly the view is packed.
struct Level {
    head: bool,
    prepared: bool,
    /// Share of the budgets for the tail and for texts.
    tail: f64,
    texts: f64,
    cut: Cut,
}

/// Whether to make excerpts of the newest group, and down to which size.
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
    /// The plan, or `None` if there is too little to gain.
    pub(crate) fn plan(&self) -> Result<Option<PlannedView>, Error> {
        let most = self.budget.limit.min(self.budget.worth).min(self.budget.before.saturating_sub(1));
        let mut best: Option<PlannedView> = None;
        for level in LEVELS.iter().filter(|level| self.needed || level.prepared) {
            // Prefer a large newest group in full if it fits comfortably.
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

    fn attempt(&self, level: &Level) -> Result<Option<PlannedView>, Error> {
        let current = self.current;
        let mut layout = Layout::choose(current, self.config, &self.budget, level.head, level.tail);
        let Some(mut excerpts) = self.cut(level, &mut layout)? else { return Ok(None) };
        let may_use = |prepared: &&Prepared| level.prepared && self.is_worth(prepared, &layout);
        let written = self.ready.written.filter(may_use);
        let listed = self.ready.listed.filter(may_use);
        let named = |prepared: &Prepared| current.index.named(&prepared.covers());
        let mut covered = written.map_or_else(|| Set::empty(current.len()), named);
        if let Some(prepared) = written.or(listed) {
            self.keep_newer(level, prepared, &mut layout);
        }
        let is_needed = |_: &&Prepared| !layout.kept.neither(&covered).and(&current.shown).is_empty();
        let listed = listed.filter(is_needed);
        if let Some(listed) = listed {
            covered = covered.or(&named(listed));
        }
        let open = layout.kept.neither(&covered);
        let (stays, merged) = self.earlier(level, &open, written, listed);
        if !self.needed && (!merged.is_empty() || open.meets_both(&current.shown)) {
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
            self.shorten(&mut layout, &mut excerpts);
        }
        tokens = tokens.saturating_add(layout.tokens);

        let mut segments = self.messages(&layout, &excerpts, 0..layout.head);
        segments.extend(texts.into_iter().map(|(_, segment)| segment));
        segments.extend(self.messages(&layout, &excerpts, layout.head..current.len()));
        let reason = self.reason(level, &layout, written.is_some(), !excerpts.is_empty());
        let extra = vec![("prepared".to_owned(), format!("{}/{}", ready.0, ready.1))];
        Ok(Some(PlannedView { plan: Plan { segments, reason, extra }, tokens, ready }))
    }

    fn reason(&self, level: &Level, layout: &Layout, written: bool, shorter: bool) -> String {
        let folded = self.current.shown.without(&layout.kept).count();
        let folded = if folded == 1 { "1 message was".to_owned() } else { format!("{folded} messages were") };
        match (written, shorter && level.cut != Cut::No) {
            (true, _) => format!("{folded} folded into a summary that a model wrote"),
            (false, false) => format!("{folded} folded by rule: no summary was ready"),
            (false, true) => {
                format!("{folded} folded by rule, and the newest ones are shown shorter to fit the window")
            }
        }
    }

    /// Earlier summaries: those that stay unchanged, and those that are merged into a list.
    fn earlier(
        &self,
        level: &Level,
        open: &Set,
        written: Option<&Prepared>,
        listed: Option<&Prepared>,
    ) -> (Vec<&ShownSummary>, Vec<&ShownSummary>) {
        let earlier = self.current.earlier(open);
        let is_listed = listed.is_some() || open.meets_both(&self.current.shown);
        // Merge two lists into one.
        let (lists, told): (Vec<_>, Vec<_>) =
            earlier.into_iter().partition(|summary| is_listed && is_by_rule(&summary.key));
        let of =
            |summaries: &[&ShownSummary]| summaries.iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        let taken = written.map_or(0, |written| written.tokens + FRAME) + if is_listed { LIST + FRAME } else { 0 };
        let room = share(self.budget.earlier, level.texts).min(PREFIX.saturating_sub(taken));
        if of(&told) <= room { (told, lists) } else { (Vec::new(), [told, lists].concat()) }
    }

    /// A rule-based summary of messages that leave the view, and of merged summaries and an earlier list.
    fn list(
        &self,
        level: &Level,
        open: &Set,
        stays: &[&ShownSummary],
        merged: &[&ShownSummary],
        listed: Option<&Prepared>,
        written: Option<&Prepared>,
    ) -> Result<Option<RuleSummary>, Error> {
        let current = self.current;
        let fresh = open.and(&current.shown);
        if fresh.is_empty() && merged.is_empty() {
            return Ok(listed.map(|listed| RuleSummary {
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
        let room = NoteBudget { written: share(budget.notes, level.texts).min(left - said - done), said, done };

        let mut parts =
            merged.iter().map(|summary| self.source.summary(&summary.key)).collect::<Result<Vec<_>, _>>()?;
        parts.extend(listed.map(|listed| listed.text.clone()));
        let mut parts: Vec<Notes> = parts.iter().map(|text| Notes::parse(text)).collect();
        // Shorten each part separately, so that none pushes out another.
        let sizes: Vec<u32> = parts.iter().map(|part| self.source.count(&part.written)).collect();
        let most = excerpt::cap(&sizes, room.written);
        let mut notes = Notes::default();
        for part in &mut parts {
            part.written = excerpt::shorten(&part.written, most, self.source);
            notes.absorb(std::mem::take(part));
        }
        let (jotted, unread) =
            self.ready.entries.map_or_else(|| (Notes::default(), fresh.clone()), |of| of.of(current.index, &fresh));
        notes.absorb(jotted);
        notes.absorb(digest(&self.read(&unread)?));
        notes.written = inert(&notes.written).into_owned();
        let notes = notes.within(room, self.source);
        // Exclude messages that a remaining summary covers.
        let stood_for = current.covered_by(stays).without(&current.shown);
        let mut covers = open.without(&stood_for);
        if let Some(listed) = listed {
            covers = covers.or(&current.index.named(&listed.covers()));
        }
        let covers = current.index.ranges(&covers);
        let (Some(first), Some(last)) = (covers.first(), covers.last()) else { return Ok(None) };
        let text = notes.by_rule(first.first, last.last);
        let tokens = self.source.count(&text);
        Ok(Some(RuleSummary { text, tokens, covers, ready: unread.is_empty() }))
    }

    /// The list that the next plan would need beside the written summary. `None` if there is too little to list.
    pub(crate) fn listing(&self, least: u32) -> Result<Option<RuleSummary>, Error> {
        let current = self.current;
        let level = &LEVELS[0];
        let layout = Layout::choose(current, self.config, &self.budget, level.head, level.tail);
        let written = self.ready.written;
        let covered = written.map_or_else(|| Set::empty(current.len()), |of| current.index.named(&of.covers()));
        let open = layout.kept.neither(&covered);
        let listed = self.ready.listed.map_or_else(|| covered.clone(), |of| current.index.named(&of.covers()));
        if current.said(&open.and(&current.shown).without(&listed)) < least.max(1) {
            return Ok(None);
        }
        let (stays, merged) = self.earlier(level, &open, written, None);
        self.list(level, &open, &stays, &merged, None, written)
    }

    /// Shortens old results, large arguments and old images. This is free where the view is replaced anyway; the newest
    /// messages stay untouched.
    fn shorten(&self, layout: &mut Layout, excerpts: &mut BTreeMap<usize, Excerpt>) {
        let current = self.current;
        let is_whole = |at: usize| layout.kept.contains(at) && current.is_shown(at) && !current.is_shorter(at);
        let mut saved = 0u32;
        for shorter in self.ready.shorter {
            let Some(at) = current.index.position(shorter.id) else { continue };
            if at < layout.head || Some(at) == layout.user || !is_whole(at) {
                continue;
            }
            let stands = |id: &u64| current.index.position(*id).is_some_and(|at| at >= layout.safe && is_whole(at));
            if let Some(newer) = shorter.same.filter(stands) {
                excerpts.insert(at, shorter.pointer(newer));
                saved = saved.saturating_add(shorter.saves.saturating_sub(10));
            } else if at < layout.safe {
                excerpts.insert(at, shorter.excerpt());
                saved = saved.saturating_add(shorter.saves);
            }
        }
        let newest = (0..current.len()).rev().find(|at| current.index.images(*at) > 0);
        let old = layout.head..newest.unwrap_or(0).min(layout.safe);
        for at in old.filter(|at| current.index.images(*at) > 0 && Some(*at) != layout.user && is_whole(*at)) {
            let id = current.index.id(at);
            let bare = || Excerpt { id, content: None, arguments: Vec::new(), keep_images: false };
            if let Entry::Vacant(entry) = excerpts.entry(at) {
                entry.insert(bare());
                saved = saved.saturating_add(current.index.images(at).saturating_mul(PICTURE));
            }
        }
        layout.tokens = layout.tokens.saturating_sub(saved);
    }

    /// Excerpts of the newest group, if the level asks for them. `None` if they do not help.
    fn cut(&self, level: &Level, layout: &mut Layout) -> Result<Option<BTreeMap<usize, Excerpt>>, Error> {
        let current = self.current;
        let mut excerpts = BTreeMap::new();
        let target = match level.cut {
            Cut::No => return Ok(Some(excerpts)),
            Cut::ToGoal => self.budget.goal,
            Cut::ToLimit => share(self.budget.limit, 0.9),
        };
        let newest = layout.tail..current.len();
        let costs: Vec<u32> =
            newest.clone().map(|at| if Some(at) == layout.user { 0 } else { current.cost(at) }).collect();
        let cost = costs.iter().copied().fold(0, u32::saturating_add);
        let texts =
            share(self.budget.said + self.budget.calls + self.budget.notes, level.texts).saturating_add(2 * FRAME);
        let allowed = target.saturating_sub(texts).saturating_sub(layout.tokens.saturating_sub(cost));
        if cost <= allowed {
            return Ok(Some(excerpts));
        }
        let mut wanted = Set::empty(current.len());
        wanted.insert(newest.clone());
        let messages = self.read(&wanted)?;
        if messages.len() != costs.len() {
            return Ok(None);
        }
        let Some(shown) = excerpt::group(&messages, &costs, allowed, self.source) else { return Ok(None) };
        for (at, (excerpt, tokens)) in newest.zip(shown) {
            // Do not shorten an existing excerpt again to the same text.
            if let Some(excerpt) = excerpt.filter(|_| tokens < current.least_cost(at)) {
                layout.tokens = layout.tokens.saturating_sub(current.cost(at)).saturating_add(tokens);
                excerpts.insert(at, excerpt);
            }
        }
        Ok(Some(excerpts))
    }

    /// Whether a summary saves more than it costs.
    fn is_worth(&self, prepared: &Prepared, layout: &Layout) -> bool {
        let current = self.current;
        let folds = current.index.named(&prepared.covers()).and(&current.shown).without(&layout.kept);
        current.costs(&folds) > prepared.tokens.saturating_add(FRAME)
    }

    /// Keeps messages newer than the summary in full, as far as they fit.
    fn keep_newer(&self, level: &Level, prepared: &Prepared, layout: &mut Layout) {
        let current = self.current;
        let covered = current.index.named(&prepared.covers());
        let text = prepared.tokens.saturating_add(FRAME);
        let mut left = self.budget.goal.saturating_sub(layout.tokens).saturating_sub(text);
        let mut whole = layout.clone();
        while whole.next_group(current).is_some()
            && current.index.group(whole.tail - 1).any(|at| !covered.contains(at) && !whole.kept.contains(at))
        {
            whole.extend(current);
        }
        let open = whole.kept.neither(&covered);
        let of_earlier = current.earlier(&open).iter().map(|summary| summary.tokens).fold(0, u32::saturating_add);
        left = left.saturating_sub(of_earlier.min(self.budget.earlier));
        if whole.tokens - layout.tokens > left || open.meets_both(&current.shown) {
            let texts = share(self.budget.said + self.budget.calls, level.texts).saturating_add(FRAME);
            left = left.saturating_sub(texts);
        }
        while layout.tail > whole.tail {
            match layout.next_group(current) {
                Some(cost) if cost <= left => left -= cost,
                _ => break,
            }
            layout.extend(current);
        }
    }

    fn read(&self, set: &Set) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        for range in self.current.index.ranges(set) {
            messages.extend(self.source.messages(range)?);
        }
        Ok(messages)
    }

    fn messages(
        &self,
        layout: &Layout,
        excerpts: &BTreeMap<usize, Excerpt>,
        span: std::ops::Range<usize>,
    ) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut before = None;
        for at in span.filter(|at| layout.kept.contains(*at)) {
            let id = self.current.index.id(at);
            if let Some(excerpt) = excerpts.get(&at) {
                segments.push(Segment::Excerpt(excerpt.clone()));
            } else if layout.is_restored(self.current, at) {
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

fn newest(covers: &[MessageRange]) -> u64 {
    covers.iter().map(|range| range.last).max().unwrap_or_default()
}

/// A summary. Its key is a hash of text and covers, so that one key never has two meanings.
fn summary(kind: &str, content: &str, covers: Vec<MessageRange>) -> Segment {
    let first = covers.iter().map(|range| range.first).min().unwrap_or_default();
    let ids = covers.iter().flat_map(|range| [range.first, range.last]).flat_map(u64::to_le_bytes);
    let hash = fnv(content.bytes().chain(ids));
    let key = format!("{kind}{first}-{}:{hash:016x}", newest(&covers));
    Segment::Summary(Summary { key, content: content.to_owned(), covers })
}

#[cfg(test)]
mod tests;
