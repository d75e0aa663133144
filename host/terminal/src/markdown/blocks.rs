//! The blocks of a text.

use std::iter::Peekable;
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

use crate::layout::printable;

/// Lines of text, as the author broke them.
pub(super) type Text = Vec<Vec<Span<'static>>>;

/// A block, and where it is in the source.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Paragraph(Text),
    Heading(Text),
    Code { language: String, text: String, is_fenced: bool },
    Quote(Vec<Block>),
    List { begin: Option<u64>, items: Vec<Item> },
    Table { alignments: Vec<Alignment>, rows: Vec<Vec<Vec<Span<'static>>>> },
    Rule,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) range: Range<usize>,
    /// Whether it is done, if it is a task.
    pub(super) done: Option<bool>,
    pub(super) blocks: Vec<Block>,
}

/// Deeper blocks are shown without their structure, because a terminal has no room for it and the stack is limited.
const DEEPEST: usize = 16;

/// The blocks of a source.
pub(super) fn parsed(source: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader { events: Parser::new_ext(source, options).into_offset_iter().peekable() };
    let mut blocks = Vec::new();
    while reader.events.peek().is_some() {
        blocks.extend(reader.blocks(0).0);
        // An end without a begin does not occur; it must not hold the loop up either.
        reader.events.next_if(|(event, _)| matches!(event, Event::End(_)));
    }
    blocks
}

struct Reader<'a, I: Iterator<Item = (Event<'a>, Range<usize>)>> {
    events: Peekable<I>,
}

impl<'a, I: Iterator<Item = (Event<'a>, Range<usize>)>> Reader<'a, I> {
    /// The blocks up to the end of what they are in, and whether they begin with the box of a task.
    fn blocks(&mut self, depth: usize) -> (Vec<Block>, Option<bool>) {
        let mut blocks = Vec::new();
        let mut done = None;
        while let Some((event, range)) = self.events.next_if(|(event, _)| !matches!(event, Event::End(_))) {
            let kind = match event {
                Event::Start(tag) if is_block(&tag) => {
                    let kind = self.block(tag, depth);
                    self.events.next();
                    match kind {
                        Some(kind) => kind,
                        None => continue,
                    }
                }
                Event::Rule => Kind::Rule,
                Event::TaskListMarker(checked) => {
                    done = Some(checked);
                    continue;
                }
                // The items of a tight list have text without a paragraph.
                first => {
                    let text = self.text_from(Some((first, range.clone())));
                    Kind::Paragraph(text)
                }
            };
            blocks.push(Block { range, kind });
        }
        (blocks, done)
    }

    fn block(&mut self, tag: Tag<'a>, depth: usize) -> Option<Kind> {
        Some(match tag {
            Tag::Heading { .. } => Kind::Heading(self.text_from(None)),
            Tag::CodeBlock(kind) => {
                let (language, is_fenced) = match kind {
                    CodeBlockKind::Fenced(info) => {
                        (info.split([' ', ',', '{']).next().unwrap_or_default().to_owned(), true)
                    }
                    CodeBlockKind::Indented => (String::new(), false),
                };
                Kind::Code { language, text: self.raw(), is_fenced }
            }
            Tag::BlockQuote(_) if depth < DEEPEST => Kind::Quote(self.blocks(depth + 1).0),
            Tag::List(begin) if depth < DEEPEST => {
                let mut items = Vec::new();
                while let Some((_, range)) = self.events.next_if(|(event, _)| matches!(event, Event::Start(Tag::Item)))
                {
                    let (blocks, done) = self.blocks(depth + 1);
                    self.events.next();
                    items.push(Item { range, done, blocks });
                }
                Kind::List { begin, items }
            }
            Tag::Table(alignments) => {
                let mut rows = Vec::new();
                while let Some((event, _)) =
                    self.events.next_if(|(event, _)| !matches!(event, Event::End(TagEnd::Table)))
                {
                    match event {
                        Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
                        Event::Start(Tag::TableCell) => {
                            let cell = self.text_from(None).into_iter().flatten().collect();
                            self.events.next();
                            if let Some(row) = rows.last_mut() {
                                row.push(cell);
                            }
                        }
                        _ => {}
                    }
                }
                Kind::Table { alignments, rows }
            }
            Tag::MetadataBlock(_) => {
                self.raw();
                return None;
            }
            // A paragraph, HTML as it is written, and what is too deep.
            _ => Kind::Paragraph(self.text_from(None)),
        })
    }

    /// The text up to the end of the block, without styles.
    fn raw(&mut self) -> String {
        let mut text = String::new();
        while let Some((event, _)) = self.events.next_if(|(event, _)| !matches!(event, Event::End(_))) {
            if let Event::Text(piece) | Event::Html(piece) = event {
                text.push_str(&piece);
            }
        }
        text
    }

    /// The text up to the end of the block, or up to the next block in it.
    fn text_from(&mut self, first: Option<(Event<'a>, Range<usize>)>) -> Text {
        let mut writer = Writer { lines: vec![Vec::new()], styles: vec![Style::new()], links: Vec::new() };
        let mut open = 0_usize;
        if let Some((event, _)) = first {
            writer.event(event, &mut open);
        }
        while let Some((event, _)) = self.events.peek() {
            match event {
                Event::End(_) if open == 0 => break,
                // In a list, the text of an item ends where a block in it begins.
                Event::Start(tag) if is_block(tag) && open == 0 => break,
                Event::Rule if open == 0 => break,
                _ => {}
            }
            if let Some((event, _)) = self.events.next() {
                writer.event(event, &mut open);
            }
        }
        writer.lines
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
    )
}

/// Collects text with its styles.
struct Writer {
    lines: Text,
    styles: Vec<Style>,
    /// The addresses of open links and pictures, and the text of each so far.
    links: Vec<(String, String)>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>, open: &mut usize) {
        let style = self.styles.last().copied().unwrap_or_default();
        match event {
            Event::Start(tag) => {
                *open += 1;
                self.styles.push(match tag {
                    Tag::Emphasis => style.add_modifier(Modifier::ITALIC),
                    Tag::Strong => style.add_modifier(Modifier::BOLD),
                    Tag::Strikethrough => style.add_modifier(Modifier::CROSSED_OUT),
                    Tag::Link { dest_url, .. } => {
                        self.links.push((dest_url.into_string(), String::new()));
                        style.add_modifier(Modifier::UNDERLINED)
                    }
                    Tag::Image { dest_url, .. } => {
                        self.links.push((dest_url.into_string(), String::new()));
                        style.add_modifier(Modifier::ITALIC)
                    }
                    _ => style,
                });
            }
            Event::End(tag) => {
                *open = open.saturating_sub(1);
                self.styles.pop();
                if matches!(tag, TagEnd::Link | TagEnd::Image)
                    && let Some((address, text)) = self.links.pop()
                {
                    // The address is always shown: the text may name another one.
                    let bare = address.strip_prefix("mailto:").unwrap_or(&address);
                    if !address.is_empty() && bare != text {
                        let style = self.styles.last().copied().unwrap_or_default();
                        self.push(&format!(" ({address})"), style.add_modifier(Modifier::DIM));
                    }
                }
            }
            Event::Text(text) => {
                if let Some((_, shown)) = self.links.last_mut() {
                    shown.push_str(&text);
                }
                self.push(&text, style);
            }
            Event::Code(code) => {
                if let Some((_, shown)) = self.links.last_mut() {
                    shown.push_str(&code);
                }
                self.push(&code, style.fg(Color::Cyan));
            }
            Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text, style);
            }
            // People break lines where they want them.
            Event::SoftBreak | Event::HardBreak => self.lines.push(Vec::new()),
            Event::FootnoteReference(name) => self.push(&format!("[^{name}]"), style),
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }, style),
            Event::Rule => {}
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.lines.push(Vec::new());
            }
            if !line.is_empty()
                && let Some(last) = self.lines.last_mut()
            {
                last.push(Span::styled(printable(line).into_owned(), style));
            }
        }
    }
}
