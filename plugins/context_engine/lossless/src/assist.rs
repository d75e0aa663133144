//! Inserts passages without a tool call when the user's message names them exactly: a message by number, or a quoted
//! phrase. Likely matches are left out, because every inserted passage stays in the context.

use hermes_plugin::context_assist::{Draft, Place, Quote};
use hermes_plugin::history::{Matching, Query};
use hermes_plugin::{Error, Message, MessageId, MessageRange};

use crate::clip::floor;
use crate::current_view::Rows;
use crate::expand::one;
use crate::source::Source;

/// Most passages per message, and bytes of each.
const PASSAGES: usize = 3;
const PASSAGE: usize = 2_000;
/// Lower bound for the bytes of a token.
const BYTES: usize = 2;
/// Characters of a quoted phrase that is worth a search.
const PHRASE: std::ops::RangeInclusive<usize> = 12..=200;
/// Only this many bytes of a long message are examined.
const SEARCHED: usize = 16_000;

/// Quotes of folded messages that the draft names, within `budget` tokens.
pub(crate) fn quotes(
    draft: &Draft,
    budget: u32,
    rows: &Rows,
    folded: MessageId,
    source: &impl Source,
) -> Result<Vec<Quote>, Error> {
    // Tool results mention many things, but rarely what comes next.
    let Draft::User(text) = draft else { return Ok(Vec::new()) };
    if folded == 0 || rows.len() == 0 {
        return Ok(Vec::new());
    }
    let text = &text[..floor(text, SEARCHED)];
    let mut left = (budget as usize).saturating_mul(BYTES);
    let mut quotes: Vec<Quote> = Vec::new();
    let mut put = |quote: Quote, left: &mut usize| {
        let length = (quote.length as usize).min(*left).min(PASSAGE);
        if length >= 40.min(quote.length as usize)
            && !quotes.iter().any(|known| known.id == quote.id)
            && quotes.len() < PASSAGES
        {
            *left -= length;
            quotes.push(Quote { length: u32::try_from(length).unwrap_or(u32::MAX), ..quote });
        }
    };
    let is_folded = |id: MessageId| id <= folded && rows.position(id).is_some();
    for id in numbers(text).filter(|id| is_folded(*id)).take(PASSAGES) {
        if let Some(quote) = beginning(&one(source, id)?) {
            put(quote, &mut left);
        }
    }
    for phrase in phrases(text).into_iter().take(PASSAGES) {
        let first = rows.get(0).id;
        let asked = Query {
            matching: Matching::Phrase,
            within: Some(MessageRange::new(first, folded)),
            limit: 3,
            ..Query::new(phrase)
        };
        let hits = source.search(&asked)?;
        // A phrase found in many messages identifies none of them.
        if hits.is_empty() || hits.len() > 2 {
            continue;
        }
        if let Some(hit) = hits.iter().find(|hit| is_folded(hit.id))
            && let Some(quote) = around(&one(source, hit.id)?, phrase)
        {
            put(quote, &mut left);
        }
    }
    Ok(quotes)
}

/// Message numbers such as `#12`.
fn numbers(text: &str) -> impl Iterator<Item = MessageId> + '_ {
    text.split('#').skip(1).filter_map(|rest| {
        let end = rest.bytes().position(|sign| !sign.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

/// Text in backticks or double quotes on one line, within the length limits.
fn phrases(text: &str) -> Vec<&str> {
    let mut phrases = Vec::new();
    for mark in ['`', '"'] {
        for line in text.lines() {
            let parts: Vec<&str> = line.split(mark).collect();
            // Every second part lies between two quotation marks.
            let quoted = parts.iter().enumerate().filter(|(at, _)| at % 2 == 1 && at + 1 < parts.len());
            phrases.extend(quoted.map(|(_, part)| part.trim()).filter(|part| PHRASE.contains(&part.chars().count())));
        }
    }
    phrases
}

fn quote(id: MessageId, place: Place, start: usize, length: usize) -> Option<Quote> {
    Some(Quote { id, place, start: u32::try_from(start).ok()?, length: u32::try_from(length).ok()? })
}

fn beginning(message: &Message) -> Option<Quote> {
    if !message.content.trim().is_empty() {
        return quote(message.id, Place::Text, 0, message.content.len());
    }
    let call = message.tool_calls.first()?;
    quote(message.id, Place::Arguments(call.id.clone()), 0, call.arguments.len())
}

fn around(message: &Message, phrase: &str) -> Option<Quote> {
    let arguments = message.tool_calls.iter().map(|call| (Place::Arguments(call.id.clone()), call.arguments.as_str()));
    std::iter::once((Place::Text, message.content.as_str())).chain(arguments).find_map(|(place, text)| {
        let at = text.find(phrase)?;
        let from = floor(text, at.saturating_sub(PASSAGE / 4));
        let from = text[from..at].find('\n').map_or(from, |line| from + line + 1);
        let to = floor(text, at + phrase.len() + PASSAGE / 2);
        quote(message.id, place, from, to - from)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_plugin::ToolCall;
    use hermes_plugin::context_assist::ToolResult;

    use super::*;
    use crate::testing::{Log, assistant, calls, result, user};

    fn quoted(text: &str, budget: u32, folded: u64) -> Vec<(u64, Place, String)> {
        let log = Log::new(vec![
            user(1, "The tide table lies in harbour/tide.md."),
            calls(4, &[("a", "write", r#"{"path":"harbour/tide.md","content":"x"}"#)]),
            result(
                5,
                "a",
                "write",
                &format!("{}the ferry leaves at 17:40\n{}", "line\n".repeat(900), "line\n".repeat(900)),
            ),
            assistant(9, "Done."),
        ]);
        let mut rows = Rows::default();
        rows.observe(&log.headers());
        let quotes = quotes(&Draft::User(text.to_owned()), budget, &rows, folded, &log).unwrap();
        let text = |quote: &Quote| {
            let message = log.messages.iter().find(|message| message.id == quote.id).unwrap();
            let text = match &quote.place {
                Place::Text => &message.content,
                Place::Arguments(_) => &message.tool_calls[0].arguments,
            };
            text[quote.start as usize..][..quote.length as usize].to_owned()
        };
        quotes.iter().map(|quote| (quote.id, quote.place.clone(), text(quote))).collect()
    }

    #[test]
    fn a_passage_named_exactly_is_quoted() {
        assert_eq!(quoted("see #1", 500, 5), [(1, Place::Text, "The tide table lies in harbour/tide.md.".to_owned())]);
        let found = quoted("why `ferry leaves at 17:40`?", 500, 5);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 5 && found[0].2.contains("the ferry leaves at 17:40\n") && found[0].2.len() <= 1_000);
        let found = quoted("#4", 500, 5);
        assert_eq!((found[0].0, &found[0].1), (4, &Place::Arguments("a".to_owned())));
    }

    #[test]
    fn anything_else_gives_no_quote() {
        for (text, budget, folded) in [
            ("where is the ferry table?", 500, 5),
            ("see #1", 500, 0),
            ("see #9", 500, 5),
            ("see #77777777777777777777777", 500, 5),
            ("see #1", 0, 5),
            ("`short` and \"an open quote that never ends", 500, 5),
        ] {
            assert!(quoted(text, budget, folded).is_empty(), "{text}");
        }
        let call = ToolCall { id: "x".into(), name: "read".into(), arguments: "{}".into() };
        let tool = Draft::Tool(ToolResult { call, content: "#1 `ferry leaves at 17:40`".into() });
        let log = Log::new(vec![user(1, "x")]);
        let mut rows = Rows::default();
        rows.observe(&log.headers());
        assert!(quotes(&tool, 500, &rows, 1, &log).unwrap().is_empty());
    }
}
