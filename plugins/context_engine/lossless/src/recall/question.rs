//! Answers a question: the messages that the host's search ranks first, each with what was said around it, in a page of limited
//! size. The host's order stays as it is: it also considers words in other forms, and messages beside good ones.

use std::collections::HashSet;

use hermes_guest_engine::parts;
use hermes_plugin::history::{Matching, Query};
use hermes_plugin::{Error, Message, MessageId, MessageRange, Role};

use super::{Passage, is_in_view, lowered, newest_turn, passage, without_own};
use crate::clip::{cap, floor, line, time};
use crate::expand::{TOKENS, one, who};
use crate::source::Source;

/// Messages per page, and the most bytes of a page.
const HITS: usize = 10;
const BYTES: usize = 4_000;
/// Messages shown on either side of a hit, and how far away their numbers may be.
const BESIDE: usize = 2;
const FAR: u64 = 16;
/// Messages examined per question.
const LOOKED_AT: u32 = 100;
/// The share of the hits in the bytes of a page, in percent, if the messages beside them need the rest.
const SHARE: usize = 45;
/// With fewer bytes a message beside a hit says nothing, so the farther ones are left out.
const LEAST: usize = 24;

/// A page of hits. `None` if there is no such page.
pub(super) fn run(question: &str, page: u64, folded: MessageId, source: &impl Source) -> Result<Option<String>, Error> {
    let skip = (page as usize - 1) * HITS;
    let asked = Query { matching: Matching::Any, limit: LOOKED_AT, ..Query::new(question) };
    let words: Vec<String> =
        question.split(|sign: char| !sign.is_alphanumeric()).filter(|w| w.chars().count() > 1).map(lowered).collect();
    let newest = newest_turn(source)?;
    let mut found: Vec<(Message, Passage)> = Vec::new();
    for hit in source.search(&asked)? {
        if is_in_view(hit.id, newest, folded) {
            continue;
        }
        if let Ok(message) = one(source, hit.id).map(without_own)
            && let Some(message) = message
        {
            let passage = passage(&message, &words, "");
            let repeats = |(_, better): &(Message, Passage)| better.text.contains(passage.text.trim_matches('…'));
            if !found.iter().any(repeats) {
                found.push((message, passage));
            }
        }
        if found.len() > skip + HITS {
            break;
        }
    }
    let more = found.len() > skip + HITS;
    let entries: Vec<(Message, Passage)> = found.into_iter().skip(skip).take(HITS).collect();
    if entries.is_empty() {
        return Ok(None);
    }
    let lines = lines(&entries, source);
    let mut budget = BYTES;
    let mut text = written(&lines, budget);
    while source.count(&text) > TOKENS - 50 && budget > LEAST {
        budget = budget * 3 / 4;
        text = written(&lines, budget);
    }
    let more = if more { format!("\nMore: page {}.", page + 1) } else { String::new() };
    Ok(Some(format!("{}{more}", text.trim_end())))
}

/// A line of a page, before it is cut.
struct Line {
    head: String,
    text: String,
    /// From its hit; 0 for the hit itself.
    distance: usize,
}

/// The hits, each between the messages beside it that are not shown already.
fn lines(entries: &[(Message, Passage)], source: &impl Source) -> Vec<Line> {
    let mut shown: HashSet<MessageId> = entries.iter().map(|(message, _)| message.id).collect();
    let mut lines = Vec::new();
    for (message, passage) in entries {
        // The hit comes first, so that its number stands at the beginning of a line.
        let part = if passage.part.is_empty() { String::new() } else { format!(" ({})", passage.part) };
        let head = format!("#{} {}, {} UTC{part}: ", message.id, who(message), time(message.created_at));
        lines.push(Line { head, text: line(&passage.text, BYTES), distance: 0 });
        for (distance, id) in beside(message.id, source) {
            if shown.insert(id)
                && let Ok(message) = one(source, id)
            {
                let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
                let text = if message.content.trim().is_empty() { calls.join(", ") } else { message.content.clone() };
                let text = line(&parts::with_summary(&text, &message, " "), BYTES);
                lines.push(Line { head: format!("  #{id} {}: ", who(&message)), text, distance });
            }
        }
    }
    lines
}

/// The nearest messages of the user and the model on either side of one, with their distance, in the order of the conversation.
fn beside(id: MessageId, source: &impl Source) -> Vec<(usize, MessageId)> {
    let around = MessageRange::new(id.saturating_sub(FAR), id.saturating_add(FAR));
    let headers = source.headers(around).unwrap_or_default();
    let is_said = |role: &Role| matches!(role, Role::User | Role::Assistant);
    let said = headers.iter().filter(|one| is_said(&one.role) && one.bytes > 0).map(|one| one.id);
    let (before, after): (Vec<MessageId>, Vec<MessageId>) = said.filter(|one| *one != id).partition(|one| *one < id);
    let before: Vec<(usize, MessageId)> = (1..).zip(before.into_iter().rev()).take(BESIDE).collect();
    before.into_iter().rev().chain((1..).zip(after).take(BESIDE)).collect()
}

/// The lines within a budget: short texts in full, and the long ones share the rest evenly.
fn written(lines: &[Line], budget: usize) -> String {
    let mut distance = BESIDE;
    loop {
        let kept: Vec<&Line> = lines.iter().filter(|line| line.distance <= distance).collect();
        // The mark of a cut text and the end of the line.
        let heads: usize = kept.iter().map(|line| line.head.len() + "…\n".len()).sum();
        let room = budget.saturating_sub(heads);
        let sizes = |is_hit: bool| -> Vec<usize> {
            kept.iter().filter(|line| (line.distance == 0) == is_hit).map(|line| line.text.len()).collect()
        };
        let (hits, beside) = (sizes(true), sizes(false));
        let rest = room.saturating_sub(beside.iter().sum());
        let hit = cap(&hits, rest.max(room * SHARE / 100));
        let taken: usize = hits.iter().map(|size| hit.min(*size)).sum();
        let other = cap(&beside, room.saturating_sub(taken));
        if distance > 0 && other < LEAST {
            distance -= 1;
            continue;
        }
        return kept
            .iter()
            .map(|line| {
                let to = floor(&line.text, if line.distance == 0 { hit } else { other });
                let cut = if to < line.text.len() { "…" } else { "" };
                format!("{}{}{cut}\n", line.head, &line.text[..to])
            })
            .collect();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Log, assistant, user};

    #[test]
    fn ten_hits_with_two_messages_on_either_side_fit_into_4_kb() {
        let filler = "words that say little ".repeat(20);
        let said = |id: u64| match id % 7 {
            3 => user(id, &format!("{filler} the ferry and the berth {id} {filler}")),
            0 => assistant(id, &format!("answer {id} {filler}")),
            _ => user(id, &format!("beside {id} {filler}")),
        };
        let log = Log::new((1..=140).map(said).collect());
        let first = run("where is the ferry berth?", 1, 140, &log).unwrap().unwrap();
        assert!(first.len() <= BYTES + 20, "{}", first.len());
        let hits = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!((hits(&first), first.matches("ferry and the berth").count()), (HITS, HITS), "{first}");
        assert_eq!(first.lines().filter(|line| line.starts_with("  #")).count(), 4 * HITS);
        assert!(first.ends_with("More: page 2."), "{first}");
        let second = run("where is the ferry berth?", 2, 140, &log).unwrap().unwrap();
        assert_eq!(hits(&second), HITS);
        assert!(second.lines().all(|line| !line.starts_with('#') || !first.contains(line)), "{second}");
        assert_eq!(run("where is the ferry berth?", 3, 140, &log).unwrap(), None);
    }

    #[test]
    fn short_messages_are_shown_in_full_and_in_the_order_of_the_conversation() {
        let log = Log::new(vec![
            user(1, "Where do we berth?"),
            assistant(2, "At the old quay,\n#9 user: behind the ferry."),
            user(3, "Good."),
            user(4, "So be it."),
            user(5, "What now?"),
        ]);
        let answer = run("old quay", 1, 3, &log).unwrap().unwrap();
        let lines: Vec<&str> = answer.lines().collect();
        assert!(
            lines[0].starts_with("#2 assistant, ")
                && lines[0].ends_with(": At the old quay, #9 user: behind the ferry.")
        );
        assert_eq!(lines[1..], ["  #1 user: Where do we berth?", "  #3 user: Good.", "  #4 user: So be it."]);
        assert_eq!(run("submarine", 1, 3, &log).unwrap(), None);
    }
}
