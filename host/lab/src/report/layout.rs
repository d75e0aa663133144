//! Tables and paragraphs of plain text.

use std::fmt::Write as _;

/// Aligns names to the left and figures to the right.
pub(crate) fn align(cells: &[Vec<String>], text: &mut String) {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| cells.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    for line in cells {
        let mut row = format!("{:<width$}", line[0], width = widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(row, "  {cell:>width$}");
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
}

/// Wraps words behind a bullet.
pub(crate) fn wrap(words: &str, bullet: &str, text: &mut String) {
    let mut line = bullet.to_owned();
    let mut begins = true;
    for word in words.split(' ') {
        if !begins && line.chars().count() + 1 + word.chars().count() > 118 {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(bullet.len());
            begins = true;
        }
        if !begins {
            line.push(' ');
        }
        line.push_str(word);
        begins = false;
    }
    text.push_str(&line);
    text.push('\n');
}

/// A whole number with digit groups of three.
pub(crate) fn whole(number: f64) -> String {
    hermes_diagnostic::grouped(number.max(0.0).round_ties_even() as u64)
}
