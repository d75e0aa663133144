//! Markdown that arrives in pieces.

use ratatui_core::text::Line;

use super::blocks::{Block, Kind, parsed};
use super::render::{Margin, Writer, has_blank_before};
use crate::highlight::Highlighter;

/// The most bytes of a block that waits for its end. The rest is shown as if it began a new block.
const LARGEST_BLOCK: usize = 16 << 10;

/// A text that arrives in pieces. Each line is given out once, as soon as nothing that follows can change it.
#[derive(Default)]
pub struct Stream {
    source: String,
    /// The lines of the source before this byte were given out.
    done: usize,
    code: Option<Code>,
    /// Whether a line was given out.
    has_begun: bool,
    /// Whether a blank line precedes the next block, even if the source has none.
    apart: bool,
    /// The number of the next item, if the first items of a list were given out. Many lists have `1.` in front of each.
    number: Option<u64>,
}

/// A block of code that is still open.
struct Code {
    fence: char,
    /// The length of the fence, which its end has at least.
    length: usize,
    /// Spaces in front of the fence, which lines of code have too.
    indent: usize,
    highlighter: Highlighter,
    /// Empty lines that are shown only before other lines.
    blank: usize,
}

impl Stream {
    /// Adds a piece, and returns the lines that are complete.
    pub fn push(&mut self, piece: &str, width: usize) -> Vec<Line<'static>> {
        self.source.push_str(piece);
        let mut lines = Vec::new();
        while self.advance(width, &mut lines) {}
        lines
    }

    /// The lines that are not complete yet. They may look different when more text has arrived.
    pub fn rest(&self, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match &self.code {
            Some(code) => {
                let line = &self.source[self.done..];
                // It may become the end of the block.
                if !line.trim_start().is_empty() && !line.trim_start().starts_with(code.fence) {
                    let mut writer = self.writer(width);
                    writer.code(&[line.to_owned().into()].map(printable), &Margin::default());
                    lines.extend((0..code.blank).map(|_| Line::default()));
                    lines.append(&mut writer.lines);
                }
            }
            None => {
                let open = &self.source[self.done..self.readable()];
                let blocks = self.parsed(open);
                let mut writer = Writer { source: open, width, lines: Vec::new() };
                writer.blocks(&blocks, &Margin::default());
                if !writer.lines.is_empty() && self.is_apart(self.done + first_of(&blocks), &blocks) {
                    lines.push(Line::default());
                }
                lines.append(&mut writer.lines);
            }
        }
        lines
    }

    /// Ends the text, and returns the lines that were not complete. The next piece begins another text.
    pub fn finish(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.source.ends_with('\n') {
            lines = self.push("\n", width);
        }
        if self.code.is_none() {
            lines.extend(self.rest(width));
        }
        *self = Self::default();
        lines
    }

    /// The length of the source that can be read. A last line of marks alone is left out, because it can still become anything.
    fn readable(&self) -> usize {
        let last = self.source.rfind('\n').map_or(0, |end| end + 1).max(self.done);
        let is_mark = |character: char| " \t-=#*+_`~>|:.()[]".contains(character) || character.is_ascii_digit();
        if self.source[last..].chars().all(is_mark) { last } else { self.source.len() }
    }

    /// The blocks of what was not given out.
    fn parsed(&self, open: &str) -> Vec<Block> {
        let mut blocks = parsed(open);
        if let (Some(number), Some(Block { kind: Kind::List { begin: Some(begin), .. }, .. })) =
            (self.number, blocks.first_mut())
        {
            *begin = number;
        }
        blocks
    }

    fn writer(&self, width: usize) -> Writer<'_> {
        Writer { source: &self.source, width, lines: Vec::new() }
    }

    /// Whether an empty line is in front of the next lines.
    fn is_apart(&self, begin: usize, blocks: &[Block]) -> bool {
        let is_code = matches!(blocks.first().map(|block| &block.kind), Some(Kind::Code { .. } | Kind::Table { .. }));
        self.has_begun && (self.apart || is_code || has_blank_before(&self.source, begin))
    }

    /// Gives out what is complete. False if nothing more is.
    fn advance(&mut self, width: usize, lines: &mut Vec<Line<'static>>) -> bool {
        if self.code.is_some() {
            return self.advance_code(width, lines);
        }
        let open = &self.source[self.done..self.readable()];
        let mut blocks = self.parsed(open);
        let Some(last) = blocks.pop() else { return false };
        let line_start = |at: usize| open[..at].rfind('\n').map_or(0, |end| end + 1);
        let mut writer = Writer { source: open, width, lines: Vec::new() };
        let mut next = line_start(last.range.start);
        let mut is_code_after = false;
        let mut number = None;
        let code = match &last.kind {
            Kind::Code { is_fenced: true, language, .. } => opened(&open[next..], language),
            _ => None,
        };
        match &last.kind {
            Kind::List { begin, items } if items.len() > 1 => {
                // All items but the last are complete.
                let begun = blocks.len();
                let (complete, rest) = items.split_at(items.len() - 1);
                writer.blocks(&blocks, &Margin::default());
                if begun > 0 && has_blank_before(open, last.range.start) {
                    writer.lines.push(Line::default());
                }
                writer.items(complete, *begin, &Margin::default());
                number = begin.map(|begin| begin.saturating_add(complete.len() as u64));
                next = rest.first().map_or(next, |item| line_start(item.range.start));
            }
            _ if code.is_some() => {
                writer.blocks(&blocks, &Margin::default());
                is_code_after = true;
            }
            _ if blocks.is_empty() && open.len() > LARGEST_BLOCK => {
                // Read again with every piece, it would take longer and longer.
                next = open.rfind(['\n', ' ']).map_or(open.len(), |end| end + 1);
                writer.blocks(&parsed(&open[..next]), &Margin::default());
            }
            _ if blocks.is_empty() => return false,
            _ => writer.blocks(&blocks, &Margin::default()),
        }
        self.number = number;
        let mut written = writer.lines;
        let first = blocks.first().map_or(last.range.start, |block| block.range.start);
        let shown = if blocks.is_empty() { std::slice::from_ref(&last) } else { &blocks[..] };
        let is_apart = self.is_apart(self.done + first, shown);
        let ends_apart = matches!(blocks.last().map(|block| &block.kind), Some(Kind::Code { .. } | Kind::Table { .. }));
        if is_apart && !written.is_empty() {
            written.insert(0, Line::default());
        }
        if !written.is_empty() {
            self.has_begun = true;
            self.apart = ends_apart;
        }
        lines.append(&mut written);
        match code {
            Some((code, length)) => {
                if is_code_after && self.has_begun {
                    lines.push(Line::default());
                }
                self.has_begun = true;
                self.done += next + length;
                self.code = Some(code);
            }
            None => self.done += next,
        }
        true
    }

    fn advance_code(&mut self, width: usize, lines: &mut Vec<Line<'static>>) -> bool {
        let Some(end) = self.source[self.done..].find('\n') else { return false };
        let Some(mut code) = self.code.take() else { return false };
        let line = self.source[self.done..self.done + end].trim_end_matches('\r');
        self.done += end + 1;
        if code.is_closed_by(line) {
            self.apart = true;
            return true;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = &line[indent.min(code.indent)..];
        if line.trim().is_empty() {
            code.blank += 1;
        } else {
            lines.extend((0..std::mem::take(&mut code.blank)).map(|_| Line::default()));
            let spans = code.highlighter.line(line);
            let mut writer = Writer { source: "", width, lines: Vec::new() };
            writer.code(&spans, &Margin::default());
            lines.append(&mut writer.lines);
        }
        self.code = Some(code);
        true
    }
}

fn first_of(blocks: &[Block]) -> usize {
    blocks.first().map_or(0, |block| block.range.start)
}

fn printable(span: ratatui_core::text::Span<'_>) -> ratatui_core::text::Span<'static> {
    ratatui_core::text::Span::styled(crate::layout::printable(&span.content).into_owned(), span.style)
}

/// The block of code that begins here, and the length of the line with its fence. `None` while this line is not complete.
fn opened(source: &str, language: &str) -> Option<(Code, usize)> {
    let length = source.find('\n')? + 1;
    let line = source[..length].trim_start_matches(' ');
    let indent = source.len() - source.trim_start_matches(' ').len();
    let fence = line.chars().next().filter(|fence| matches!(fence, '`' | '~'))?;
    let marks = line.chars().take_while(|character| *character == fence).count();
    let code = Code { fence, length: marks, indent, highlighter: Highlighter::new(language), blank: 0 };
    Some((code, length))
}

impl Code {
    fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        line.len() - marks.len() < 4
            && marks.chars().take_while(|character| *character == self.fence).count() >= self.length
            && marks.trim_start_matches(self.fence).trim().is_empty()
    }
}
