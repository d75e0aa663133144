//! Builds the new view: existing segments, a new segment for messages that leave, the working set, and messages that stay.
//!
//! Layouts are tried from comfortable to tight; the first that leaves enough room wins. Every message that leaves the view
//! is covered by a summary.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use hermes_plugin::context_engine::{Excerpt, Plan, Segment};
use hermes_plugin::{Error, Message, MessageId, MessageRange};

use crate::budgets::{Budgets, share};
use crate::clip::grouped;
use crate::cut;
use crate::gist::Gist;
use crate::layout::{Layout, LayoutLimits};
use crate::planner::{FRAME, NewSegment, Planner};
use crate::policy::{self, BYTES};
use crate::read_cache::read;
use crate::segment::{SEGMENT, WORKING, fit, summary};
use crate::source::{Database, Source};
use crate::texts::Text;
use crate::working::{self, AlreadyShown, SpaceLimit};
use hermes_guest_engine::fnv;

/// Tokens that it adds around the first summary besides.
const FIRST_FRAME: u32 = 65;
/// A working set below this many tokens is left out.
const LEAST_WORKING: u32 = 200;

/// A plan and its figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedView {
    pub(crate) plan: Plan,
    /// Tokens of the new view.
    pub(crate) tokens: u32,
    /// Tokens of its segments and of its working set.
    pub(crate) prefix: u32,
    pub(crate) working: u32,
    pub(crate) segments: u32,
    /// The newest message that leaves the view.
    pub(crate) folded: MessageId,
    /// Gists of the new segments, by key.
    pub(crate) gists: Vec<(String, Rc<Gist>)>,
}

impl PlannedView {
    /// A hash that distinguishes plans.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", fnv(format!("{:?}", self.plan.segments).bytes()))
    }
}

impl<S: Source, D: Database> Planner<'_, S, D> {
    /// The plan, or `None` if there is too little to gain.
    pub(crate) fn plan(&mut self) -> Result<Option<PlannedView>, Error> {
        let before = self.current.before();
        let over = before > self.budgets.limit;
        let worth = if over { before } else { share(before, if self.needed { 0.97 } else { 0.9 }) };
        let most = self.budgets.limit.min(worth).min(before.saturating_sub(1));
        let tightens = over || self.presses || (self.needed && before > self.budgets.goal);
        let mut best: Option<PlannedView> = None;
        for (tight, cuts) in [(1.0, false), (0.5, false), (0.0, false), (0.0, true)] {
            let budgets = if tight < 1.0 { self.budgets.tightened(tight) } else { self.budgets };
            // Prefer a large newest group in full if it fits.
            if cuts && best.as_ref().is_some_and(|best| best.tokens <= most) {
                break;
            }
            if let Some(draft) = self.attempt(&budgets, cuts)? {
                if draft.tokens <= most.min(self.budgets.goal) {
                    return Ok(Some(draft));
                }
                if best.as_ref().is_none_or(|best| draft.tokens < best.tokens) {
                    best = Some(draft);
                }
            }
            // Unless room is short, only the comfortable view is worth breaking the cache.
            if !tightens {
                break;
            }
        }
        Ok(best.filter(|best| best.tokens <= most))
    }

    fn attempt(&mut self, budgets: &Budgets, cuts: bool) -> Result<Option<PlannedView>, Error> {
        let current = self.current;
        let limits = LayoutLimits {
            tail: budgets.tail,
            groups: if budgets.tail > 0 { policy::GROUPS } else { 1 },
            last: if budgets.tail > 0 { self.config.protect_last_n } else { 0 },
            head: budgets.head,
            first: self.config.protect_first_n,
        };
        let mut layout = Layout::choose(current, limits);
        let leaving = layout.leaving(current);
        if leaving < (budgets.fold / 2).max(1) && !self.needed {
            return Ok(None);
        }
        let excerpts = if cuts { self.cut(budgets, &mut layout)? } else { BTreeMap::new() };
        let texts = self.texts(budgets, &layout)?;
        if texts.iter().all(Text::is_kept) && excerpts.is_empty() {
            return Ok(None);
        }
        let prefix = texts.iter().map(Text::tokens).fold(0, u32::saturating_add);
        let segments_count = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let made = texts.iter().filter(|text| !text.is_kept()).count();
        let ready = texts.iter().filter(|text| text.is_ready()).count();

        let contents: Vec<String> = texts.iter().filter_map(|text| self.content(text)).collect();
        let mut segments = self.messages(&layout, &excerpts, 0..layout.head);
        let mut gists = Vec::new();
        segments.extend(texts.into_iter().map(|text| match text {
            Text::Kept(shown) => Segment::KeepSummary(shown.key.clone()),
            Text::New(NewSegment { content, covers, gist, .. }) => {
                let count = covers.iter().map(|range| current.rows.span(*range).len()).sum();
                let made = summary(SEGMENT, content, covers, count);
                gists.push((made.key.clone(), gist));
                Segment::Summary(made)
            }
        }));
        let mut of_working = 0;
        if let Some((content, covers)) = self.working(budgets, &layout, prefix, &contents)? {
            of_working = self.source.count(&content).saturating_add(FRAME);
            segments.push(Segment::Summary(summary(WORKING, content, covers, 0)));
        }
        segments.extend(self.messages(&layout, &excerpts, layout.head..current.len()));

        let left = (current.first_shown..current.len()).filter(|at| current.is_shown(*at) && !layout.kept[*at]);
        let left: Vec<usize> = left.collect();
        let what = match left.len() {
            1 => "1 message was".to_owned(),
            many => format!("{} messages were", grouped(many as u64)),
        };
        let reason = if excerpts.is_empty() {
            format!("{what} folded ({} tokens); recall and expand bring back any of it", grouped(u64::from(leaving)))
        } else {
            format!("{what} folded and the newest ones are shown shorter, to fit the window")
        };
        let extra = vec![("prepared".to_owned(), format!("{ready}/{made}"))];
        Ok(Some(PlannedView {
            plan: Plan { segments, reason, extra },
            tokens: layout.tokens.saturating_add(prefix).saturating_add(of_working).saturating_add(FIRST_FRAME),
            prefix,
            working: of_working,
            segments: segments_count,
            folded: left.last().map_or(0, |at| current.rows.get(*at).id),
            gists,
        }))
    }

    fn content(&self, text: &Text<'_>) -> Option<String> {
        match text {
            Text::Kept(shown) => self.cache.texts.get(&shown.key).cloned(),
            Text::New(made) => Some(made.content.clone()),
        }
    }

    /// The working set, without text that stays in view anyway, in the space that the segments leave.
    fn working(
        &mut self,
        budgets: &Budgets,
        layout: &Layout,
        segments: u32,
        texts: &[String],
    ) -> Result<Option<(String, Vec<MessageRange>)>, Error> {
        let most = budgets.working.min(budgets.prefix.saturating_sub(segments)).saturating_sub(FRAME);
        if most < LEAST_WORKING {
            return Ok(None);
        }
        let rows = self.current.rows;
        let mut tail = Vec::new();
        for range in rows.ranges(layout.tail..rows.len(), |_| true) {
            tail.extend(read(self.source, range)?);
        }
        let seen = AlreadyShown::of(self.read_cache, &tail, texts, &mut self.cache.mentions, self.memory);
        let whole = f64::from(self.config.working_tokens.max(1)) * BYTES;
        let sources = RefCell::new(Vec::new());
        let content = fit(most, self.source, |bytes| {
            let share = (bytes as f64 / whole).min(1.0);
            let made = working::render(self.read_cache, &seen, SpaceLimit { bytes, share });
            let (content, of) = made.unwrap_or_default();
            sources.replace(of);
            content
        });
        let sources = sources.into_inner();
        let covers = sources.iter().filter(|id| rows.position(**id).is_some()).map(|id| MessageRange::one(*id));
        let covers: Vec<MessageRange> = covers.collect();
        Ok((!content.trim().is_empty() && !covers.is_empty()).then_some((content, covers)))
    }

    /// Excerpts of the newest group, if it does not fit otherwise.
    fn cut(&self, budgets: &Budgets, layout: &mut Layout) -> Result<BTreeMap<usize, Excerpt>, Error> {
        let current = self.current;
        let newest = layout.tail..current.len();
        let others = newest.clone().filter(|at| Some(*at) != layout.user);
        let cost = others.map(|at| layout.cost(current, at)).fold(0, u32::saturating_add);
        let texts = budgets.limit / 6 + 2 * FRAME;
        let allowed =
            share(budgets.limit, 0.9).saturating_sub(texts).saturating_sub(layout.tokens.saturating_sub(cost));
        let mut excerpts = BTreeMap::new();
        if cost <= allowed {
            return Ok(excerpts);
        }
        let mut messages: Vec<Message> = Vec::new();
        for range in current.rows.ranges(newest.clone(), |at| Some(at) != layout.user) {
            messages.extend(read(self.source, range)?);
        }
        let Some(shown) = cut::group(&messages, allowed, self.source) else { return Ok(excerpts) };
        for (message, (excerpt, tokens)) in messages.iter().zip(shown) {
            if let (Some(excerpt), Some(at)) = (excerpt, current.rows.position(message.id)) {
                layout.tokens = layout.tokens.saturating_sub(current.cost(at)).saturating_add(tokens);
                excerpts.insert(at, excerpt);
            }
        }
        Ok(excerpts)
    }

    fn messages(&self, layout: &Layout, excerpts: &BTreeMap<usize, Excerpt>, span: Range<usize>) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut before = None;
        for at in span.filter(|at| layout.kept[*at]) {
            let id = self.current.rows.get(at).id;
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

#[cfg(test)]
mod tests;
