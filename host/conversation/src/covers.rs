//! The messages that summaries cover. An engine may list any ranges: many, overlapping, in any order.

use std::ops::Range;

use crate::{Conversation, MessageRange};

/// Lists of at most so many ranges stay as the engine wrote them.
const FEW: usize = 64;

/// The positions of the covered messages: in order, without overlaps, in as few spans as possible.
pub(crate) fn spans(covers: &[MessageRange], conversation: &Conversation) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = covers.iter().map(|range| conversation.span(*range)).collect();
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// The same messages in as few ranges as possible, if the list is long.
pub(crate) fn merged(covers: &[MessageRange], conversation: &Conversation) -> Vec<MessageRange> {
    if covers.len() <= FEW {
        return covers.to_vec();
    }
    let id = |at: usize| conversation.messages()[at].id;
    let spans = spans(covers, conversation).into_iter();
    spans.map(|span| MessageRange::new(id(span.start), id(span.end - 1))).collect()
}

/// The first of so many positions that no span contains.
pub(crate) fn first_gap(spans: impl Iterator<Item = Range<usize>>, length: usize) -> Option<usize> {
    // For each position, the number of spans that begin there minus those that end there.
    let mut changes = vec![0_i64; length + 1];
    for span in spans.filter(|span| !span.is_empty()) {
        changes[span.start] += 1;
        changes[span.end] -= 1;
    }
    let mut open = 0;
    changes[..length].iter().position(|change| {
        open += change;
        open == 0
    })
}
