//! Tables on standard output: columns as wide as their widest cell, counted in columns of the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Row};

use crate::console::{Console, Tone};

/// The side on which a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of plain text. A cell is coloured only after the widths are known.
pub(crate) struct Table {
    layout: comfy_table::Table,
    columns: &'static [Align],
    tones: Vec<Vec<Tone>>,
}

impl Table {
    pub(crate) fn new(columns: &'static [Align]) -> Self {
        let mut layout = comfy_table::Table::new();
        layout.set_content_arrangement(ContentArrangement::Disabled).load_style(comfy_table::presets::NOTHING);
        Self { layout, columns, tones: Vec::new() }
    }

    /// Adds a row. The texts must be single lines.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(Tone, String); N]) {
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
    pub(crate) fn head<const N: usize>(&mut self, names: [&str; N]) {
        self.row(names.map(|name| (Tone::Faint, name.to_owned())));
    }

    /// The lines of the table, one for each row.
    pub(crate) fn lines(mut self, console: Console) -> Vec<String> {
        for column in self.layout.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let texts: Vec<Vec<String>> =
            self.layout.row_iter().map(|row| row.cell_iter().map(Cell::content).collect()).collect();
        let rows = self.layout.lines().zip(texts).zip(&self.tones);
        rows.map(|((line, texts), tones)| format!("{}\n", painted(line.trim_end(), &texts, tones, console))).collect()
    }

    /// The whole table.
    pub(crate) fn text(self, console: Console) -> String {
        self.lines(console).concat()
    }
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
}
