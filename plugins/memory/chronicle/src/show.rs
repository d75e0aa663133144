//! How what was found is shown: each passage is a message with the ones beside it, cut so that all fit.

use std::collections::HashSet;

use hermes_guest_backend::cut;
use hermes_plugin::memory_provider::Recollection;
use hermes_ranking::Question;

use crate::facts::Fact;
use crate::search::{Message, Messages, beside};
use crate::when;

/// Bytes of all passages together, for each of them: ten take 4 KB.
const PASSAGE: usize = 400;
/// Bytes of a message that was found, and of one beside it at least and at most.
const FOUND: usize = 200;
const BESIDE: std::ops::RangeInclusive<usize> = 40..=200;
/// Bytes of a token, roughly.
const TOKEN: usize = 4;

/// A passage: what was found, and what stands around it.
struct Passage<'a> {
    found: i64,
    messages: Vec<&'a Message>,
}

pub(crate) fn recollections(
    question: &Question,
    order: &[i64],
    messages: &Messages,
    facts: &[Fact],
    most: usize,
    budget: u32,
) -> Vec<Recollection> {
    let mut shown = HashSet::new();
    let mut passages: Vec<Passage<'_>> = Vec::new();
    for id in order {
        if passages.len() == most || shown.contains(id) {
            // Shown beside one that is better.
            if passages.len() == most {
                break;
            }
            continue;
        }
        let Some(message) = messages.get(id) else { continue };
        let mut around: Vec<&Message> = beside(messages, *id, false);
        around.reverse();
        around.push(message);
        around.extend(beside(messages, *id, true));
        around.retain(|message| shown.insert(message.id));
        passages.push(Passage { found: *id, messages: around });
    }
    let mut recalled: Vec<Recollection> = facts.iter().map(fact).collect();
    let used: usize = recalled.iter().map(|one| one.text.len()).sum();
    let room = (most * PASSAGE).min((budget as usize).saturating_mul(TOKEN)).saturating_sub(used);
    let own: usize =
        passages.iter().filter_map(|one| messages.get(&one.found)).map(|one| one.text.len().min(FOUND)).sum();
    let others: usize = passages.iter().map(|passage| passage.messages.len() - 1).sum();
    // A date and the names of who speaks are a tenth.
    let each = ((room - room / 10).saturating_sub(own) / others.max(1)).clamp(*BESIDE.start(), *BESIDE.end());
    recalled.extend(passages.iter().map(|passage| {
        let mut text = String::new();
        for message in &passage.messages {
            if text.is_empty() {
                text.push_str(&dated(message.day));
            }
            let said = if message.id == passage.found {
                around_words(question, &message.text, FOUND)
            } else {
                beginning(&message.text, each)
            };
            text.push_str(&format!("\n{}: {said}", speaker(message)));
        }
        Recollection::new(format!("message:{}", passage.found), text)
    }));
    recalled
}

fn fact(fact: &Fact) -> Recollection {
    Recollection::new(format!("fact:{}", fact.id), format!("{} {}", dated(fact.day), fact.text))
}

fn dated(day: i64) -> String {
    when::date(day).map_or_else(String::new, |date| format!("[{date}]"))
}

fn speaker(message: &Message) -> &str {
    match (message.is_reply, message.speaker.as_str()) {
        (true, _) => "assistant",
        (false, "") => "user",
        (false, name) => name,
    }
}

/// One line of at most so many bytes.
fn beginning(text: &str, bytes: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= bytes { line } else { format!("{}…", cut(&line, bytes).trim_end()) }
}

/// The part of a text with most words of the question, in one line of about so many bytes.
fn around_words(question: &Question, text: &str, bytes: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= bytes {
        return line;
    }
    let words: Vec<(usize, f64)> = hermes_ranking::matches(question, &line);
    let value = |from: usize| -> f64 {
        words.iter().filter(|(at, _)| (from..from + bytes).contains(at)).map(|(_, weight)| weight).sum()
    };
    let starts = std::iter::once(0).chain(words.iter().map(|(at, _)| at.saturating_sub(bytes / 4)));
    // The first of equal ones.
    let best = starts.fold((0, f64::MIN), |best, from| if value(from) > best.1 { (from, value(from)) } else { best }).0;
    let from = line.floor_char_boundary(best);
    // A whole word at the beginning.
    let from = if from == 0 { 0 } else { line[from..].find(' ').map_or(from, |at| from + at + 1) };
    let dots = if from == 0 { "" } else { "…" };
    format!("{dots}{}", beginning(&line[from..], bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_around_the_words() {
        let mut question = Question::parse("Where is the ferry?");
        question.weigh(&[1], 100);
        let text =
            format!("{} The ferry leaves at pier four. {}", "Nothing here. ".repeat(50), "Nor here. ".repeat(50));
        let shown = around_words(&question, &text, 80);
        assert!(shown.contains("ferry leaves at pier four") && shown.len() < 90, "{shown}");
        assert_eq!(around_words(&question, "short\n text", 80), "short text");
        let shown = around_words(&question, &"文".repeat(100), 20);
        assert!(shown.starts_with('文') && shown.ends_with('…'), "{shown}");
    }
}
