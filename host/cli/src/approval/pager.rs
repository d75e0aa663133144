//! Divides a text into pages of the terminal, so that a user sees all of it.

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Size {
    /// The size of the terminal on standard output or standard error.
    #[cfg(unix)]
    pub(super) fn of_terminal(screen: bool) -> Self {
        use rustix::termios::tcgetwinsize;
        let size = if screen { tcgetwinsize(std::io::stdout()) } else { tcgetwinsize(std::io::stderr()) };
        // Some terminals do not know their size.
        match size {
            Ok(size) if size.ws_col >= 20 && size.ws_row >= 5 => {
                Self { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => Self { columns: 80, rows: 24 },
        }
    }

    /// Whether the lines fit on the screen together with the keys below them.
    pub(super) fn holds(self, lines: &[String]) -> bool {
        lines.iter().map(|line| self.rows_of(line).len()).sum::<usize>() + 3 <= self.rows
    }

    /// The pages of a text. Each leaves a row for the keys, and none is higher than the screen.
    pub(super) fn pages(self, lines: &[String]) -> Vec<String> {
        let rows: Vec<&str> = lines.iter().flat_map(|line| self.rows_of(line)).collect();
        rows.chunks(self.rows.saturating_sub(2).max(1)).map(|page| page.join("\n")).collect()
    }

    /// The rows that a line takes. A character beyond ASCII counts as two columns, which is the most that one takes.
    fn rows_of(self, line: &str) -> Vec<&str> {
        let (mut rows, mut start, mut columns) = (Vec::new(), 0, 0);
        for (at, character) in line.char_indices() {
            let width = match character {
                // The distance to the next stop.
                '\t' => 8,
                character if character.is_ascii() => 1,
                _ => 2,
            };
            if columns > 0 && columns + width > self.columns {
                rows.push(&line[start..at]);
                (start, columns) = (at, 0);
            }
            columns += width;
        }
        rows.push(&line[start..]);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size { columns: 4, rows: 5 };

    #[test]
    fn pages_contain_everything_in_order() {
        let lines = ["abcdefghij".to_owned(), String::new(), "漢字漢".to_owned(), "x".to_owned()];
        assert_eq!(SMALL.pages(&lines), ["abcd\nefgh\nij", "\n漢字\n漢", "x"]);
        assert_eq!(SMALL.pages(&[]).len(), 0);
    }

    #[test]
    fn only_a_text_with_room_for_the_keys_fits() {
        let lines = |count: usize| vec!["abcd".to_owned(); count];
        assert!(SMALL.holds(&lines(2)) && !SMALL.holds(&lines(3)));
        assert!(!SMALL.holds(&["abcdabcdabcd".to_owned()]));
    }

    mod attack {
        use super::*;

        #[test]
        fn no_page_is_higher_or_wider_than_the_screen() {
            let size = Size { columns: 20, rows: 6 };
            let lines = ["x".repeat(1_000), "漢".repeat(300), "\t".repeat(50), "é\u{301}".repeat(100)];
            let pages = size.pages(&lines);
            assert_eq!(pages.concat().replace('\n', ""), lines.concat());
            for page in pages {
                assert!(page.lines().count() < size.rows, "{page}");
                assert!(page.lines().all(|row| row.chars().count() <= size.columns), "{page}");
            }
        }
    }
}
