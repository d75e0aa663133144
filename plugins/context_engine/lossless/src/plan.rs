//! The new view: segments that are there, one for what leaves, the working set, and what stays.
//!
//! Tried from comfortable to tight; the first that leaves room to go on wins. Whatever leaves the view is covered.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use hermes_plugin::context_engine::{Excerpt, Plan, Segment};
use hermes_plugin::{Error, Message, MessageId, MessageRange};

use crate::clip::grouped;
use crate::config::Config;
use crate::cut;
use crate::desk::{Desk, read};
use crate::gist::Gist;
use crate::ground::{Ground, fnv};
use crate::layout::{Layout, Wish};
use crate::policy::{self, BYTES, Shares, share};
use crate::segment::{SEGMENT, WORKING, fit, summary};
use crate::shelf::Shelf;
use crate::source::{Database, Source};
use crate::texts::{Made, Text};
use crate::told::Told;
use crate::working::{self, Room, Seen};

/// What the host puts around a summary.
pub(crate) const FRAME: u32 = 55;
/// What it puts around the first of them beside that.
const FIRST_FRAME: u32 = 65;
/// Tokens below which a working set says too little.
const LEAST_WORKING: u32 = 200;

/// What a plan is made from.
pub(crate) struct Planner<'a, S, D> {
    pub(crate) ground: &'a Ground<'a>,
    pub(crate) config: &'a Config,
    pub(crate) shares: Shares,
    pub(crate) desk: &'a Desk,
    pub(crate) shelf: &'a mut Shelf<D>,
    pub(crate) source: &'a S,
    /// The window is full, or the user asks for it: a small gain is welcome.
    pub(crate) needed: bool,
    /// The window is full: what is comfortable may be given up for room. A wish of the user alone is no reason to.
    pub(crate) presses: bool,
    /// What the user cares about most.
    pub(crate) focus: &'a str,
    /// What memories want kept.
    pub(crate) memory: &'a str,
    /// Texts of segments that stand in the view, by key, as far as they are known.
    pub(crate) known: &'a HashMap<String, String>,
    /// Gists of segments that stand in the view, by key, as far as they were needed.
    pub(crate) gists: &'a mut HashMap<String, Rc<Gist>>,
    /// The segment that was made last of several, and what it was made from.
    pub(crate) union: &'a mut Option<(u64, Made)>,
    pub(crate) told: &'a mut Told,
}

/// A plan and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) plan: Plan,
    /// What the new view takes.
    pub(crate) tokens: u32,
    /// Of it, segments and the working set.
    pub(crate) prefix: u32,
    pub(crate) working: u32,
    pub(crate) segments: u32,
    /// The newest message that leaves.
    pub(crate) folded: MessageId,
    /// Of the new segments, by key.
    pub(crate) gists: Vec<(String, Rc<Gist>)>,
}

impl Draft {
    /// Tells plans apart.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", fnv(format!("{:?}", self.plan.segments).bytes()))
    }
}

impl<S: Source, D: Database> Planner<'_, S, D> {
    /// The plan, or none when nothing worth it is to be gained.
    pub(crate) fn plan(&mut self) -> Result<Option<Draft>, Error> {
        let before = self.ground.before();
        let over = before > self.shares.limit;
        let worth = if over { before } else { share(before, if self.needed { 0.97 } else { 0.9 }) };
        let most = self.shares.limit.min(worth).min(before.saturating_sub(1));
        let tightens = over || self.presses || (self.needed && before > self.shares.goal);
        let mut best: Option<Draft> = None;
        for (tight, cuts) in [(1.0, false), (0.5, false), (0.0, false), (0.0, true)] {
            let shares = if tight < 1.0 { self.shares.tightened(tight) } else { self.shares };
            // A large newest group that fits had better stay whole.
            if cuts && best.as_ref().is_some_and(|best| best.tokens <= most) {
                break;
            }
            if let Some(draft) = self.attempt(&shares, cuts)? {
                if draft.tokens <= most.min(self.shares.goal) {
                    return Ok(Some(draft));
                }
                if best.as_ref().is_none_or(|best| draft.tokens < best.tokens) {
                    best = Some(draft);
                }
            }
            // Where there is room only the comfortable view is worth a broken cache.
            if !tightens {
                break;
            }
        }
        Ok(best.filter(|best| best.tokens <= most))
    }

    fn attempt(&mut self, shares: &Shares, cuts: bool) -> Result<Option<Draft>, Error> {
        let ground = self.ground;
        let wish = Wish {
            tail: shares.tail,
            groups: if shares.tail > 0 { policy::GROUPS } else { 1 },
            last: if shares.tail > 0 { self.config.protect_last_n } else { 0 },
            head: shares.head,
            first: self.config.protect_first_n,
        };
        let mut layout = Layout::choose(ground, wish);
        let leaving = layout.leaving(ground);
        if leaving < (shares.fold / 2).max(1) && !self.needed {
            return Ok(None);
        }
        let excerpts = if cuts { self.cut(shares, &mut layout)? } else { BTreeMap::new() };
        let texts = self.texts(shares, &layout)?;
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
            Text::New(Made { content, covers, gist, .. }) => {
                let count = covers.iter().map(|range| ground.rows.span(*range).len()).sum();
                let made = summary(SEGMENT, content, covers, count);
                gists.push((made.key.clone(), gist));
                Segment::Summary(made)
            }
        }));
        let mut of_working = 0;
        if let Some((content, covers)) = self.working(shares, &layout, prefix, &contents)? {
            of_working = self.source.count(&content).saturating_add(FRAME);
            segments.push(Segment::Summary(summary(WORKING, content, covers, 0)));
        }
        segments.extend(self.messages(&layout, &excerpts, layout.head..ground.len()));

        let left = (ground.first_shown..ground.len()).filter(|at| ground.is_shown(*at) && !layout.kept[*at]);
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
        Ok(Some(Draft {
            plan: Plan { segments, reason, extra },
            tokens: layout.tokens.saturating_add(prefix).saturating_add(of_working).saturating_add(FIRST_FRAME),
            prefix,
            working: of_working,
            segments: segments_count,
            folded: left.last().map_or(0, |at| ground.rows.get(*at).id),
            gists,
        }))
    }

    fn content(&self, text: &Text<'_>) -> Option<String> {
        match text {
            Text::Kept(shown) => self.known.get(&shown.key).cloned(),
            Text::New(made) => Some(made.content.clone()),
        }
    }

    /// What is in play and not among what stays, in what the segments leave of the prefix.
    fn working(
        &mut self,
        shares: &Shares,
        layout: &Layout,
        segments: u32,
        texts: &[String],
    ) -> Result<Option<(String, Vec<MessageRange>)>, Error> {
        let most = shares.working.min(shares.prefix.saturating_sub(segments)).saturating_sub(FRAME);
        if most < LEAST_WORKING {
            return Ok(None);
        }
        let rows = self.ground.rows;
        let mut tail = Vec::new();
        for range in rows.ranges(layout.tail..rows.len(), |_| true) {
            tail.extend(read(self.source, range)?);
        }
        let seen = Seen::of(self.desk, &tail, texts, self.told, self.memory);
        let whole = f64::from(self.config.working_tokens.max(1)) * BYTES;
        let sources = RefCell::new(Vec::new());
        let content = fit(most, self.source, |bytes| {
            let share = (bytes as f64 / whole).min(1.0);
            let made = working::render(self.desk, &seen, Room { bytes, share });
            let (content, of) = made.unwrap_or_default();
            sources.replace(of);
            content
        });
        let sources = sources.into_inner();
        let covers = sources.iter().filter(|id| rows.position(**id).is_some()).map(|id| MessageRange::one(*id));
        let covers: Vec<MessageRange> = covers.collect();
        Ok((!content.trim().is_empty() && !covers.is_empty()).then_some((content, covers)))
    }

    /// Shorter renderings of the newest group, where it does not fit otherwise.
    fn cut(&self, shares: &Shares, layout: &mut Layout) -> Result<BTreeMap<usize, Excerpt>, Error> {
        let ground = self.ground;
        let newest = layout.tail..ground.len();
        let others = newest.clone().filter(|at| Some(*at) != layout.user);
        let cost = others.map(|at| layout.cost(ground, at)).fold(0, u32::saturating_add);
        let texts = shares.limit / 6 + 2 * FRAME;
        let allowed = share(shares.limit, 0.9).saturating_sub(texts).saturating_sub(layout.tokens.saturating_sub(cost));
        let mut excerpts = BTreeMap::new();
        if cost <= allowed {
            return Ok(excerpts);
        }
        let mut messages: Vec<Message> = Vec::new();
        for range in ground.rows.ranges(newest.clone(), |at| Some(at) != layout.user) {
            messages.extend(read(self.source, range)?);
        }
        let Some(shown) = cut::group(&messages, allowed, self.source) else { return Ok(excerpts) };
        for (message, (excerpt, tokens)) in messages.iter().zip(shown) {
            if let (Some(excerpt), Some(at)) = (excerpt, ground.rows.position(message.id)) {
                layout.tokens = layout.tokens.saturating_sub(ground.cost(at)).saturating_add(tokens);
                excerpts.insert(at, excerpt);
            }
        }
        Ok(excerpts)
    }

    fn messages(&self, layout: &Layout, excerpts: &BTreeMap<usize, Excerpt>, span: Range<usize>) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut before = None;
        for at in span.filter(|at| layout.kept[*at]) {
            let id = self.ground.rows.get(at).id;
            if let Some(excerpt) = excerpts.get(&at) {
                segments.push(Segment::Excerpt(excerpt.clone()));
            } else if layout.is_restored(self.ground, at) {
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
