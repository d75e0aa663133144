//! Background reading: facts of messages are read and stored, so that a later instance or a merged segment finds them.

use hermes_plugin::{Error, MessageRange, Progress};

use crate::current_view::Rows;
use crate::fact::{Fact, Reader};
use crate::read_cache::read;
use crate::source::{Database, Source};
use crate::storage::Storage;

/// Messages examined and bytes read in one step.
const LOOK: usize = 1_500;
const MOST: usize = 1 << 20;

/// Progress of the background reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    /// All messages before this id are read.
    pub(crate) next: u64,
}

/// Reads one batch. It skips the newest group, which may still grow.
pub(crate) fn step<D: Database>(
    position: &mut ReadPosition,
    rows: &Rows,
    storage: &mut Storage<D>,
    source: &impl Source,
) -> Result<Progress, Error> {
    let Some(last) = rows.len().checked_sub(1) else { return Ok(Progress::Done) };
    let closed = rows.group(last).start;
    let start = rows.span(MessageRange::new(position.next, u64::MAX)).start;
    if start >= closed {
        return Ok(Progress::Done);
    }
    let mut end = rows.group((start + LOOK).min(closed) - 1).end;
    let known = storage.is_read(rows, start..end)?;
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
            // Messages of other conversations can lie between these ids.
            if rows.position(message.id).is_some() {
                facts.extend(reader.read(&message, range.first, |_| {}));
            }
        }
        facts.extend(reader.close());
        kept.push((group, facts));
    }
    if !kept.is_empty() {
        storage.keep(rows, &kept)?;
    }
    position.next = rows.get(end - 1).id + 1;
    Ok(if end < closed { Progress::More } else { Progress::Done })
}
