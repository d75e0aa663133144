//! Work ahead: the facts of messages are read and kept, so that a later instance or a merged segment finds them.

use hermes_plugin::{Error, MessageRange, Progress};

use crate::desk::read;
use crate::fact::{Fact, Reader};
use crate::ground::Rows;
use crate::shelf::Shelf;
use crate::source::{Database, Source};

/// Messages that one step looks at, and bytes that it reads.
const LOOK: usize = 1_500;
const MOST: usize = 1 << 20;

/// How far the reading is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bookmark {
    /// Everything before this message is read.
    pub(crate) next: u64,
}

/// One step; the newest group is left alone, since more may belong to it.
pub(crate) fn step<D: Database>(
    bookmark: &mut Bookmark,
    rows: &Rows,
    shelf: &mut Shelf<D>,
    source: &impl Source,
) -> Result<Progress, Error> {
    let Some(last) = rows.len().checked_sub(1) else { return Ok(Progress::Done) };
    let closed = rows.group(last).start;
    let start = rows.span(MessageRange::new(bookmark.next, u64::MAX)).start;
    if start >= closed {
        return Ok(Progress::Done);
    }
    let mut end = rows.group((start + LOOK).min(closed) - 1).end;
    let known = shelf.is_read(rows, start..end)?;
    let mut groups = Vec::new();
    let mut bytes = 0;
    for group in rows.groups(start..end) {
        if known.binary_search(&rows.get(group.start).id).is_ok() {
            continue;
        }
        bytes += rows.slice(group.clone()).iter().map(|row| row.bytes as usize).sum::<usize>();
        if bytes > MOST && !groups.is_empty() {
            end = group.start;
            break;
        }
        groups.push(group);
    }
    let mut kept: Vec<(std::ops::Range<usize>, Vec<Fact>)> = Vec::new();
    for group in groups {
        let range = MessageRange::new(rows.get(group.start).id, rows.get(group.end - 1).id);
        let mut reader = Reader::default();
        let mut facts = Vec::new();
        for message in read(source, range)? {
            // Messages of other conversations lie between the numbers.
            if rows.position(message.id).is_some() {
                facts.extend(reader.read(&message, range.first, |_| {}));
            }
        }
        facts.extend(reader.close());
        kept.push((group, facts));
    }
    if !kept.is_empty() {
        shelf.keep(rows, &kept)?;
    }
    bookmark.next = rows.get(end - 1).id + 1;
    Ok(if end < closed { Progress::More } else { Progress::Done })
}
