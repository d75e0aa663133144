//! The summaries of a new view: unchanged segments, the new segment, and merged old segments.
//!
//! A merged segment is made from the facts of the messages themselves, not from the texts of the old segments, so that no
//! detail is summarised twice.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use hermes_guest_engine::speaker::Speaker;
use hermes_plugin::context_engine::ShownSummary;
use hermes_plugin::{Error, MessageRange, log};

use crate::budgets::{Budgets, share};
use crate::fact::{Fact, Kind, Reader};
use crate::gist::Gist;
use crate::layout::Layout;
use crate::planner::{FRAME, NewSegment, Planner};
use crate::policy;
use crate::read_cache::read;
use crate::segment::{Note, SEGMENT, SegmentHeader, WORKING, counted, fit, render};
use crate::source::{Database, Source};
use hermes_guest_engine::fnv;

/// Most bytes read on the spot because they were not read ahead.
const MOST: usize = 2 << 20;
/// Least tokens of a segment, and the step by which a merged one grows.
const LEAST: u32 = 150;
const STEP: u32 = 250;

/// A summary of the new view.
pub(crate) enum Text<'a> {
    Kept(&'a ShownSummary),
    New(NewSegment),
}

impl Text<'_> {
    pub(crate) fn tokens(&self) -> u32 {
        match self {
            Self::Kept(shown) => shown.tokens,
            Self::New(made) => made.tokens,
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::New(made) if made.ready)
    }

    fn covers(&self) -> &[MessageRange] {
        match self {
            Self::Kept(shown) => &shown.covers,
            Self::New(made) => &made.covers,
        }
    }
}

impl<'a, S: Source, D: Database> Planner<'a, S, D> {
    /// The summaries before the working set, oldest first.
    pub(crate) fn texts(&mut self, budgets: &Budgets, layout: &Layout) -> Result<Vec<Text<'a>>, Error> {
        let rows = self.current.rows;
        let (mut kept, covered) = self.kept(layout);
        let mut texts: Vec<Text<'a>> = Vec::new();
        let open = rows.ranges(0..rows.len(), |at| !layout.kept[at] && !covered[at]);
        if !open.is_empty() {
            let room = self.room(&open).clamp(LEAST, (budgets.prefix / 3).max(LEAST));
            let (gist, ready) = self.read(&open)?;
            texts.push(Text::New(self.segment(open, gist, ready, room, &[])?));
        }
        // Not counting the user's words, which stay as long as they fit.
        let lines = |tokens: u32, covers: &[MessageRange]| tokens.saturating_sub(self.said(covers));
        let of_kept = |kept: &[&ShownSummary]| {
            kept.iter().map(|shown| lines(shown.tokens, &shown.covers)).fold(0, u32::saturating_add)
        };
        let of_new = texts.iter().map(|text| lines(text.tokens(), text.covers())).fold(0, u32::saturating_add);
        let all =
            kept.iter().map(|shown| shown.tokens).chain(texts.iter().map(Text::tokens)).fold(0, u32::saturating_add);
        if !kept.is_empty() && (of_kept(&kept).saturating_add(of_new) > budgets.segments || all > budgets.prefix) {
            // Merge the oldest half, or more if a merge would be due again soon.
            let mut half = kept.len().div_ceil(2);
            while half < kept.len() && of_kept(&kept[half..]).saturating_add(of_new) > budgets.segments / 3 {
                half += 1;
            }
            let parts: Vec<MessageRange> = kept[..half].iter().flat_map(|shown| shown.covers.iter().copied()).collect();
            let rest = of_kept(&kept[half..]).saturating_add(of_new);
            let whole = kept[half..].iter().map(|shown| shown.tokens).chain(texts.iter().map(Text::tokens));
            let room = budgets.prefix.saturating_sub(whole.fold(0, u32::saturating_add));
            let covers = self.united(&parts);
            let tokens = (budgets.segments / 2).saturating_sub(rest / 2).saturating_add(self.said(&covers));
            // The user's words are shortened if they alone would fill the prefix.
            let tokens = tokens.min(share(budgets.prefix, 0.7)).min(room);
            // Round to steps, so that the size stays the same from one proposal to the next.
            let tokens = (tokens / STEP * STEP).max(LEAST);
            texts.insert(0, Text::New(self.unite(&kept[..half], covers, tokens)?));
            kept.drain(..half);
        }
        texts.extend(kept.into_iter().map(Text::Kept));
        texts.sort_by_key(|text| (newest(text.covers()), text.covers().first().map(|range| range.first)));
        Ok(texts)
    }

    /// Summaries that stay, and the messages they cover.
    fn kept(&self, layout: &Layout) -> (Vec<&'a ShownSummary>, Vec<bool>) {
        let rows = self.current.rows;
        let spans = |shown: &ShownSummary| -> Vec<Range<usize>> {
            shown.covers.iter().map(|range| rows.span(*range)).collect()
        };
        // A segment is stale if some of its messages were rewound.
        let is_own = |shown: &&ShownSummary| {
            let count: usize = spans(shown).iter().map(Range::len).sum();
            count > 0 && counted(&shown.key) == Some(count)
        };
        let is_other = |shown: &&ShownSummary| !shown.key.starts_with(SEGMENT) && !shown.key.starts_with(WORKING);
        // Own segments first. Another engine's summary stays only where no own segment covers its messages.
        let own = self.current.summaries.iter().copied().filter(is_own);
        let other = self.current.summaries.iter().copied().filter(is_other);
        let mut covered = vec![false; rows.len()];
        let mut kept = Vec::new();
        for shown in own.chain(other) {
            let spans = spans(shown);
            if spans.iter().cloned().flatten().any(|at| !covered[at] && !layout.kept[at]) {
                spans.into_iter().for_each(|span| covered[span].fill(true));
                kept.push(shown);
            }
        }
        kept.sort_by_key(|shown| newest(&shown.covers));
        (kept, covered)
    }

    /// A segment of these messages within `tokens`, including its frame.
    fn segment(
        &self,
        covers: Vec<MessageRange>,
        gist: Gist,
        ready: bool,
        tokens: u32,
        notes: &[Note],
    ) -> Result<NewSegment, Error> {
        let Some(head) = SegmentHeader::of(self.current.rows, &covers) else {
            return Err(Error::failed("a segment of no messages was asked for"));
        };
        let told = promoted(&gist, self.focus);
        let content =
            fit(tokens.saturating_sub(FRAME).max(40), self.source, |bytes| render(&head, &told, notes, bytes));
        let tokens = self.source.count(&content).saturating_add(FRAME);
        Ok(NewSegment { content, covers, gist: Rc::new(gist), tokens, ready })
    }

    /// Merges segments into one. The result is cached, because a view can be proposed many times before it is adopted.
    fn unite(&mut self, parts: &[&ShownSummary], covers: Vec<MessageRange>, tokens: u32) -> Result<NewSegment, Error> {
        let mut ready = true;
        for shown in parts {
            ready &= self.recall(shown)?;
        }
        let notes = self.notes(&covers);
        let keys = parts.iter().map(|shown| shown.key.as_str());
        let texts = keys.chain(notes.iter().map(|note| note.text.as_str())).chain([self.focus]);
        let mark = fnv(texts.flat_map(|text| text.bytes().chain([0])).chain(tokens.to_le_bytes()));
        if let Some((_, made)) = self.cache.merged.as_ref().filter(|(known, _)| *known == mark) {
            return Ok(NewSegment { covers, ready, ..made.clone() });
        }
        let gist = Gist::united(parts.iter().filter_map(|shown| self.cache.gists.get(&shown.key).map(Rc::as_ref)));
        let made = self.segment(covers, gist, ready, tokens, &notes)?;
        self.cache.merged = Some((mark, made.clone()));
        Ok(made)
    }

    /// Loads the gist of a segment into the cache. Returns whether that needed no reading.
    fn recall(&mut self, shown: &ShownSummary) -> Result<bool, Error> {
        if self.cache.gists.contains_key(&shown.key) {
            return Ok(true);
        }
        let kept = self.storage.gist(self.current.rows, &shown.key, &shown.covers).unwrap_or_else(|error| {
            log::debug(format!("{error}; what is folded is read again"));
            None
        });
        let (gist, ready) = match kept {
            Some(gist) => (gist, true),
            None => {
                let (gist, ready) = self.read(&shown.covers)?;
                if let Err(error) = self.storage.keep_gist(self.current.rows, &shown.key, &shown.covers, &gist) {
                    log::debug(format!("{error}; a later instance will read what is folded again"));
                }
                (gist, ready)
            }
        };
        self.cache.gists.insert(shown.key.clone(), Rc::new(gist));
        Ok(ready)
    }

    /// The gist of these messages, and whether all facts were known before.
    fn read(&mut self, covers: &[MessageRange]) -> Result<(Gist, bool), Error> {
        let (facts, ready) = self.facts(covers)?;
        Ok((Gist::of(facts), ready))
    }

    fn facts(&mut self, covers: &[MessageRange]) -> Result<(Vec<Fact>, bool), Error> {
        let rows = self.current.rows;
        if covers.iter().all(|range| self.read_cache.has(range.first)) {
            return Ok((self.read_cache.facts(covers), true));
        }
        let mut facts = self.storage.facts(rows, covers).unwrap_or_else(|error| {
            log::debug(format!("{error}; what is folded is read again"));
            Vec::new()
        });
        // Read missing groups now, newest first, within a byte limit.
        let mut missing = Vec::new();
        let mut left = MOST;
        'reading: for range in covers.iter().rev() {
            let span = rows.span(*range);
            let read = self.storage.is_read(rows, span.clone()).unwrap_or_default();
            let groups: Vec<Range<usize>> = rows.groups(span.clone()).collect();
            for group in groups.into_iter().rev().filter(|group| group.start >= span.start && group.end <= span.end) {
                let first = rows.get(group.start).id;
                if read.binary_search(&first).is_ok() {
                    continue;
                }
                let bytes: usize = rows.slice(group.clone()).iter().map(|row| row.bytes as usize).sum();
                if bytes > left {
                    break 'reading;
                }
                left -= bytes;
                missing.push(group);
            }
        }
        missing.sort_by_key(|group| group.start);
        let ready = missing.is_empty();
        let mut runs: Vec<Range<usize>> = Vec::new();
        for group in missing {
            match runs.last_mut() {
                Some(run) if run.end == group.start => run.end = group.end,
                _ => runs.push(group),
            }
        }
        for run in runs {
            let mut reader = Reader::default();
            let range = MessageRange::new(rows.get(run.start).id, rows.get(run.end - 1).id);
            for message in read(self.source, range)? {
                let Some(at) = rows.position(message.id) else { continue };
                facts.extend(reader.read(&message, rows.get(rows.group(at).start).id, |_| {}));
            }
            facts.extend(reader.close());
        }
        facts.sort_by_key(|fact| (fact.id, fact.n));
        Ok((facts, ready))
    }

    fn notes(&mut self, covers: &[MessageRange]) -> Vec<Note> {
        let (Some(first), Some(last)) = (covers.first(), covers.last()) else { return Vec::new() };
        if !self.config.notes {
            return Vec::new();
        }
        self.storage.notes(self.current.rows, MessageRange::new(first.first, last.last)).unwrap_or_default()
    }

    /// The union of these ranges.
    fn united(&self, parts: &[MessageRange]) -> Vec<MessageRange> {
        let rows = self.current.rows;
        let mut named = vec![false; rows.len()];
        for range in parts {
            named[rows.span(*range)].fill(true);
        }
        rows.ranges(0..rows.len(), |at| named[at])
    }

    /// Tokens for a segment of these messages: a share of them, plus room for the user's words.
    fn room(&self, covers: &[MessageRange]) -> u32 {
        let spans = covers.iter().map(|range| self.current.rows.span(*range));
        let all =
            spans.flat_map(|span| self.current.rows.slice(span)).map(|row| row.tokens).fold(0, u32::saturating_add);
        share(all, policy::DIGEST).saturating_add(self.said(covers)).saturating_add(FRAME + 60)
    }

    /// Tokens of the user's words in these messages.
    fn said(&self, covers: &[MessageRange]) -> u32 {
        let spans = covers.iter().map(|range| self.current.rows.span(*range));
        let rows = spans.flat_map(|span| self.current.rows.slice(span));
        rows.filter(|row| row.speaker == Speaker::User).map(|row| row.tokens + 12).fold(0, u32::saturating_add)
    }
}

/// Ranks facts that match the user's focus as high as failures.
fn promoted<'g>(gist: &'g Gist, focus: &str) -> Cow<'g, Gist> {
    let focus = focus.to_lowercase();
    let words: Vec<&str> = focus.split_whitespace().filter(|word| word.chars().count() > 2).collect();
    if words.is_empty() {
        return Cow::Borrowed(gist);
    }
    let mut gist = gist.clone();
    for (fact, _) in gist.actions.iter_mut().filter(|(fact, _)| fact.kind < Kind::Change) {
        let text = fact.text.to_lowercase();
        if words.iter().any(|word| text.contains(word)) {
            fact.kind = Kind::Failure;
        }
    }
    Cow::Owned(Gist::united([&gist]))
}

fn newest(covers: &[MessageRange]) -> u64 {
    covers.iter().map(|range| range.last).max().unwrap_or_default()
}
