//! Questions that the plugin asks by itself, ahead of the next message.

use hermes_plugin::{Error, task};

use crate::config::Config;
use crate::store::{Pair, Store};

/// The most time of one question: the host's limit of a request.
const MOST: u32 = 120_000;
/// Time that remains for the end of the call.
const RESERVE: u32 = 2_000;
/// Time below which a further question is not worth asking.
const LEAST: u32 = 5_000;
/// Characters of an answer that needs no second question.
const ENOUGH: usize = 300;
/// Empty answers widen the interval at most to this many times its length.
const WIDEST: u32 = 8;

/// When to ask. An empty answer lets more turns pass until the next question.
#[derive(Debug, Default)]
pub(crate) struct Cadence {
    asked: Option<u32>,
    misses: u32,
}

impl Cadence {
    pub(crate) fn is_due(&self, turn: u32, every: u32) -> bool {
        let interval = every.saturating_add(self.misses).min(every.saturating_mul(WIDEST));
        // A number below the last one repeats after a rewind.
        self.asked.is_none_or(|asked| turn < asked || turn - asked >= interval)
    }

    pub(crate) fn asked(&mut self, turn: u32, is_answered: bool) {
        self.asked = Some(turn);
        self.misses = if is_answered { 0 } else { self.misses.saturating_add(1) };
    }
}

/// Asks about a person, with the message that they wrote last. Each question after the first is about the answer before.
pub(crate) fn ask(
    store: &mut dyn Store,
    config: &Config,
    pair: &Pair,
    session: &str,
    message: &str,
) -> Result<Option<String>, Error> {
    let mut answer: Option<String> = None;
    for pass in 0..config.dialectic_depth {
        let left = task::time_left().saturating_sub(RESERVE).min(MOST);
        if pass > 0 && left < LEAST {
            break;
        }
        let question = question(pass, &pair.observed, message, answer.as_deref().unwrap_or_default());
        let question = limited(&question, config.dialectic_max_input_chars);
        match store.ask(pair, session, &question, config.level(pass, message), left.max(1)) {
            Ok(Some(better)) => answer = Some(better),
            Ok(None) => {}
            // The answer to an earlier question is worth more than an error.
            Err(_) if answer.is_some() => break,
            Err(error) => return Err(error),
        }
        match &answer {
            Some(answer) if answer.chars().count() <= ENOUGH => {}
            _ => break,
        }
    }
    Ok(answer.map(|answer| limited(answer.trim(), config.dialectic_max_chars)))
}

fn question(pass: u32, person: &str, message: &str, answer: &str) -> String {
    match pass {
        0 if message.is_empty() => format!(
            "{person} begins a conversation. What is known about {person} that helps to answer whatever comes: preferences, \
             circumstances, people, plans, recent decisions, and what was asked of the assistant? Facts only, the most useful first."
        ),
        0 => format!(
            "{person} has just written the message below. What is known about {person} that helps to answer what comes next: \
             preferences, circumstances, people, decisions, and what was asked of the assistant? Facts only, the most useful \
             first.\n\n{message}"
        ),
        1 => format!(
            "This was said about {person}:\n\n{answer}\n\nWhat is missing or uncertain in it, for the message below? Look for it, and \
             write all of it anew with what you found.\n\n{message}"
        ),
        _ => format!(
            "This was said about {person}:\n\n{answer}\n\nCheck it for contradictions and for what is out of date. Write what \
             remains, with the newest value of each fact."
        ),
    }
}

/// At most so many characters, whole words where possible.
pub(crate) fn limited(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let near = text.floor_char_boundary(end - end / 10);
    let end = text[near..end].rfind(char::is_whitespace).map_or(end, |at| near + at);
    text[..end].trim_end().to_owned()
}
