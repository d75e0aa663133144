//! The lowest rows of the terminal, which are drawn again and again, below text that is printed once.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui_core::text::Line;

use crate::ansi::{Colours, sequence};
use crate::layout;

/// A place in the region: its row, and the columns before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The row, from 0.
    pub row: usize,
    /// The columns before the place.
    pub column: usize,
}

/// What the region shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// The rows. None is wider than the terminal.
    pub rows: Vec<Line<'static>>,
    /// Where the cursor is. Without one it is hidden.
    pub cursor: Option<Place>,
}

/// Draws the region. Everything is written relative to the cursor, so what is above never changes.
pub struct Region<W> {
    out: W,
    colours: Colours,
    drawn: Picture,
    /// The columns of the terminal when it was drawn.
    columns: usize,
    /// The bytes that the terminal has not accepted yet.
    rest: Vec<u8>,
    /// Whether the last write failed.
    is_behind: bool,
}

/// The terminal shows what follows only when it is complete. Terminals that do not know this ignore it.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l";
const END: &str = "\u{1b}[?2026l";

impl<W: Write> Region<W> {
    /// An empty region below the cursor, which is at the begin of a line.
    pub fn new(out: W, colours: Colours) -> Self {
        Self { out, colours, drawn: Picture::default(), columns: 0, rest: Vec::new(), is_behind: false }
    }

    /// Prints lines above the region, as they are, and draws it.
    ///
    /// # Errors
    ///
    /// If the terminal does not take all of it. The region keeps the rest for [`Region::resume`].
    pub fn draw(&mut self, above: &[String], picture: Picture, columns: usize) -> io::Result<()> {
        if above.is_empty() && picture == self.drawn {
            return self.resume();
        }
        let mut text = BEGIN.to_owned();
        let kept = if above.is_empty() { self.kept(&picture, columns) } else { 0 };
        match kept {
            0 => self.erased(columns, &mut text),
            _ => self.erased_from(kept, &mut text),
        }
        for line in above {
            text.push_str(line);
            text.push_str("\r\n");
        }
        for (at, row) in picture.rows.iter().skip(kept).enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            text.push_str(&sequence(row, self.colours));
        }
        let last = picture.rows.len().saturating_sub(1);
        let place = picture.cursor.unwrap_or(Place { row: last, column: 0 });
        text.push('\r');
        if last > place.row {
            let _ = write!(text, "\u{1b}[{}A", last - place.row);
        }
        if place.column > 0 {
            let _ = write!(text, "\u{1b}[{}C", place.column);
        }
        if picture.cursor.is_some() {
            text.push_str("\u{1b}[?25h");
        }
        text.push_str(END);
        (self.drawn, self.columns) = (picture, columns);
        self.send(text.as_bytes())
    }

    /// Writes what the terminal has not taken yet.
    ///
    /// # Errors
    ///
    /// If the terminal still does not take all of it.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.is_behind { self.send(&[]) } else { Ok(()) }
    }

    /// Drops what the terminal has not taken yet.
    pub fn forget(&mut self) {
        self.rest.clear();
        self.is_behind = false;
    }

    /// Writes a sequence that shows nothing.
    ///
    /// # Errors
    ///
    /// As for [`Region::draw`].
    pub fn pass(&mut self, sequence: &[u8]) -> io::Result<()> {
        self.send(sequence)
    }

    /// Writes these bytes behind those that the terminal has not taken yet.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.rest.extend_from_slice(bytes);
        let mut taken = 0;
        let written = loop {
            let left = &self.rest[taken..];
            let written = if left.is_empty() { self.out.flush().map(|()| 0) } else { self.out.write(left) };
            match written {
                Ok(_) if left.is_empty() => break Ok(()),
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => taken += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.rest.drain(..taken);
        self.is_behind = written.is_err();
        written
    }

    /// The number of upper rows that need not be drawn again. At least one row is always drawn.
    fn kept(&self, picture: &Picture, columns: usize) -> usize {
        let is_broken = |row: &Line<'_>| layout::width(&row.to_string()) > columns;
        if self.columns != columns || self.drawn.rows.iter().any(is_broken) {
            return 0;
        }
        let same = self.drawn.rows.iter().zip(&picture.rows).take_while(|(before, now)| before == now).count();
        same.min(self.drawn.rows.len().min(picture.rows.len()).saturating_sub(1))
    }

    /// Erases from this row of the region on, and moves there.
    fn erased_from(&self, row: usize, text: &mut String) {
        let last = self.drawn.rows.len().saturating_sub(1);
        let now = self.drawn.cursor.map_or(last, |place| place.row);
        text.push('\r');
        let _ = match now.cmp(&row) {
            Ordering::Greater => write!(text, "\u{1b}[{}A", now - row),
            Ordering::Less => write!(text, "\u{1b}[{}B", row - now),
            Ordering::Equal => Ok(()),
        };
        text.push_str("\u{1b}[J");
    }

    /// Removes everything from the window. What was scrolled away stays.
    ///
    /// # Errors
    ///
    /// As for [`Region::draw`].
    pub fn clear_screen(&mut self, columns: usize) -> io::Result<()> {
        // Without the region, because terminals move what they clear to the scrollback.
        let text = self.cleared(columns) + "\u{1b}[H\u{1b}[2J";
        self.send(text.as_bytes())
    }

    /// Removes the region, and shows the cursor where the region began.
    ///
    /// # Errors
    ///
    /// As for [`Region::draw`].
    pub fn clear(&mut self, columns: usize) -> io::Result<()> {
        let text = self.cleared(columns);
        self.send(text.as_bytes())
    }

    fn cleared(&mut self, columns: usize) -> String {
        let mut text = String::new();
        if !self.drawn.rows.is_empty() {
            self.erased(columns, &mut text);
        }
        text.push_str("\u{1b}[?25h");
        self.drawn = Picture::default();
        text
    }

    /// Moves to the begin of the region, and erases from there.
    fn erased(&self, columns: usize, text: &mut String) {
        let last = self.drawn.rows.len().saturating_sub(1);
        let place = self.drawn.cursor.unwrap_or(Place { row: last, column: 0 });
        // A terminal that became narrower has broken the rows that are too wide now.
        let columns = columns.max(1);
        let above: usize = self
            .drawn
            .rows
            .iter()
            .take(place.row)
            .map(|row| layout::width(&row.to_string()).div_ceil(columns).max(1))
            .sum();
        let above = above + place.column / columns;
        text.push('\r');
        if above > 0 {
            let _ = write!(text, "\u{1b}[{above}A");
        }
        // If the region fills the window, erasing all of it at once would move it to the scrollback in tmux, each time.
        text.push_str("\u{1b}[2K");
        if last > 0 {
            text.push_str("\u{1b}[1B\u{1b}[J\u{1b}[1A");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A terminal, and what is written to it.
    struct Screen(vt100::Parser);

    impl Write for &mut Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.process(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Ten rows of twenty columns.
    fn screen(scrollback: usize) -> Screen {
        Screen(vt100::Parser::new(10.try_into().unwrap(), 20.try_into().unwrap(), scrollback))
    }

    fn lines(texts: &[String]) -> Vec<Line<'static>> {
        texts.iter().map(|text| Line::from(text.clone())).collect()
    }

    proptest! {
        /// Whatever is drawn, the terminal shows the text in its order, and below it the newest picture.
        #[test]
        fn the_terminal_shows_all_text_and_the_newest_picture(
            steps in prop::collection::vec(
                (prop::collection::vec("[a-z]{0,19}", 0..4), prop::collection::vec("[a-z漢]{0,9}", 1..5), 0_usize..5, 0_usize..9),
                1..12,
            ),
        ) {
            let mut screen = screen(1_000);
            let mut printed: Vec<String> = Vec::new();
            let mut region = Region::new(&mut screen, Colours::Shown);
            let (mut rows, mut cursor) = (Vec::new(), Place::default());
            for (above, picture, row, column) in steps {
                printed.extend(above.clone());
                cursor = Place { row: row % picture.len(), column };
                region.draw(&above, Picture { rows: lines(&picture), cursor: Some(cursor) }, 20).unwrap();
                rows = picture;
            }
            let shown = all_rows(&mut screen.0);
            let expected: Vec<String> = printed.iter().chain(&rows).cloned().collect();
            for (at, text) in expected.iter().enumerate() {
                prop_assert_eq!(shown.get(at).cloned().unwrap_or_default(), text.clone());
            }
            prop_assert!(shown.iter().skip(expected.len()).all(String::is_empty));
            let row = (expected.len() - rows.len() + cursor.row) - shown.len().saturating_sub(10);
            prop_assert_eq!(screen.0.screen().cursor_position(), (u16::try_from(row).unwrap(), u16::try_from(cursor.column).unwrap()));
        }
    }

    /// A terminal that takes a few bytes at a time, and now and then none.
    struct Slow<'a> {
        screen: &'a mut Screen,
        writes: usize,
    }

    impl Write for Slow<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            match self.writes % 4 {
                1 => Err(io::ErrorKind::Interrupted.into()),
                3 => Err(io::ErrorKind::WouldBlock.into()),
                _ => self.screen.write(&bytes[..bytes.len().min(7)]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            self.writes += 1;
            if self.writes.is_multiple_of(2) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        }
    }

    #[test]
    fn a_terminal_that_takes_little_at_a_time_shows_everything_once() {
        let mut screen = screen(100);
        let mut region = Region::new(Slow { screen: &mut screen, writes: 0 }, Colours::Off);
        for number in 0..20 {
            let picture = Picture {
                rows: lines(&[format!("reply {number}"), "input".to_owned()]),
                cursor: Some(Place { row: 1, column: 5 }),
            };
            let mut drawn = region.draw(&[format!("line {number}")], picture, 20);
            assert!(drawn.is_err());
            while drawn.is_err() {
                drawn = region.resume();
            }
        }
        let shown = all_rows(&mut screen.0);
        let expected = (0..20).map(|number| format!("line {number}"));
        let expected: Vec<String> = expected.chain(["reply 19".to_owned(), "input".to_owned()]).collect();
        assert_eq!(shown[..expected.len()], expected);
    }

    /// What was scrolled away and what is visible.
    fn all_rows(parser: &mut vt100::Parser) -> Vec<String> {
        parser.screen_mut().set_scrollback(usize::MAX);
        let hidden = parser.screen().scrollback();
        let mut rows = Vec::new();
        for offset in (1..=hidden).rev() {
            parser.screen_mut().set_scrollback(offset);
            rows.extend(parser.screen().rows(0, 20).next());
        }
        parser.screen_mut().set_scrollback(0);
        rows.extend(parser.screen().rows(0, 20));
        rows
    }

    #[test]
    fn a_region_that_fills_the_window_is_never_erased_as_a_whole() {
        let mut written = Vec::new();
        let mut region = Region::new(&mut written, Colours::Off);
        for rows in [vec!["one", "two"], vec!["three", "four"], vec!["five"], vec!["six"]] {
            let rows = rows.into_iter().map(Line::from).collect();
            region.draw(&[], Picture { rows, cursor: Some(Place::default()) }, 20).unwrap();
        }
        let written = String::from_utf8(written).unwrap();
        assert!(!written.contains("\r\u{1b}[J") && written.contains("\r\u{1b}[2K"), "{written:?}");
    }

    #[test]
    fn a_cleared_region_leaves_only_the_text() {
        let mut screen = screen(0);
        let mut region = Region::new(&mut screen, Colours::Off);
        let picture = Picture { rows: vec!["one".into(), "two".into()], cursor: None };
        region.draw(&["text".to_owned()], picture, 20).unwrap();
        region.clear(20).unwrap();
        assert_eq!(screen.0.screen().contents(), "text");
        assert_eq!(screen.0.screen().cursor_position(), (1, 0));
        assert!(!screen.0.screen().hide_cursor());
    }
}
