//! The tags and marks of thinking.

use super::MOST_BLANKS;

/// Names of tags in angle brackets, also behind a name space: `<mm:think>`.
const NAMES: &[&str] = &["think", "thinking", "thought", "thoughts", "reasoning", "antthinking"];
/// Opening and closing tags in other brackets, in lower case.
const OTHERS: &[(&str, &str)] = &[
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel>thought", "<channel|>"),
];
/// The longest name with its name space.
const LONGEST_NAME: usize = 24;
/// The most bytes of attributes, and of the header of a passage.
const LONGEST_HEADER: usize = 200;

/// The most of a line that is looked at again.
const LINE: usize = 1 << 10;

/// A tag of thinking that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    opening: String,
    closing: String,
    /// White space and attributes may follow before its last bracket.
    is_angle: bool,
}

/// What is at the place where an opening tag may be, with its length.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Tag(Tag, usize),
    Closing(usize),
    Passage(Header, usize),
    /// More of the text will tell.
    Maybe,
    None,
}

/// A passage of the harmony format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    Text,
    Thinking,
    /// A call of a tool.
    Call,
}

/// The next mark in thinking: its place and length, or the length of what has none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    None(usize),
    Opening(usize, usize),
    Closing(usize, usize),
}

/// The end of a tag.
enum End {
    At(usize),
    Maybe,
    None,
}

/// Reads the tag at the beginning of a text. After thinking, a closing tag counts too.
pub(super) fn opening(text: &str, is_behind: bool) -> Opening {
    let lower = text[..text.floor_char_boundary(2 * LONGEST_HEADER + MOST_BLANKS)].to_ascii_lowercase();
    let mut maybe = lower.is_empty();
    for (opening, closing) in OTHERS {
        if lower.starts_with(opening) {
            let tag = Tag { opening: (*opening).to_owned(), closing: (*closing).to_owned(), is_angle: false };
            return Opening::Tag(tag, opening.len());
        }
        if is_behind && lower.starts_with(closing) {
            return Opening::Closing(closing.len());
        }
        maybe |= opening.starts_with(&lower) || is_behind && closing.starts_with(&lower);
    }
    let found = match passage(&lower) {
        Opening::None => angle(&lower, is_behind),
        passage => passage,
    };
    if found == Opening::None && maybe { Opening::Maybe } else { found }
}

/// A tag in angle brackets.
fn angle(lower: &str, is_behind: bool) -> Opening {
    let Some(inside) = lower.strip_prefix('<') else { return Opening::None };
    let closing = inside.strip_prefix('/').filter(|_| is_behind);
    let (inside, is_closing) = (closing.unwrap_or(inside), closing.is_some());
    let length = inside.find(|each: char| !each.is_ascii_alphanumeric() && !":_-".contains(each));
    let name = &inside[..length.unwrap_or(inside.len())];
    if name.len() > LONGEST_NAME {
        return Opening::None;
    }
    let last = name.rsplit(':').next().unwrap_or_default();
    if length.is_none() {
        let may_become = !name.contains(':') || NAMES.iter().any(|known| known.starts_with(last));
        return if may_become { Opening::Maybe } else { Opening::None };
    }
    if !NAMES.contains(&last) || name.matches(':').count() > 1 {
        return Opening::None;
    }
    let before = lower.len() - inside.len() + name.len();
    match end(&inside[name.len()..], !is_closing) {
        End::At(length) if is_closing => Opening::Closing(before + length),
        End::At(length) => {
            let tag = Tag { opening: format!("<{name}"), closing: format!("</{name}"), is_angle: true };
            Opening::Tag(tag, before + length)
        }
        End::Maybe => Opening::Maybe,
        End::None => Opening::None,
    }
}

/// The closing tag of thinking that a text in lower case begins with: its length.
pub(super) fn closing(lower: &str) -> Option<usize> {
    let other = OTHERS.iter().find(|(_, closing)| lower.starts_with(closing)).map(|(_, closing)| closing.len());
    other.or_else(|| match angle(lower, true) {
        Opening::Closing(length) => Some(length),
        _ => None,
    })
}

/// The end of a tag behind its name.
fn end(behind: &str, may_have_attributes: bool) -> End {
    let rest = behind.trim_start();
    let blanks = behind.len() - rest.len();
    if blanks > MOST_BLANKS {
        return End::None;
    }
    match rest.find(['<', '>']) {
        Some(0) if rest.starts_with('>') => End::At(blanks + 1),
        _ if rest.is_empty() => End::Maybe,
        _ if blanks == 0 || !may_have_attributes => End::None,
        Some(at) if rest[at..].starts_with('>') && at <= LONGEST_HEADER => {
            let is_attributes = rest[..at].contains('=') && !rest[..at].ends_with('/');
            if is_attributes { End::At(blanks + at + 1) } else { End::None }
        }
        None if rest.len() <= LONGEST_HEADER => End::Maybe,
        _ => End::None,
    }
}

/// The header of a passage, in lower case.
fn passage(lower: &str) -> Opening {
    const MARKS: [&str; 2] = ["<|start|>", "<|channel|>"];
    const MESSAGE: &str = "<|message|>";
    let Some(mark) = MARKS.iter().find(|mark| lower.starts_with(**mark)) else {
        let may_become = !lower.is_empty() && MARKS.iter().any(|mark| mark.starts_with(lower));
        return if may_become { Opening::Maybe } else { Opening::None };
    };
    let Some(length) = lower.find(MESSAGE).filter(|length| *length <= LONGEST_HEADER) else {
        let inside = &lower[mark.len()..];
        let is_header = inside.chars().next().is_none_or(|first| first.is_ascii_alphabetic()) && !inside.contains('\n');
        return if is_header && lower.len() <= LONGEST_HEADER { Opening::Maybe } else { Opening::None };
    };
    let header = &lower[..length];
    let word = |behind: &str| -> String { behind.chars().take_while(char::is_ascii_alphabetic).collect() };
    let length = length + MESSAGE.len();
    let channel = header.split_once("<|channel|>").map(|(_, behind)| word(behind));
    match channel.as_deref() {
        _ if header.contains('\n') => Opening::None,
        Some("") => Opening::None,
        Some(_) if header.contains(" to=") => Opening::Passage(Header::Call, length),
        Some("final") => Opening::Passage(Header::Text, length),
        Some(_) => Opening::Passage(Header::Thinking, length),
        None if word(&header[mark.len()..]) == "assistant" => Opening::Passage(Header::Text, length),
        None => Opening::None,
    }
}

/// The end of a passage in the harmony format, the length of the mark there, and whether the passage has ended. A mark counts
/// only if another passage or nothing follows it.
pub(super) fn end_of_passage(text: &str, ended: bool) -> (usize, usize, bool) {
    const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];
    let mut from = 0;
    while let Some(at) = text[from..].find('<').map(|at| at + from) {
        let rest = &text[at..];
        let head = rest[..rest.floor_char_boundary(2 * LONGEST_HEADER)].to_ascii_lowercase();
        let mark = ENDS.iter().find(|mark| head.starts_with(**mark));
        let behind = mark.map_or(rest, |mark| rest[mark.len()..].trim_start());
        let skipped = rest.len() - behind.len();
        let next = behind[..behind.floor_char_boundary(2 * LONGEST_HEADER)].to_ascii_lowercase();
        match passage(&next) {
            _ if skipped > MOST_BLANKS => {}
            Opening::Passage(..) => return (at, skipped, true),
            Opening::Maybe if !ended => return (at, 0, false),
            _ if mark.is_some() && behind.is_empty() => return (at, skipped, ended),
            _ if !ended && mark.is_none() && ENDS.iter().any(|end| end.starts_with(&head)) => return (at, 0, false),
            _ => {}
        }
        from = at + 1;
    }
    (text.len(), 0, false)
}

/// Whether the backticks of the last line are pairs, so that its last one begins no quotation.
fn is_paired(before: &str, text: &str) -> bool {
    let of_line = |text: &str| text.rsplit('\n').next().unwrap_or_default().matches('`').count();
    let earlier = if text.contains('\n') {
        0
    } else {
        of_line(&before[before.ceil_char_boundary(before.len().saturating_sub(LINE))..])
    };
    (earlier + of_line(text)).is_multiple_of(2)
}

impl Tag {
    /// The next tag of this kind in a text behind another one. `ended` if nothing follows the text.
    pub(super) fn next(&self, text: &str, before: &str, ended: bool) -> Mark {
        let lower = text.to_ascii_lowercase();
        let Some(bracket) = self.closing.chars().next() else { return Mark::None(text.len()) };
        let brackets = [bracket, self.opening.chars().next().unwrap_or(bracket)];
        let mut from = 0;
        while let Some(at) = lower[from..].find(brackets).map(|at| at + from) {
            from = at + lower[at..].chars().next().map_or(1, char::len_utf8);
            let (length, is_closing) = match (self.at(&lower[at..], true), self.at(&lower[at..], false)) {
                (End::At(length), _) => (length, true),
                (_, End::At(length)) => (length, false),
                (End::Maybe, _) | (_, End::Maybe) if !ended => return Mark::None(at),
                _ => continue,
            };
            let last = text[..at].chars().next_back().or_else(|| before.chars().next_back());
            let next = text[at + length..].chars().next();
            let is_quote = last.is_some_and(|last| "`\"'".contains(last));
            if next.is_none() && !ended && (is_quote || !is_closing) {
                return Mark::None(at);
            }
            if is_quote && next == last && !(last == Some('`') && is_paired(before, &text[..at])) {
                continue;
            }
            if is_closing {
                return Mark::Closing(at, length);
            }
            // Amid a sentence, a tag is only named.
            let begins_line = last.is_none_or(|last| last == '\n' || last == '>');
            if begins_line || next.is_some_and(|next| next.is_alphanumeric() || "\n<".contains(next)) {
                return Mark::Opening(at, length);
            }
        }
        Mark::None(text.len())
    }

    /// Whether a text in lower case begins with the closing or the opening tag.
    fn at(&self, lower: &str, is_closing: bool) -> End {
        let word = if is_closing { &self.closing } else { &self.opening };
        match lower.strip_prefix(word.as_str()) {
            Some(_) if !self.is_angle => End::At(word.len()),
            Some(behind) => match end(behind, !is_closing) {
                End::At(length) => End::At(word.len() + length),
                other => other,
            },
            None if word.starts_with(lower) => End::Maybe,
            None => End::None,
        }
    }
}
