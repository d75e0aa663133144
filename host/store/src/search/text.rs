//! Which text of a message is searched, and how it is cut into words. Pure; [`register`] provides it to SQL.
//!
//! Chinese, Japanese and Korean put no blanks where words end. A run of their characters is indexed as all its pairs
//! and its last character: `错误处理` as `错误 误处 处理 理`. So two characters are a word of the index, longer runs
//! are phrases, and one character is the beginning of a word.

use std::borrow::Cow;
use std::ops::Range;

use hermes_conversation::ToolCall;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use serde_json::Value;

/// Bytes of a message that are searched. While more were cut up, all writers would wait for more than a tenth of a second.
pub(crate) const LONGEST: usize = 256 << 10;

/// Makes the functions that the schema and the searches call known to a connection.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("search_text", 3, flags, |context| {
        let (content, name, calls) = (argument(context, 0)?, argument(context, 1)?, argument(context, 2)?);
        Ok(searchable(&content.unwrap_or_default(), name.as_deref(), calls.as_deref(), LONGEST).into_owned())
    })?;
    // With what the indexes do not have of long messages.
    connection.create_scalar_function("search_whole", 3, flags, |context| {
        let (content, name, calls) = (argument(context, 0)?, argument(context, 1)?, argument(context, 2)?);
        Ok(searchable(&content.unwrap_or_default(), name.as_deref(), calls.as_deref(), usize::MAX).into_owned())
    })?;
    connection.create_scalar_function("search_words", 1, flags, |context| {
        Ok(words(&argument(context, 0)?.unwrap_or_default()))
    })?;
    connection.create_scalar_function("search_grams", 1, flags, |context| {
        Ok(grams(&argument(context, 0)?.unwrap_or_default()))
    })?;
    connection.create_scalar_function("search_holds", 3, flags, |context| {
        let text = argument(context, 0)?.unwrap_or_default();
        let needle =
            Needle { folded: argument(context, 1)?.unwrap_or_default().into_owned(), at_word: context.get(2)? };
        Ok(needle.is_in(&text))
    })
}

/// Text written by other programs may end in the middle of a character.
fn argument<'a>(context: &'a Context<'_>, number: usize) -> rusqlite::Result<Option<Cow<'a, str>>> {
    Ok(context.get_raw(number).as_bytes_or_null()?.map(String::from_utf8_lossy))
}

/// What is searched of a message: what was said, the tool that answered, and which tools were called with what; at most
/// so many bytes of it.
pub(crate) fn searchable<'a>(
    content: &'a str,
    tool_name: Option<&str>,
    tool_calls: Option<&str>,
    most: usize,
) -> Cow<'a, str> {
    let content = beginning(content, most);
    if tool_name.is_none() && tool_calls.is_none() {
        return Cow::Borrowed(content);
    }
    let mut text = content.to_owned();
    let mut line = |part: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
    };
    tool_name.into_iter().for_each(&mut line);
    if let Some(json) = tool_calls {
        match serde_json::from_str::<Vec<ToolCall>>(json) {
            Ok(calls) => calls.iter().for_each(|call| line(&called(call))),
            Err(_) => line(json),
        }
    }
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
    Cow::Owned(text)
}

/// A tool's name and the values that it was given, as a person would write them.
fn called(call: &ToolCall) -> String {
    let mut text = call.name.clone();
    match serde_json::from_str(&call.arguments) {
        Ok(arguments) => values(&arguments, &mut text),
        // Cut off, or not JSON at all: as the model wrote it.
        Err(_) => {
            text.push(' ');
            text.push_str(&call.arguments);
        }
    }
    text
}

fn values(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            text.push(' ');
            text.push_str(&number.to_string());
        }
        Value::String(string) => {
            text.push(' ');
            text.push_str(string);
        }
        // No deeper than the parser goes.
        Value::Array(values_) => values_.iter().for_each(|value| values(value, text)),
        Value::Object(fields) => fields.values().for_each(|value| values(value, text)),
    }
}

/// At most so many bytes, whole characters.
fn beginning(text: &str, most: usize) -> &str {
    if text.len() > most { &text[..text.floor_char_boundary(most)] } else { text }
}

/// Whether a character belongs to a script that is written without blanks between words.
pub(crate) fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// A stretch of cut text and where it was taken from. Both are of one length, or it is one word of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) to: Range<usize>,
    pub(crate) from: Range<usize>,
}

/// A text as the words index takes it.
pub(crate) fn words(text: &str) -> String {
    let mut cut = String::with_capacity(text.len() + text.len() / 8);
    cut_up(text, true, &mut cut, |_| {});
    cut
}

/// As [`words`], with the way back.
pub(crate) fn words_and_cuts(text: &str) -> (String, Vec<Cut>) {
    let (mut cut, mut cuts) = (String::with_capacity(text.len()), Vec::new());
    cut_up(text, true, &mut cut, |piece| cuts.push(piece));
    (cut, cuts)
}

/// Words that are looked for next to each other, and whether the last one is only the beginning of a word: a run may
/// go on behind what was asked for.
pub(crate) fn phrase(text: &str) -> (String, bool) {
    let text = text.trim_end_matches(|character: char| !is_word(character));
    let mut cut = String::new();
    cut_up(text, false, &mut cut, |_| {});
    let mut last = text.chars().rev();
    let ends_unspaced = last.next().is_some_and(is_unspaced);
    (cut, ends_unspaced && !last.next().is_some_and(is_unspaced))
}

/// `last` says whether the character that ends the last run stands for itself too.
fn cut_up(text: &str, last: bool, cut: &mut String, mut tell: impl FnMut(Cut)) {
    let mut rest = 0;
    while rest < text.len() {
        let run = text[rest..].find(is_unspaced).map_or(text.len(), |at| rest + at);
        if run > rest {
            let to = cut.len();
            // Some parts of SQLite take a NUL for the end; the marks of matches must not be in a text already.
            cut.extend(text[rest..run].chars().map(|c| if c.is_ascii_control() { ' ' } else { c }));
            tell(Cut { to: to..cut.len(), from: rest..run });
        }
        let end = text[run..].find(|c| !is_unspaced(c)).map_or(text.len(), |at| run + at);
        let mut characters = text[run..end].char_indices().map(|(at, character)| (run + at, character)).peekable();
        let alone = end - run == text[run..].chars().next().map_or(0, char::len_utf8);
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().copied();
            if next.is_none() && !last && end == text.len() && !alone {
                break;
            }
            cut.push(' ');
            let to = cut.len();
            cut.push(character);
            let mut until = at + character.len_utf8();
            if let Some((_, second)) = next {
                cut.push(second);
                until += second.len_utf8();
            }
            tell(Cut { to: to..cut.len(), from: at..until });
        }
        if end > run {
            cut.push(' ');
        }
        rest = end;
    }
}

/// A text as the trigram index takes it: without what the words index finds in any part, which would fill it with
/// trigrams that hardly any other message has. One or two characters at the end begin a trigram like all others.
///
/// Folded here as what is looked for is: the index takes its characters as they are.
pub(crate) fn grams(text: &str) -> String {
    let mut grams = String::with_capacity(text.len() + 2);
    for part in text.split(is_unspaced).filter(|part| !part.is_empty()) {
        grams.extend(part.chars().map(fold));
        grams.push('\n');
    }
    grams.push('\n');
    grams
}

/// Whether a character is part of a word: a letter, a digit, or a mark on one; no punctuation, symbol or emoji.
pub(crate) fn is_word(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    character.is_alphanumeric()
        || is_unspaced(character)
        || !(character.is_whitespace()
            || character.is_control()
            || matches!(character,
                '\u{a1}'..='\u{bf}' | '\u{d7}' | '\u{f7}'
                | '\u{200b}'..='\u{206f}' | '\u{2010}'..='\u{2bff}' | '\u{2e00}'..='\u{2e7f}'
                | '\u{3001}'..='\u{303f}' | '\u{3099}'..='\u{30ff}'
                | '\u{fe00}'..='\u{fe1f}' | '\u{fe30}'..='\u{fe6f}' | '\u{feff}' | '\u{ff01}'..='\u{ff65}' | '\u{ffe0}'..='\u{ffff}'
                | '\u{1f000}'..='\u{1faff}' | '\u{e0000}'..))
}

/// Upper and lower case are one.
fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

/// And so are the apostrophes of a keyboard and of a printer, and the forms of a sigma. One character becomes one: of those
/// that have a dot above besides in lower case, the dot is left out.
fn fold(character: char) -> char {
    match character {
        '’' => '\'',
        'ς' => 'σ',
        _ => character.to_lowercase().next().unwrap_or(character),
    }
}

/// What a text must hold as it is written, but for case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needle {
    pub(crate) folded: String,
    /// Only where a word begins.
    pub(crate) at_word: bool,
}

impl Needle {
    pub(crate) fn new(text: &str, at_word: bool) -> Self {
        Self { folded: folded(text), at_word }
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        let text = folded(text);
        self.starts(&text).next().is_some()
    }

    /// Where it stands in a text; what is only the beginning of a word stands for the whole word.
    pub(crate) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut lower = String::with_capacity(text.len());
        // For each byte of the lower text, the byte of the character that it was made of.
        let mut origin = Vec::with_capacity(text.len() + 1);
        for (at, character) in text.char_indices() {
            lower.push(fold(character));
            origin.resize(lower.len(), at);
        }
        origin.push(text.len());
        let starts = self.starts(&lower);
        let ranges = starts.map(|start| {
            let end = match self.at_word {
                true => lower[start..].find(|c| !is_word(c)).map_or(lower.len(), |at| start + at),
                false => start + self.folded.len(),
            }
            .max(start + self.folded.len());
            origin[start]..text.ceil_char_boundary(origin[end - 1] + 1)
        });
        ranges.collect()
    }

    fn starts<'a>(&'a self, lower: &'a str) -> impl Iterator<Item = usize> + 'a {
        let found = lower.match_indices(self.folded.as_str()).filter(|_| !self.folded.is_empty());
        found
            .map(|(at, _)| at)
            .filter(move |&at| !self.at_word || !lower[..at].chars().next_back().is_some_and(is_word))
    }
}
