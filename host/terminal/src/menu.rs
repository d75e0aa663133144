//! Rows of names with a few words about each, one of them selected.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::layout::{printable, shortened};

/// In front of each row.
const MARGIN: &str = "  ";

/// A row: one completion, or one of the things to pick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The text that replaces the typed word.
    pub text: String,
    /// What it means, in a few words.
    pub about: String,
}

/// At most `most` rows, the selected one among them.
pub(crate) fn rows(list: &[&Candidate], selected: usize, width: usize, most: usize) -> Vec<Line<'static>> {
    let hidden = (selected + 1).saturating_sub(most);
    let shown = list.iter().enumerate().skip(hidden).take(most);
    let room = width.saturating_sub(MARGIN.len());
    let column = shown.clone().map(|(_, candidate)| printable(&candidate.text).width()).max().unwrap_or(0).min(room);
    shown
        .map(|(at, candidate)| {
            let text = shortened(&printable(&candidate.text), room);
            let space = " ".repeat((column + 2).saturating_sub(text.width()));
            let style = match at == selected {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            let faint = Style::new().add_modifier(Modifier::DIM);
            let mut spans = vec![Span::raw(MARGIN), Span::styled(text, style)];
            let left = room.saturating_sub(column + 2);
            if !candidate.about.is_empty() && left > 1 {
                let about = shortened(&printable(&candidate.about), left);
                spans.extend([Span::raw(space), Span::styled(about, faint)]);
            }
            Line::from(spans)
        })
        .collect()
}
