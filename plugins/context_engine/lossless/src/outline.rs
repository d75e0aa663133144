//! The `outline` tool: lists the conversation in stretches, so that the model can choose what to expand.

use std::ops::Range;

use hermes_guest_engine::parts;
use hermes_plugin::{Error, Header, MessageRange, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clip::{line, time};
use crate::expand::{TOKENS, one};
use crate::source::Source;

/// Stretches per page, and characters of the user's words in each.
const STRETCHES: usize = 15;
const SAID: usize = 140;
/// Most stretches of a conversation.
const MOST: usize = 300;

pub(crate) const DESCRIPTION: &str = "List this conversation from its beginning in stretches, folded or not: numbers, times, tokens, what the user asked.";

pub(crate) fn parameters() -> Value {
    json!({ "type": "object", "properties": { "page": { "type": "integer", "minimum": 1 } } })
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    #[serde(default)]
    page: Option<u64>,
}

/// `folded` is the newest folded message.
pub(crate) fn run(arguments: &Arguments, folded: u64, source: &impl Source) -> Result<String, Error> {
    let Some(whole) = source.whole()? else { return Ok("Nothing was said yet.".to_owned()) };
    let headers = source.headers(whole)?;
    let stretches = stretches(&headers);
    let page = usize::try_from(arguments.page.unwrap_or(1).max(1)).unwrap_or(usize::MAX);
    let pages = stretches.len().div_ceil(STRETCHES).max(1);
    if page > pages {
        return Err(Error::invalid(format!("there are {pages} pages")));
    }
    // The host shortens long results: shorten the user's words before stretches get lost.
    let mut said = SAID;
    loop {
        let text = list(&headers, whole, &stretches, (page, pages), folded, said, source);
        if source.count(&text) <= TOKENS || said == 0 {
            return Ok(text);
        }
        said /= 2;
    }
}

fn list(
    headers: &[Header],
    whole: MessageRange,
    stretches: &[Range<usize>],
    (page, pages): (usize, usize),
    folded: u64,
    said: usize,
    source: &impl Source,
) -> String {
    let tokens: u64 = headers.iter().map(|header| u64::from(header.tokens)).sum();
    let mut text = format!(
        "{} messages, {tokens} tokens, #{}-#{}; page {page} of {pages}",
        headers.len(),
        whole.first,
        whole.last
    );
    for stretch in stretches.iter().skip((page - 1) * STRETCHES).take(STRETCHES).cloned() {
        let part = &headers[stretch];
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let tokens: u64 = part.iter().map(|header| u64::from(header.tokens)).sum();
        let state = if last.id <= folded { ", folded" } else { "" };
        text.push_str(&format!(
            "\n#{}-#{} {} to {} UTC, {} messages, {tokens} tokens{state}",
            first.id,
            last.id,
            time(first.created_at),
            time(last.created_at),
            part.len()
        ));
        if let Some(user) = part.iter().find(|header| header.role == Role::User)
            && let Ok(message) = one(source, user.id)
        {
            text.push_str(&format!(
                ": #{} user: {}",
                user.id,
                line(&parts::with_summary(&message.content, &message, " "), said)
            ));
        }
    }
    text
}

/// One stretch per turn, or several turns per stretch in a long conversation.
fn stretches(headers: &[Header]) -> Vec<Range<usize>> {
    let turns = headers.chunk_by(|a, b| a.turn == b.turn);
    let count = turns.clone().count();
    let together = count.div_ceil(MOST).max(1);
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for (n, turn) in turns.enumerate() {
        let end = at + turn.len();
        match stretches.last_mut() {
            Some(last) if n % together != 0 => last.end = end,
            _ => stretches.push(at..end),
        }
        at = end;
    }
    stretches
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Log, assistant, user};

    fn log(turns: u64) -> Log {
        Log::new((0..turns).flat_map(|n| [user(n * 2 + 1, &format!("wish {n}")), assistant(n * 2 + 2, "ok")]).collect())
    }

    #[test]
    fn turns_are_listed_with_the_users_question() {
        let answer = run(&Arguments { page: None }, 2, &log(2)).unwrap();
        let lines: Vec<&str> = answer.lines().collect();
        assert!(lines[0].starts_with("4 messages") && lines[0].ends_with("#1-#4; page 1 of 1"), "{answer}");
        assert!(lines[1].starts_with("#1-#2 2025-12-08") && lines[1].ends_with("folded: #1 user: wish 0"), "{answer}");
        assert!(lines[2].contains("tokens: #3 user: wish 1"), "{answer}");
    }

    #[test]
    fn a_long_conversation_is_listed_in_pages() {
        let log = log(2_000);
        let last = run(&Arguments { page: Some(20) }, 0, &log).unwrap();
        assert!(last.contains("page 20 of 20") && last.contains("-#4000 "), "{last}");
        assert!(run(&Arguments { page: Some(21) }, 0, &log).is_err());
        let wishes = (1..=40).map(|id| user(id, &"渡轮".repeat(200))).collect();
        let dense = Log::new(wishes);
        let dense = (dense.count(&run(&Arguments { page: None }, 0, &dense).unwrap()), TOKENS);
        assert!(dense.0 <= dense.1, "{dense:?}");
        let nothing = run(&Arguments { page: None }, 0, &Log::new(Vec::new())).unwrap();
        assert_eq!(nothing, "Nothing was said yet.");
    }
}
