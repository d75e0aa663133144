//! Markdown as styled lines, also while it streams.

mod blocks;
mod render;
mod stream;
mod table;
#[cfg(test)]
mod tests;

pub use self::stream::Stream;

use ratatui_core::text::Line;

/// A whole text as lines of at most so many columns.
pub fn rendered(text: &str, width: usize) -> Vec<Line<'static>> {
    let mut stream = Stream::default();
    let mut lines = stream.push(text, width);
    lines.extend(stream.finish(width));
    lines
}
