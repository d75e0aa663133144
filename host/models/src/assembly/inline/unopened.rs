//! Thinking whose opening tag was in the prompt. Only a closing tag is left, and a text about tags can contain one too. So it
//! counts only where templates put it: once, after a sentence or on a line of its own, and not in code.

use super::tag::{self, Opening};

/// Most tags that are looked at.
const MOST_TAGS: usize = 64;
/// The longest span of code.
const LONGEST_SPAN: usize = 8 << 10;
/// Before the answer in the harmony format.
const FINAL: &str = "<|channel|>final<|message|>";

/// Separates thinking whose opening tag was in the prompt: the thinking, and the text behind its closing tag.
pub(in crate::assembly) fn unopened(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    if let Some((before, behind)) = passages(text, &lower) {
        return Some((before, behind));
    }
    let brackets = lower.match_indices(['<', '[', '◁']).map(|(at, _)| at);
    let is_opening = |at: usize| matches!(tag::opening(&text[at..], false), Opening::Tag(..));
    let tags = brackets.filter_map(|at| match tag::closing(&lower[at..]) {
        Some(length) => Some((at, Some(length))),
        None => is_opening(at).then_some((at, None)),
    });
    let tags: Vec<(usize, Option<usize>)> = tags.take(MOST_TAGS).collect();
    // A text that names several tags is about tags.
    let mut outside = tags.iter().filter(|(at, _)| !is_code(text, *at));
    let (Some((at, Some(length))), None, true) = (outside.next(), outside.next(), tags.len() < MOST_TAGS) else {
        return None;
    };
    let (before, behind) = (&text[..*at], &text[at + length..]);
    is_apart(before, behind).then(|| (before.trim(), behind.trim_start()))
}

/// The same for a reply whose first passage has no header.
fn passages<'a>(text: &'a str, lower: &str) -> Option<(&'a str, &'a str)> {
    let at = lower.find(FINAL).filter(|at| !is_code(text, *at))?;
    // A text that only names the mark has none of those before it.
    let before = text[..at].strip_suffix("<|start|>assistant")?.trim_end().trim_end_matches("<|end|>");
    let behind = text[at + FINAL.len()..].trim();
    let behind = ["<|return|>", "<|end|>"].iter().find_map(|end| behind.strip_suffix(end)).unwrap_or(behind);
    Some((before.trim(), behind))
}

/// Whether a place is in a block or a span of code.
fn is_code(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.starts_with("    ") || line.starts_with('\t') {
        return true;
    }
    let mut fence: Option<(char, usize)> = None;
    // Where the paragraph begins: spans of code do not go beyond.
    let (mut paragraph, mut offset) = (0, 0);
    for line in before.split_inclusive('\n') {
        offset += line.len();
        let trimmed = line.trim();
        let mark = trimmed.chars().next().filter(|mark| "`~".contains(*mark));
        let length = trimmed.chars().take_while(|each| Some(*each) == mark).count();
        match (fence, mark) {
            (None, Some(mark)) if length >= 3 && !(mark == '`' && trimmed[length..].contains('`')) => {
                fence = Some((mark, length));
                paragraph = offset;
            }
            (Some((open, least)), Some(mark)) if mark == open && length >= least && trimmed.len() == length => {
                fence = None;
                paragraph = offset;
            }
            _ if trimmed.is_empty() => paragraph = offset,
            _ => {}
        }
    }
    let start = text.ceil_char_boundary(paragraph.min(at).max(at.saturating_sub(LONGEST_SPAN)));
    let end = text.floor_char_boundary(at + LONGEST_SPAN);
    fence.is_some() || is_span(&text[start..end], at - start)
}

/// Whether a place of a paragraph, and of what follows it, is in a span of code.
fn is_span(text: &str, at: usize) -> bool {
    let end = text.find("\n\n").unwrap_or(text.len());
    let paragraph = &text[..end.max(at)];
    let run = |from: usize| {
        let start = from + paragraph[from..].find('`')?;
        Some((start, paragraph[start..].bytes().take_while(|byte| *byte == b'`').count()))
    };
    let mut from = 0;
    while let Some((start, length)) = run(from).filter(|(start, _)| *start < at) {
        let mut next = start + length;
        let closed = loop {
            match run(next) {
                Some((close, other)) if other == length => break Some(close),
                Some((close, other)) => next = close + other,
                None => break None,
            }
        };
        match closed {
            Some(close) if close > at => return true,
            Some(close) => from = close + length,
            None => from = start + length,
        }
    }
    false
}

/// Whether a tag between these texts ends the thinking. A tag in a sentence, a quotation or an example does not.
fn is_apart(before: &str, behind: &str) -> bool {
    const BLANK: [char; 2] = [' ', '\t'];
    let said = before.trim_end_matches(BLANK);
    let is_spaced = said.len() < before.len();
    let (last, next) = (said.chars().next_back(), behind.chars().next());
    let begins_line = last.is_none_or(|last| last == '\n');
    let rest = behind.trim_start_matches(BLANK);
    let ends_line = rest.chars().next().is_none_or(|next| matches!(next, '\n' | '\r'));
    let ends_sentence = last.is_some_and(|last| ".!?…。！？".contains(last));
    let is_glued = next.is_some_and(|next| next.is_alphanumeric() || "#*".contains(next) && last != Some(next))
        && !last.is_some_and(|last| "([{<“‘«„`'\"".contains(last));
    // A sentence that announces the tag, or goes on behind it.
    let is_announced = said.trim_end().ends_with([':', ',', '：', '，']);
    let follows_gap = rest.replace('\r', "").starts_with("\n\n");
    let goes_on = !follows_gap
        && behind.trim_start().starts_with(|first: char| first.is_lowercase() || ",.;:!?)".contains(first));
    !is_announced && !goes_on && (begins_line || ends_line && (!is_spaced || ends_sentence) || is_glued && !is_spaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_tag_alone_separates_unless_the_text_is_about_it() {
        for (text, expected) in [
            ("hm\n</think>\n\nAnswer.", Some(("hm", "Answer."))),
            ("hm\n</think>\n\nanswer.", Some(("hm", "answer."))),
            ("hm.</think>Answer", Some(("hm.", "Answer"))),
            ("hm. </think>\n\nAnswer", Some(("hm.", "Answer"))),
            ("</think>\n\nAnswer", Some(("", "Answer"))),
            ("hm\n</think>", Some(("hm", ""))),
            ("hm</think >\n答案", Some(("hm", "答案"))),
            ("a\n</think>\nB `</think>`", Some(("a", "B `</think>`"))),
            ("so\n[/THINK]\nAnswer", Some(("so", "Answer"))),
            ("```\nx\n```\nhm\n</think>\nSo", Some(("```\nx\n```\nhm", "So"))),
            ("Okay.</think>**So**", Some(("Okay.", "**So**"))),
            ("hm<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>", Some(("hm", "So."))),
            ("Write `</think>` there", None),
            ("Write ``</think>``", None),
            ("Write `a\n</think>\nb` there", None),
            ("Write `\n</think>\n` there", None),
            ("The word </think> closes it", None),
            ("It ends with \"</think>\".", None),
            ("It ends with:\n</think>\n\nThen it goes on.", None),
            ("It ends with\n</think>\nand goes on.", None),
            ("one</think>two", None),
            ("<think> opens and\n</think>\ncloses", None),
            ("It opens.\n</think>\n\nAnd again:\n</think>", None),
            ("It closes.\n</think>\n\nAnd <think> opens.", None),
            ("```\nhm\n</think>\n```\n", None),
            ("~~~xml\nhm\n</think>\n~~~\n", None),
            ("````\n```\nhm\n</think>\n````\n", None),
            ("    </think>\n", None),
            ("The closing tag is </think>", None),
            ("**</think>** is bold", None),
            ("The mark <|channel|>final<|message|> begins it", None),
            ("none", None),
        ] {
            assert_eq!(unopened(text), expected, "{text:?}");
        }
    }
}
