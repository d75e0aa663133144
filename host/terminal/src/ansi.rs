//! Styled lines as the bytes that a terminal obeys.

use std::fmt::Write as _;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

/// Whether a terminal shows colours and other styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen colours of the user's own palette, bold, italic and underlined.
    Shown,
    /// Text alone.
    Off,
}

/// A line as bytes, without a line feed.
pub fn sequence(line: &Line<'_>, colours: Colours) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let codes = match colours {
            Colours::Shown => codes(line.style.patch(span.style)),
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

#[cfg(test)]
mod tests {
    use ratatui_core::style::Stylize as _;

    use super::*;

    #[test]
    fn each_span_ends_its_own_style() {
        let line = Line::from(vec!["plain ".into(), "bold".bold().red(), " faint".dim()]);
        assert_eq!(sequence(&line, Colours::Shown), "plain \u{1b}[1;31mbold\u{1b}[0m\u{1b}[2m faint\u{1b}[0m");
        assert_eq!(sequence(&line, Colours::Off), "plain bold faint");
    }
}
