//! Styled lines as the bytes that a terminal obeys.

use std::fmt::Write as _;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::layout::printable;

/// Whether a terminal shows colours and other styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen colours of the user's own palette, bold, italic and underlined.
    Shown,
    /// Bold, italic, reversed and underlined, without colours.
    Styles,
    /// Text alone.
    Off,
}

/// A line as bytes, without a line feed.
pub fn sequence(line: &Line<'_>, colours: Colours) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let codes = match colours {
            Colours::Shown => codes(line.style.patch(span.style)),
            Colours::Styles => codes(Style { fg: None, ..line.style.patch(span.style) }),
            Colours::Off => String::new(),
        };
        match codes.is_empty() {
            true => out.push_str(&span.content),
            // Each span ends its own style, so no line depends on the one before.
            false => {
                let _ = write!(out, "\u{1b}[{codes}m{}\u{1b}[0m", span.content);
            }
        }
    }
    out
}

fn codes(style: Style) -> String {
    let mut codes: Vec<u8> = Vec::new();
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if style.add_modifier.contains(modifier) {
            codes.push(code);
        }
    }
    codes.extend(style.fg.and_then(foreground));
    codes.iter().map(u8::to_string).collect::<Vec<_>>().join(";")
}

/// The code of a colour of the palette. Other colours may be unreadable on the user's background, so they are not used.
fn foreground(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::DarkGray => 90,
        _ => return None,
    })
}

/// A line whose styles are in it as sequences of [`sequence`]. Other sequences are left out.
pub fn painted(line: &str) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut style = Style::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        if !before.is_empty() {
            spans.push(Span::styled(printable(before).into_owned(), style));
        }
        let end = after.find(|character: char| !character.is_ascii_digit() && character != ';').unwrap_or(after.len());
        let (codes, after) = after.split_at(end);
        for code in codes.split(';') {
            style = styled(style, code.parse().unwrap_or(0));
        }
        rest = after.strip_prefix('m').unwrap_or(after);
    }
    if !rest.is_empty() {
        spans.push(Span::styled(printable(rest).into_owned(), style));
    }
    spans
}

/// A style after a code of [`codes`].
fn styled(style: Style, code: u8) -> Style {
    let modifier = |modifier| style.add_modifier(modifier);
    match code {
        0 => Style::new(),
        1 => modifier(Modifier::BOLD),
        2 => modifier(Modifier::DIM),
        3 => modifier(Modifier::ITALIC),
        4 => modifier(Modifier::UNDERLINED),
        7 => modifier(Modifier::REVERSED),
        9 => modifier(Modifier::CROSSED_OUT),
        31 => style.fg(Color::Red),
        32 => style.fg(Color::Green),
        33 => style.fg(Color::Yellow),
        34 => style.fg(Color::Blue),
        35 => style.fg(Color::Magenta),
        36 => style.fg(Color::Cyan),
        90 => style.fg(Color::DarkGray),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Stylize as _;

    use super::*;

    #[test]
    fn a_painted_line_is_read_back_and_nothing_else_is_obeyed() {
        let line = Line::from(vec!["plain ".into(), "bold".bold().red(), " faint".dim(), " end".into()]);
        assert_eq!(painted(&sequence(&line, Colours::Shown)), line.spans);
        let hostile = painted("a\u{1b}[2Jb\u{1b}]0;x\u{7}c");
        let shown: String = hostile.iter().map(|span| span.content.as_ref()).collect();
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    }

    #[test]
    fn each_span_ends_its_own_style() {
        let line = Line::from(vec!["plain ".into(), "bold".bold().red(), " faint".dim()]);
        assert_eq!(sequence(&line, Colours::Shown), "plain \u{1b}[1;31mbold\u{1b}[0m\u{1b}[2m faint\u{1b}[0m");
        assert_eq!(sequence(&line, Colours::Off), "plain bold faint");
    }
}
