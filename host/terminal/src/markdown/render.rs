//! Blocks as lines.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::blocks::{Block, Item, Kind, Text};
use super::table;
use crate::highlight::Highlighter;
use crate::layout::wrapped;

/// Columns in front of code.
pub(super) const CODE_INDENT: &str = "  ";

/// What is in front of the lines of a block: quotes and lists.
#[derive(Debug, Clone, Default)]
pub(super) struct Margin {
    /// In front of the next line only.
    first: Vec<Span<'static>>,
    /// In front of the lines after it.
    rest: Vec<Span<'static>>,
}

impl Margin {
    fn with(&self, first: Span<'static>, rest: Span<'static>) -> Self {
        let joined = |outer: &[Span<'static>], inner| outer.iter().cloned().chain([inner]).collect();
        Self { first: joined(&self.first, first), rest: joined(&self.rest, rest) }
    }

    /// The margin after the first line.
    fn after(&self) -> Self {
        Self { first: self.rest.clone(), rest: self.rest.clone() }
    }

    pub(super) fn columns(&self) -> usize {
        self.rest.iter().map(Span::width).sum()
    }

    /// A line with nothing but the margin, without spaces at its end.
    fn blank(&self) -> Line<'static> {
        let mut spans = self.rest.clone();
        while spans.last().is_some_and(|span| span.content.trim().is_empty()) {
            spans.pop();
        }
        Line::from(spans)
    }
}

/// Writes blocks below one another.
pub(super) struct Writer<'a> {
    pub(super) source: &'a str,
    pub(super) width: usize,
    pub(super) lines: Vec<Line<'static>>,
}

impl Writer<'_> {
    /// Blocks that follow one another. Empty lines of the source stay, and code and tables are set apart.
    pub(super) fn blocks(&mut self, blocks: &[Block], margin: &Margin) {
        let mut margin = margin.clone();
        for (at, block) in blocks.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| blocks.get(before));
            if let Some(before) = before
                && (is_apart(&before.kind) || is_apart(&block.kind) || has_blank_before(self.source, block.range.start))
            {
                self.lines.push(margin.blank());
            }
            let begun = self.lines.len();
            self.block(block, &margin);
            if self.lines.len() > begun {
                margin = margin.after();
            }
        }
    }

    pub(super) fn block(&mut self, block: &Block, margin: &Margin) {
        match &block.kind {
            Kind::Paragraph(text) => self.text(text, margin, Style::new()),
            Kind::Heading(text) => self.text(text, margin, Style::new().add_modifier(Modifier::BOLD)),
            Kind::Code { language, text, .. } => {
                let mut highlighter = Highlighter::new(language);
                let mut margin = margin.clone();
                for line in text.lines() {
                    let spans = highlighter.line(line);
                    match line.trim().is_empty() {
                        true => self.lines.push(margin.blank()),
                        false => self.code(&spans, &margin),
                    }
                    margin = margin.after();
                }
            }
            Kind::Quote(blocks) => {
                let bar = Span::styled("│ ", Style::new().add_modifier(Modifier::DIM));
                self.blocks(blocks, &margin.with(bar.clone(), bar));
            }
            Kind::List { begin, items } => self.items(items, *begin, margin),
            Kind::Table { alignments, rows } => {
                let room = self.width.saturating_sub(margin.columns()).max(1);
                let mut margin = margin.clone();
                for line in table::lines(alignments, rows, room) {
                    self.lines.push(Line::from(margin.first.iter().cloned().chain(line.spans).collect::<Vec<_>>()));
                    margin = margin.after();
                }
            }
            Kind::Rule => {
                let columns = self.width.saturating_sub(margin.columns()).clamp(1, 40);
                let rule = Span::styled("─".repeat(columns), Style::new().add_modifier(Modifier::DIM));
                self.lines.extend(wrapped(&[rule], self.width, &margin.first, &margin.rest));
            }
        }
    }

    /// The items of a list. The first has the number `begin`, if they are numbered.
    pub(super) fn items(&mut self, items: &[Item], begin: Option<u64>, margin: &Margin) {
        let last = begin.map(|begin| begin.saturating_add(items.len() as u64 - u64::from(!items.is_empty())));
        let columns = last.map_or(0, |last| last.to_string().len());
        for (at, item) in items.iter().enumerate() {
            if at > 0 && has_blank_before(self.source, item.range.start) {
                self.lines.push(margin.blank());
            }
            let mut mark = match begin {
                Some(begin) => format!("{:>columns$}. ", begin.saturating_add(at as u64)),
                None => "• ".to_owned(),
            };
            if let Some(done) = item.done {
                mark.push_str(if done { "[x] " } else { "[ ] " });
            }
            let space = " ".repeat(crate::layout::width(&mark));
            let outer = if at == 0 { margin.clone() } else { margin.after() };
            let inner = outer.with(mark.into(), space.into());
            let begun = self.lines.len();
            self.blocks(&item.blocks, &inner);
            if self.lines.len() == begun {
                self.lines.extend(wrapped(&[], self.width, &inner.first, &inner.rest));
            }
        }
    }

    fn text(&mut self, text: &Text, margin: &Margin, style: Style) {
        let mut margin = margin.clone();
        let end = text.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        for line in text.iter().take(end) {
            let spans: Vec<Span<'_>> =
                line.iter().map(|span| Span::styled(span.content.as_ref(), style.patch(span.style))).collect();
            self.lines.extend(wrapped(&spans, self.width, &margin.first, &margin.rest));
            margin = margin.after();
        }
    }

    pub(super) fn code(&mut self, spans: &[Span<'_>], margin: &Margin) {
        let margin = margin.with(CODE_INDENT.into(), CODE_INDENT.into());
        self.lines.extend(wrapped(spans, self.width, &margin.first, &margin.rest));
    }
}

/// Whether a block is set apart from its neighbours, also if the source has no empty line there.
fn is_apart(kind: &Kind) -> bool {
    matches!(kind, Kind::Code { .. } | Kind::Table { .. })
}

/// Whether an empty line is before a place of the source.
pub(super) fn has_blank_before(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    // Quotes have their mark also on empty lines.
    let blank = before.trim_end_matches([' ', '\t', '\n', '\r', '>']);
    before[blank.len()..].matches('\n').count() > 1
}
