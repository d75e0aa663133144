//! Tables: columns as wide as their cells, or narrower ones whose cells have several lines.

use pulldown_cmark::Alignment;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::layout::wrapped;

/// Between two columns.
const GAP: usize = 2;
/// A column is not made narrower than this.
const NARROWEST: usize = 6;

type Cell = Vec<Span<'static>>;

/// The lines of a table. The first row is the head.
pub(super) fn lines(alignments: &[Alignment], rows: &[Vec<Cell>], width: usize) -> Vec<Line<'static>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(cell_width).max().unwrap_or(0).max(1))
        .collect();
    let gaps = GAP * columns.saturating_sub(1);
    if gaps + columns * NARROWEST.min(width) > width && gaps + widths.iter().sum::<usize>() > width {
        return as_records(rows, width);
    }
    // The widest column gives, as long as all together are too wide.
    while gaps + widths.iter().sum::<usize>() > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > 1 => *widest -= 1,
            _ => break,
        }
    }
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        lines.extend(row_lines(row, &widths, alignments, at == 0));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            let dim = Style::new().add_modifier(Modifier::DIM);
            lines.push(Line::from(Span::styled(rule.join(&" ".repeat(GAP)), dim)));
        }
    }
    lines
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(Span::width).sum()
}

fn bold(cell: &[Span<'static>]) -> Cell {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    cell.iter().map(|span| Span::styled(span.content.clone(), bold.patch(span.style))).collect()
}

fn row_lines(row: &[Cell], widths: &[usize], alignments: &[Alignment], is_head: bool) -> Vec<Line<'static>> {
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| {
            let cell = row.get(column).cloned().unwrap_or_default();
            wrapped(&if is_head { bold(&cell) } else { cell }, *width, &[], &[])
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|at| {
            let mut spans: Vec<Span<'static>> = Vec::new();
            // Spaces are written only in front of text, so that no line ends with them.
            let mut pending = 0;
            for (column, width) in widths.iter().enumerate() {
                let line = cells.get(column).and_then(|lines| lines.get(at)).cloned().unwrap_or_default();
                let free = width.saturating_sub(line.width());
                let left = match alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                if line.width() > 0 {
                    if pending + left > 0 {
                        spans.push(" ".repeat(pending + left).into());
                    }
                    spans.extend(line.spans);
                    pending = free - left + GAP;
                } else {
                    pending += width + GAP;
                }
            }
            Line::from(spans)
        })
        .collect()
}

/// A table with too many columns for the terminal: each row as lines of a name and a value.
fn as_records(rows: &[Vec<Cell>], width: usize) -> Vec<Line<'static>> {
    let Some((head, rows)) = rows.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            lines.push(Line::default());
        }
        for (column, cell) in row.iter().enumerate() {
            let mut spans = head.get(column).map(|name| bold(name)).unwrap_or_default();
            spans.push(": ".into());
            spans.extend(cell.iter().cloned());
            lines.extend(wrapped(&spans, width, &[], &["  ".into()]));
        }
    }
    lines
}
