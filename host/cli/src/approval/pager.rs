//! Divides a text into pages of the terminal, so that a user sees all of it.

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The fewest columns in which a question can be read.
const NARROWEST: usize = 10;

impl Size {
    /// The present size of the terminal on standard output or standard error.
    #[cfg(unix)]
    pub(super) fn of_terminal(screen: bool) -> Self {
        use rustix::termios::tcgetwinsize;
        let size = if screen { tcgetwinsize(std::io::stdout()) } else { tcgetwinsize(std::io::stderr()) };
        size.map_or(Self::new(0, 0), |size| Self::new(size.ws_col, size.ws_row))
    }

    /// A terminal that does not know its size says 0. A small size is a size: a larger one would let rows scroll away.
    fn new(columns: u16, rows: u16) -> Self {
        let or = |size: u16, usual: usize| if size == 0 { usual } else { size.into() };
        Self { columns: or(columns, 80), rows: or(rows, 24) }
    }

    /// Whether the lines and the prompt below them are on the screen together.
    pub(super) fn holds(self, lines: &[String], prompt: &str) -> bool {
        let rows = lines.iter().map(|line| self.rows_of(line).len()).sum::<usize>();
        self.columns >= NARROWEST && rows + self.rows_of_prompt(prompt) <= self.rows
    }

    /// The pages of a text. Each is on the screen together with the prompt below it: `turning` below a page that others follow,
    /// `last` below the last one. None if the screen is too small for that.
    pub(super) fn pages(
        self,
        lines: &[String],
        turning: impl Fn(usize, usize) -> String,
        last: &str,
    ) -> Option<Vec<String>> {
        let rows: Vec<&str> = lines.iter().flat_map(|line| self.rows_of(line)).collect();
        // There are at most as many pages as rows.
        let longest = turning(rows.len(), rows.len());
        let prompt = self.rows_of_prompt(&longest).max(self.rows_of_prompt(last));
        let most = self.rows.checked_sub(prompt).filter(|most| *most > 0 && self.columns >= NARROWEST)?;
        Some(rows.chunks(most).map(|page| page.join("\n")).collect())
    }

    /// The rows of a prompt, with the cursor behind it.
    fn rows_of_prompt(self, prompt: &str) -> usize {
        self.rows_of(&format!("{prompt}_")).len()
    }

    /// The rows that a line takes. A character beyond ASCII counts as two columns, which is the most that one takes. The last
    /// column stays free: some terminals wrap as soon as it is used.
    fn rows_of(self, line: &str) -> Vec<&str> {
        let most = self.columns.saturating_sub(1).max(1);
        let (mut rows, mut start, mut columns) = (Vec::new(), 0, 0);
        for (at, character) in line.char_indices() {
            let width = match character {
                // The distance to the next stop.
                '\t' => 8,
                character if character.is_ascii() => 1,
                _ => 2,
            };
            if columns > 0 && columns + width > most {
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SMALL: Size = Size { columns: 11, rows: 4 };

    #[test]
    fn pages_contain_everything_in_order() {
        let lines = ["0123456789abcdefghijklm".to_owned(), String::new(), "漢字漢字漢字".to_owned(), "x".to_owned()];
        let pages = |lines: &[String]| SMALL.pages(lines, |at, of| format!("{at}/{of}"), "?").unwrap_or_default();
        assert_eq!(pages(&lines), ["0123456789\nabcdefghij\nklm", "\n漢字漢字漢\n字", "x"]);
        assert_eq!(pages(&[]).len(), 0);
    }

    #[test]
    fn only_a_text_with_room_for_the_prompt_fits() {
        let lines = |count: usize| vec!["abcdefghij".to_owned(); count];
        assert!(SMALL.holds(&lines(3), "yes? ") && !SMALL.holds(&lines(4), "yes? "));
        assert!(SMALL.holds(&lines(2), "yes or no? ") && !SMALL.holds(&lines(3), "yes or no? "));
        assert!(!SMALL.holds(&["abcdefghij".repeat(4)], "?"));
    }

    mod attack {
        use super::super::super::wording;
        use super::*;

        #[test]
        fn no_page_is_higher_or_wider_than_the_screen() {
            let size = Size { columns: 20, rows: 6 };
            let lines = ["x".repeat(1_000), "漢".repeat(300), "\t".repeat(50), "é\u{301}".repeat(100)];
            let pages = size.pages(&lines, |_, _| "next? ".to_owned(), "? ").unwrap();
            assert_eq!(pages.concat().replace('\n', ""), lines.concat());
            for page in pages {
                assert!(page.lines().count() < size.rows, "{page}");
                assert!(page.lines().all(|row| row.chars().count() <= size.columns), "{page}");
            }
        }

        #[test]
        fn a_small_terminal_is_not_taken_for_a_large_one() {
            for (columns, rows) in [(19, 24), (10, 10), (200, 4), (80, 4), (1, 1), (65_535, 1)] {
                assert_eq!(Size::new(columns, rows), Size { columns: columns.into(), rows: rows.into() });
            }
            assert_eq!(Size::new(0, 0), Size { columns: 80, rows: 24 });
            assert_eq!(Size::new(40, 0), Size { columns: 40, rows: 24 });
        }

        /// The rows of a text on a terminal of this width.
        fn screen(text: &str, columns: usize) -> Vec<String> {
            let rows = text.split('\n').flat_map(|line| {
                let line: Vec<char> = line.chars().collect();
                let rows: Vec<String> = line.chunks(columns).map(|row| row.iter().collect()).collect();
                if rows.is_empty() { vec![String::new()] } else { rows }
            });
            rows.collect()
        }

        #[test]
        fn at_every_size_each_row_of_each_page_is_on_the_screen_with_the_prompt() {
            let text: String = (0..450).map(|at| format!("a{at:03}")).collect();
            let lines = [format!("  command  sh -c \"touch X; : {text}\""), "  folder   /w".to_owned()];
            for (columns, rows) in (1..=90).flat_map(|columns| (1..=30).map(move |rows| (columns, rows))) {
                let size = Size { columns, rows };
                let fits = size.holds(&lines, wording::KEYS);
                let all = format!("{}\n{}", lines.join("\n"), wording::KEYS);
                assert!(!fits || screen(&all, columns).len() <= rows, "{columns}x{rows}");
                let Some(pages) = size.pages(&lines, wording::page, wording::KEYS) else {
                    assert!(columns < NARROWEST || rows <= 8, "{columns}x{rows} is large enough");
                    continue;
                };
                assert_eq!(pages.join("").replace('\n', ""), lines.concat());
                for (number, page) in (1..).zip(&pages) {
                    let prompt = wording::page(number, pages.len());
                    for prompt in [prompt.as_str(), wording::KEYS] {
                        let shown = screen(&format!("{page}\n{prompt}"), columns);
                        assert!(shown.len() <= rows, "{columns}x{rows}, page {number}: {shown:?}");
                    }
                }
            }
        }
    }
}
