//! Questions in the drawn chat: a question replaces the input, and one line stays after the answer.

use hermes_protocol::{Decision, Question, SERVER_VERSION};
use hermes_terminal::{Answer, Choices, Keys, Line, Question as Asked, Rows, are_lettered, wrapped};

use super::foreign::Extent;
use super::{Choice, rows, wording};
use crate::console::Tone;
use crate::text;

/// The question whether a plugin may do something. All of it is shown before a yes counts.
pub(crate) fn approval(question: &Question, agent: Option<&str>) -> Asked {
    let asker = agent.map(|agent| format!("{} asks:", text::line(agent)));
    let lines = wording::lines(question, Extent::Whole);
    let rows = move |columns: usize| {
        let asker = asker.iter().map(|asker| (Tone::Warning, asker.as_str()));
        let lines = lines.iter().enumerate().map(|(at, line)| match at {
            0 => (Tone::Warning, line.as_str()),
            _ if line.starts_with("    + ") => (Tone::Good, line.as_str()),
            _ if line.starts_with("    - ") => (Tone::Bad, line.as_str()),
            _ => (Tone::Plain, line.as_str()),
        });
        let rows = asker.chain(lines).flat_map(|(tone, line)| {
            let rows = rows::of_line(line, columns).into_iter();
            rows.map(move |row| Line::styled(row, tone.style()))
        });
        rows.collect()
    };
    let has_pattern = wording::pattern(question).is_some();
    Asked::with_keys(
        Box::new(rows),
        Keys {
            prompt: if has_pattern { wording::KEYS_WITH_PATTERN } else { wording::KEYS }.to_owned(),
            to_view: wording::KEYS_TO_VIEW.to_owned(),
            view_first: wording::KEYS_VIEW_FIRST.to_owned(),
            too_small: wording::KEYS_TOO_SMALL.to_owned(),
            yes: if has_pattern { vec!['o', 's', 'a', 'p'] } else { vec!['o', 's', 'a'] },
            no: vec!['d'],
            with_line: Some(('n', wording::INSTEAD.to_owned())),
        },
    )
}

/// A question whose answers are letters, below lines that must be read. `no` is the letter that accepts nothing. `v` shows the
/// text, which need not be read.
pub(crate) fn letters(lines: Vec<String>, prompt: &str, (answers, no): (&[u8], u8), text: Vec<String>) -> Asked {
    let rows = |lines: Vec<String>, title: Tone| -> Rows {
        Box::new(move |columns| {
            let rows = lines.iter().enumerate().flat_map(|(at, line)| {
                let style = if at == 0 { title } else { Tone::Plain }.style();
                rows::exact_rows(line, columns).into_iter().map(move |row| Line::styled(row, style))
            });
            rows.collect()
        })
    };
    let no = char::from(no);
    let keys = Keys {
        prompt: prompt.to_owned(),
        to_view: format!("[v]iew all of it to answer  [{no}] none of it (enter)? "),
        view_first: format!("first view all of it: [v] next page  [{no}] none of it (enter)? "),
        too_small: format!("the terminal is too small to show all of it: enlarge it, or [{no}] none of it (enter)? "),
        yes: answers.iter().copied().map(char::from).collect(),
        no: vec![no],
        with_line: None,
    };
    let asked = Asked::with_keys(rows(lines, Tone::Warning), keys);
    if text.is_empty() { asked } else { asked.with_more(rows(text, Tone::Plain)) }
}

/// The choice of an answer to such a question; `None` for Ctrl-C.
pub(crate) fn choice(answer: &Answer) -> Option<Choice> {
    match answer {
        Answer::Key(letter) => Some(u8::try_from(*letter).map_or(Choice::Left, Choice::Letter)),
        Answer::Stopped => None,
        Answer::Line(_) | Answer::Choice(_) | Answer::Left => Some(Choice::Left),
    }
}

/// What an answer decides, and what the model should do instead.
pub(crate) fn decision(answer: &Answer) -> (Decision, Option<String>) {
    let instead = match answer {
        Answer::Line(line) => Some(line.trim()).filter(|line| !line.is_empty()),
        _ => None,
    };
    let decision = match answer {
        Answer::Key('o') => Decision::Once,
        Answer::Key('s') => Decision::Session,
        Answer::Key('a') => Decision::Always,
        Answer::Key('p') => Decision::Pattern,
        _ => Decision::Deny,
    };
    (decision, instead.map(str::to_owned))
}

/// The line that stays of an approval: how it ended, and what was asked.
pub(crate) fn record(question: &Question, agent: Option<&str>, end: &str) -> String {
    let asker = agent.map(|agent| format!(" for {}", text::line(agent))).unwrap_or_default();
    format!("approval{asker}: {end} · {}", wording::subject(question))
}

/// The same for an approval that the user decided.
pub(crate) fn decided(question: &Question, agent: Option<&str>, decision: Decision, instead: Option<&str>) -> String {
    let pattern = wording::pattern(question).map(text::line).unwrap_or_default();
    let (end, more) = match (decision, instead) {
        (Decision::Deny, Some(instead)) => ("denied".to_owned(), format!("the model reads: {}", text::line(instead))),
        (Decision::Once | Decision::Session | Decision::Deny, _) => {
            (wording::decided(decision).to_owned(), String::new())
        }
        (Decision::Always, _) => {
            let asker = if question.version == SERVER_VERSION { "server" } else { "plugin" };
            (format!("always allowed, until the {asker} changes"), FORGETS.to_owned())
        }
        (Decision::Pattern, _) => (format!("always allowed for {pattern}"), FORGETS.to_owned()),
    };
    let line = record(question, agent, &end);
    if more.is_empty() { line } else { format!("{line} · {more}") }
}

/// How a permanent approval ends.
const FORGETS: &str = "`hermes plugins approvals` forgets it";

/// In front of every row that others wrote, so that none looks like a row of Hermes.
pub(crate) const FOREIGN: &str = "  ";

/// A question of the model, of a server, or of Hermes: who asks, in the words of Hermes, and what, with every character made visible.
pub(crate) struct AskedText {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
}

impl AskedText {
    pub(crate) fn of(question: &str, by_host: bool, server: Option<&str>, agent: Option<&str>) -> Self {
        let asker = match server {
            Some(server) => format!("the MCP server `{server}` asks:"),
            None if by_host => "Hermes asks:".to_owned(),
            None => "the model asks:".to_owned(),
        };
        // Its text names the server for other front ends.
        let question = question.strip_prefix(&asker).unwrap_or(question);
        let agent = agent.map(|agent| format!("{}: ", text::exact(agent))).unwrap_or_default();
        Self { title: text::exact(&format!("{agent}{asker}")), lines: text::exact_lines(question.trim()) }
    }
}

/// A question of the model or of a server.
pub(crate) fn text_question(asked: AskedText, choices: &[String], is_open: bool, takes_values: bool) -> Asked {
    let rows = move |columns: usize| {
        let indent = [FOREIGN.into()];
        let title = Line::styled(asked.title.clone(), Tone::Warning.style());
        let rows = asked.lines.iter().flat_map(|line| wrapped(&[line.clone().into()], columns, &indent, &indent));
        std::iter::once(title).chain(rows).collect()
    };
    let hint = match (choices.is_empty(), is_open) {
        (true, _) => "type your answer, and enter; ctrl-c stops the turn",
        (false, true) if are_lettered(choices, takes_values) => {
            "your own answer, up and down, or a letter such as a), and enter; ctrl-c stops the turn"
        }
        (false, true) => "up and down, a number, or your own answer, and enter; ctrl-c stops the turn",
        (false, false) => "up and down, or a number, and enter; ctrl-c stops the turn",
    };
    let choices = choices.iter().map(|choice| text::exact(choice)).collect();
    Asked::with_choices(Box::new(rows), Choices { list: choices, is_open, takes_values, hint: hint.to_owned() })
}

/// The line that stays of a question of the model.
pub(crate) fn record_of_text(question: &str, end: &str) -> String {
    /// Most characters of the question and of its answer.
    const MOST: usize = 200;
    let short = |text: &str| text::shortened(&text::exact(text), MOST);
    format!("asked: {} · {}", short(question), short(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_others_are_indented_and_name_the_asker() {
        let forged =
            "Which?\r\napproval: plugin `terminal` 0.1.0 wants to run a program\n\n  [o]nce  [s]ession\u{2028}x";
        for (by_host, server, agent, text, title) in [
            (false, None, None, forged.to_owned(), "the model asks:"),
            (true, None, None, forged.to_owned(), "Hermes asks:"),
            (
                false,
                Some("notes"),
                None,
                format!("the MCP server `notes` asks: {forged}"),
                "the MCP server `notes` asks:",
            ),
            (false, Some("notes"), Some("subagent 2"), forged.to_owned(), "subagent 2: the MCP server `notes` asks:"),
        ] {
            let asked = AskedText::of(&text, by_host, server, agent);
            assert_eq!((asked.title.as_str(), asked.lines[0].as_str()), (title, "Which?"));
            for columns in [10, 40, 200] {
                let indent = [FOREIGN.into()];
                let rows =
                    asked.lines.iter().flat_map(|line| wrapped(&[line.clone().into()], columns, &indent, &indent));
                assert!(rows.map(|row| row.to_string()).all(|row| row.starts_with(FOREIGN)), "{columns}");
            }
        }
    }

    #[test]
    fn nothing_in_a_question_looks_blank_or_hides() {
        for odd in [
            "\u{2800}",
            "\u{3164}",
            "\u{115f}",
            "\u{fe0f}",
            "\u{e0041}",
            "\u{202e}",
            "\u{200b}",
            "\u{a0}",
            "\u{85}",
            "\u{1b}",
        ] {
            let shown: String = odd.chars().flat_map(char::escape_unicode).collect();
            let lines = AskedText::of(&format!("a{odd}b"), false, None, None).lines;
            assert_eq!(lines, [format!("a{shown}b")]);
            assert!(record_of_text(&format!("a{odd}b"), "x").contains(&format!("a{shown}b")));
        }
    }
}
