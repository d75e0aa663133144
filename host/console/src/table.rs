//! Tables on standard output: columns as wide as their widest cell, counted in columns of the terminal.

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

/// Spaces between two columns.
const GAP: usize = 2;

/// Most lines of a last cell.
const MOST_LINES: usize = 4;
/// Columns before a row's continuation that has no room below its last cell.
const INDENT: usize = 4;

/// Rows of plain text. A cell is coloured only after the widths are known.
pub struct Table {
    columns: &'static [Align],
    rows: Vec<Vec<Cell>>,
}

struct Cell {
    tone: Tone,
    /// Without spaces at its end.
    text: String,
    /// In columns of a terminal that measures as Hermes does.
    width: usize,
    /// The most columns that another terminal may take for it.
    most: usize,
}

impl Table {
    /// A table with these columns. The columns that follow are aligned on the left.
    pub fn new(columns: &'static [Align]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row. The texts must be single lines.
    pub fn row<const N: usize>(&mut self, cells: [(Tone, String); N]) {
        let cells = cells.map(|(tone, mut text)| {
            text.truncate(text.trim_end().len());
            Cell { tone, width: hermes_terminal::width(&text), most: text::columns(&text), text }
        });
        self.rows.push(cells.into());
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

    fn lines_within(self, console: Console, columns: Option<usize>) -> Vec<String> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.width));
        }
        self.rows.iter().map(|row| self.line(row, &widths, console, columns)).collect()
    }

    /// A row within the columns of the terminal. The last cell is cut after some lines, with a sign.
    fn line(&self, row: &[Cell], widths: &[usize], console: Console, columns: Option<usize>) -> String {
        let Some((last, others)) = row.split_last() else { return "\n".to_owned() };
        let (mut before, mut used) = (Line::default(), 0);
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let padding = width - cell.width;
            let is_right = self.columns.get(at) == Some(&Align::Right);
            before.space(used + if is_right { padding } else { 0 });
            if at < others.len() {
                before.text(cell, console);
            }
            used = GAP + if is_right { 0 } else { padding };
        }
        if last.text.is_empty() {
            before.space = 0;
        }
        let most = before.most + before.space + last.most;
        let Some(columns) = columns.filter(|columns| most >= *columns) else {
            before.text(last, console);
            return format!("{}\n", before.painted);
        };
        let has_room = before.most + before.space + text::NARROWEST < columns;
        let indent = if has_room { before.width + before.space } else { INDENT.min(columns / 2) };
        let mut parts = text::wrapped(&last.text, Some(columns.saturating_sub(indent + 1).max(1)));
        if parts.len() > MOST_LINES {
            parts.truncate(MOST_LINES);
            if let Some(part) = parts.last_mut() {
                part.pop();
                part.pop();
                part.push('…');
            }
        }
        let mut parts = parts.iter().map(|part| console.paint(last.tone, part));
        let mut fitted = match has_room {
            true => {
                format!("{}{:space$}{}\n", before.painted, "", parts.next().unwrap_or_default(), space = before.space)
            }
            false => text::hanging(&before.plain, indent, Some(columns)).join("\n") + "\n",
        };
        parts.for_each(|part| fitted.push_str(&format!("{:indent$}{part}\n", "")));
        fitted
    }

    /// The whole table.
    pub fn text(self, console: Console) -> String {
        self.lines(console).concat()
    }
}

/// The cells of a row so far.
#[derive(Default)]
struct Line {
    plain: String,
    painted: String,
    /// Columns of the texts, and the most that a terminal may take for them.
    width: usize,
    most: usize,
    /// Spaces before the next text.
    space: usize,
}

impl Line {
    fn space(&mut self, count: usize) {
        self.space += count;
    }

    fn text(&mut self, cell: &Cell, console: Console) {
        if cell.text.is_empty() {
            return;
        }
        let space = std::mem::take(&mut self.space);
        for (line, text) in [(&mut self.plain, &cell.text), (&mut self.painted, &console.paint(cell.tone, &cell.text))]
        {
            line.extend(std::iter::repeat_n(' ', space));
            line.push_str(text);
        }
        self.width += space + cell.width;
        self.most += space + cell.most;
    }
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
        // Signs that some terminals show wide do not move the next column.
        let mut table = Table::new(&[Align::Left, Align::Left]);
        for bar in ["█▌··", "····"] {
            table.row([(Tone::Plain, bar.to_owned()), (Tone::Plain, "share".to_owned())]);
        }
        assert_eq!(table.text(Console::plain(false)), "█▌··  share\n····  share\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = |text: &str| (Tone::Plain, text.to_owned());
        let console = Console::coloured();
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
