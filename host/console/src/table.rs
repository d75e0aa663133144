//! Tables on standard output: columns as wide as their widest cell, counted in columns of the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Row};

use crate::console::{Console, Tone};
use crate::text;

/// The side on which a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For texts.
    Left,
    /// For numbers.
    Right,
}

/// Rows of plain text. A cell is coloured only after the widths are known.
pub struct Table {
    layout: comfy_table::Table,
    columns: &'static [Align],
    tones: Vec<Vec<Tone>>,
}

impl Table {
    /// A table with these columns. The columns that follow are aligned on the left.
    pub fn new(columns: &'static [Align]) -> Self {
        let mut layout = comfy_table::Table::new();
        layout.set_content_arrangement(ContentArrangement::Disabled).load_style(comfy_table::presets::NOTHING);
        Self { layout, columns, tones: Vec::new() }
    }

    /// Adds a row. The texts must be single lines.
    pub fn row<const N: usize>(&mut self, cells: [(Tone, String); N]) {
        let (tones, texts): (Vec<Tone>, Vec<String>) = cells.into_iter().unzip();
        let cells = texts.into_iter().enumerate().map(|(at, text)| {
            Cell::new(text).set_alignment(match self.columns.get(at) {
                Some(Align::Right) => CellAlignment::Right,
                _ => CellAlignment::Left,
            })
        });
        self.layout.add_row(Row::from(cells.collect::<Vec<_>>()));
        self.tones.push(tones);
    }

    /// Adds a header row.
    pub fn head<const N: usize>(&mut self, names: [&str; N]) {
        self.row(names.map(|name| (Tone::Faint, name.to_owned())));
    }

    /// The rows of the table, each with its line feeds. On a terminal, a row that is too long continues on indented lines: below
    /// its last cell, if there is room for it.
    pub fn lines(self, console: Console) -> Vec<String> {
        self.lines_within(console, console.columns())
    }

    fn lines_within(mut self, console: Console, columns: Option<usize>) -> Vec<String> {
        for column in self.layout.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let texts: Vec<Vec<String>> =
            self.layout.row_iter().map(|row| row.cell_iter().map(Cell::content).collect()).collect();
        let rows = self.layout.lines().zip(texts).zip(&self.tones);
        rows.map(|((line, texts), tones)| fitted(line.trim_end(), &texts, tones, console, columns)).collect()
    }

    /// The whole table.
    pub fn text(self, console: Console) -> String {
        self.lines(console).concat()
    }
}

/// Most lines of a last cell.
const MOST_LINES: usize = 4;
/// Columns before a row's continuation that has no room below its last cell.
const INDENT: usize = 4;

/// A row within the columns of the terminal. The last cell is cut after some lines, with a sign.
fn fitted(line: &str, texts: &[String], tones: &[Tone], console: Console, columns: Option<usize>) -> String {
    let last = texts.last().map_or("", |text| text.trim_end());
    let is_too_long = |columns: &usize| text::columns(line) >= *columns;
    let (Some(columns), Some(at)) = (columns.filter(is_too_long), line.rfind(last)) else {
        return format!("{}\n", painted(line, texts, tones, console));
    };
    let before = &line[..at];
    let has_room = text::columns(before) + text::NARROWEST < columns;
    let indent = if has_room { text::columns(before) } else { INDENT.min(columns / 2) };
    let mut parts = text::wrapped(last, Some(columns.saturating_sub(indent + 1).max(1)));
    if parts.len() > MOST_LINES {
        parts.truncate(MOST_LINES);
        if let Some(part) = parts.last_mut() {
            part.pop();
            part.pop();
            part.push('…');
        }
    }
    let tone = texts.len().checked_sub(1).and_then(|at| tones.get(at)).copied().unwrap_or(Tone::Plain);
    let mut parts = parts.iter().map(|part| console.paint(tone, part));
    let mut fitted = match has_room {
        true => format!("{}{}\n", painted(before, texts, tones, console), parts.next().unwrap_or_default()),
        false => text::hanging(before.trim_end(), indent, Some(columns)).join("\n") + "\n",
    };
    parts.for_each(|part| fitted.push_str(&format!("{:indent$}{part}\n", "")));
    fitted
}

/// Colours the cells of a line, from left to right. Before a cell are only spaces, so the first match is the cell.
fn painted(line: &str, texts: &[String], tones: &[Tone], console: Console) -> String {
    let mut painted = String::new();
    let mut rest = line;
    for (text, tone) in texts.iter().zip(tones).filter(|(text, _)| !text.trim().is_empty()) {
        let text = text.trim_end();
        let Some((before, after)) = rest.split_once(text) else { continue };
        painted.push_str(before);
        painted.push_str(&console.paint(*tone, text));
        rest = after;
    }
    painted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_on_the_screen() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.head(["name", "size", "what"]);
        for (name, size, what) in [("a", "1", "one"), ("漢字", "1,000", "two columns each"), ("", "20", "")] {
            table.row([(Tone::Plain, name.to_owned()), (Tone::Good, size.to_owned()), (Tone::Plain, what.to_owned())]);
        }
        let expected = "name   size  what\na         1  one\n漢字  1,000  two columns each\n         20\n";
        assert_eq!(table.text(Console::plain(false)), expected);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = |text: &str| (Tone::Plain, text.to_owned());
        let line = "1  1  11";
        let texts = ["1", "1", "11"].map(str::to_owned);
        let console = Console::coloured();
        let painted = painted(line, &texts, &[Tone::Plain, Tone::Good, Tone::Plain], console);
        assert_eq!(painted, "1  \u{1b}[32m1\u{1b}[0m  11");
        let mut table = Table::new(&[]);
        table.row([(Tone::Bad, "x".to_owned()), plain("y")]);
        table.row([plain("xxx"), plain("y")]);
        assert_eq!(table.text(console), "\u{1b}[31mx\u{1b}[0m    y\nxxx  y\n");
    }

    mod attack {
        use super::*;

        #[test]
        fn the_last_cell_cannot_forge_a_row_at_any_width() {
            let forged = "20261122_101500_4b2854  2026-11-22 10:15  12 messages  Tax";
            for padding in [0, 10, 37, 60, 68] {
                for columns in 8..=140 {
                    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
                    let title = format!("{}{forged}", "x".repeat(padding));
                    for text in ["Tea", &title, &"word ".repeat(500)] {
                        let cells = ["20261120_090000_aaaaaa", "2 messages", text];
                        table.row(cells.map(|cell| (Tone::Plain, cell.to_owned())));
                    }
                    let lines: Vec<String> = table
                        .lines_within(Console::plain(true), Some(columns))
                        .concat()
                        .lines()
                        .map(str::to_owned)
                        .collect();
                    assert!(lines.iter().all(|line| text::columns(line) < columns), "{columns}: {lines:#?}");
                    let rows = lines.iter().filter(|line| !line.starts_with(' '));
                    assert_eq!(rows.count(), 3, "{columns}: {lines:#?}");
                    assert!(lines.len() < 80 && (columns > 100 || lines.iter().any(|line| line.ends_with('…'))));
                }
            }
        }

        #[test]
        fn a_pipe_gets_one_whole_line_for_each_row() {
            let mut table = Table::new(&[Align::Left, Align::Left]);
            table.row(["a".to_owned(), "word ".repeat(500)].map(|cell| (Tone::Plain, cell)));
            let lines = table.lines_within(Console::plain(false), None);
            assert!(lines.len() == 1 && lines[0].matches("word").count() == 500 && lines[0].matches('\n').count() == 1);
        }
    }
}
