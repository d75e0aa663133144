//! Colours of source code: the user's own palette, so that they can be read on any background.

use std::sync::LazyLock;

use ratatui_core::style::{Color, Style};
use ratatui_core::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxSet};

use crate::layout::printable;

/// Longer lines have no colours: they are data, and would take long.
const LONGEST_LINE: usize = 2_000;
/// After so many bytes of one block the rest has no colours.
const MOST_BYTES: usize = 200_000;

/// Loaded when the first code is shown.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// The colours of scopes. The first that fits counts.
static COLOURS: LazyLock<Vec<(Scope, Color)>> = LazyLock::new(|| {
    [
        ("comment", Color::DarkGray),
        ("string", Color::Green),
        ("constant", Color::Yellow),
        ("storage.type.function", Color::Magenta),
        ("storage", Color::Magenta),
        ("keyword", Color::Magenta),
        ("entity.name.function", Color::Blue),
        ("support.function", Color::Blue),
        ("variable.function", Color::Blue),
        ("entity.name.tag", Color::Blue),
        ("entity.name", Color::Cyan),
        ("support.type", Color::Cyan),
        ("support.class", Color::Cyan),
        ("entity.other.attribute-name", Color::Yellow),
        ("markup.inserted", Color::Green),
        ("markup.deleted", Color::Red),
        ("meta.diff", Color::Cyan),
    ]
    .into_iter()
    .filter_map(|(name, colour)| Some((Scope::new(name).ok()?, colour)))
    .collect()
});

/// Colours the lines of one block of code, in their order.
pub(crate) struct Highlighter {
    /// `None` for a language that is not known.
    state: Option<(ParseState, ScopeStack)>,
    seen: usize,
}

impl Highlighter {
    /// For a language as the first word behind a fence names it.
    pub(crate) fn new(language: &str) -> Self {
        let token = match language.to_ascii_lowercase().as_str() {
            "shell" | "console" | "zsh" => "sh".to_owned(),
            "jsonc" | "json5" => "json".to_owned(),
            "ts" | "typescript" | "tsx" | "jsx" => "js".to_owned(),
            other => other.to_owned(),
        };
        let syntax = (!token.is_empty()).then(|| SYNTAXES.find_syntax_by_token(&token)).flatten();
        Self { state: syntax.map(|syntax| (ParseState::new(syntax), ScopeStack::new())), seen: 0 }
    }

    /// The next line, without its line feed.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        self.seen += line.len();
        if line.len() > LONGEST_LINE || self.seen > MOST_BYTES {
            self.state = None;
        }
        let plain = |text: &str, style: Style| Span::styled(printable(text).into_owned(), style);
        let Some((state, stack)) = &mut self.state else { return vec![plain(line, Style::new())] };
        let with_end = format!("{line}\n");
        let Ok(operations) = state.parse_line(&with_end, &SYNTAXES) else {
            self.state = None;
            return vec![plain(line, Style::new())];
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut begin = 0;
        let mut add = |end: usize, style: Style| {
            let text = line.get(begin..end.min(line.len())).unwrap_or_default();
            begin = end.min(line.len());
            match spans.last_mut() {
                _ if text.is_empty() => {}
                Some(last) if last.style == style => last.content.to_mut().push_str(&printable(text)),
                _ => spans.push(plain(text, style)),
            }
        };
        for (at, operation) in &operations {
            add(*at, style(stack));
            // Only an operation that fits no stack fails; the colours after it may be wrong.
            if !matches!(operation, ScopeStackOp::Noop) {
                let _ = stack.apply(operation);
            }
        }
        add(line.len(), style(stack));
        spans
    }
}

fn style(stack: &ScopeStack) -> Style {
    let colour =
        stack.as_slice().iter().rev().find_map(|scope| {
            COLOURS.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, colour)| *colour)
        });
    colour.map_or_else(Style::new, |colour| Style::new().fg(colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(language: &str, line: &str) -> Vec<(String, Option<Color>)> {
        let spans = Highlighter::new(language).line(line);
        spans.into_iter().map(|span| (span.content.into_owned(), span.style.fg)).collect()
    }

    #[test]
    fn words_have_the_colour_of_their_meaning() {
        let spans = coloured("rust", "let tea = \"green\"; // hot");
        for (text, colour) in [("let", Color::Magenta), ("\"green\"", Color::Green), ("// hot", Color::DarkGray)] {
            assert!(spans.contains(&(text.to_owned(), Some(colour))), "{text}: {spans:?}");
        }
        assert!(coloured("diff", "+ added").iter().all(|(_, colour)| *colour == Some(Color::Green)));
    }

    #[test]
    fn an_unknown_language_and_a_long_line_are_plain() {
        assert_eq!(coloured("no-such-language", "let tea"), [("let tea".to_owned(), None)]);
        assert_eq!(coloured("", "let tea"), [("let tea".to_owned(), None)]);
        let long = "let x = 1; ".repeat(1_000);
        assert_eq!(coloured("rust", &long), [(long, None)]);
    }

    #[test]
    fn whatever_the_colours_the_text_is_whole() {
        for language in ["rust", "python", "sh", "json", "html"] {
            let line = "fn a(b: &str) { if b == 'x' { \"é漢\" } } <p class=\"x\"> SELECT * # - [1, 2]";
            let text: String = coloured(language, line).into_iter().map(|(text, _)| text).collect();
            assert_eq!(text, line, "{language}");
        }
    }
}
