//! The searched text of a message, and its division into words. The rules are pure functions; [`register`] provides them
//! to SQL.
//!
//! Chinese, Japanese and Korean have no blanks between words. A run of their characters is indexed as all its pairs and
//! its last character: `错误处理` as `错误 误处 处理 理`. So two characters form a word of the index, a longer run is a
//! phrase, and one character is a prefix.

use std::borrow::Cow;
use std::ops::Range;

use hermes_conversation::ToolCall;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use serde_json::Value;

/// The most bytes of a message that are indexed. More would block all writers for more than a tenth of a second.
pub(crate) const MAX_BYTES: usize = 256 << 10;

/// Registers the functions that the schema and the searches call.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("search_text", 3, flags, |context| {
        let (content, name, calls) = (argument(context, 0)?, argument(context, 1)?, argument(context, 2)?);
        Ok(searchable(&content.unwrap_or_default(), name.as_deref(), calls.as_deref(), MAX_BYTES).into_owned())
    })?;
    // The whole text, including the part of long messages that is not indexed.
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

/// Reads a text argument. Texts of other programs may end within a character.
fn argument<'a>(context: &'a Context<'_>, number: usize) -> rusqlite::Result<Option<Cow<'a, str>>> {
    Ok(context.get_raw(number).as_bytes_or_null()?.map(String::from_utf8_lossy))
}

/// The searched text of a message: its content, the tool that answered, and the calls with their arguments. At most
/// `most` bytes.
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

/// A tool's name and the values of its arguments, without JSON syntax.
fn called(call: &ToolCall) -> String {
    let mut text = call.name.clone();
    match serde_json::from_str(&call.arguments) {
        Ok(arguments) => values(&arguments, &mut text),
        // Invalid JSON is indexed as it is.
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
        // The parser limits the depth.
        Value::Array(values_) => values_.iter().for_each(|value| values(value, text)),
        Value::Object(fields) => fields.values().for_each(|value| values(value, text)),
    }
}

/// The longest prefix of whole characters with at most `most` bytes.
fn beginning(text: &str, most: usize) -> &str {
    if text.len() > most { &text[..text.floor_char_boundary(most)] } else { text }
}

/// Whether a character belongs to a script without blanks between words.
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

/// A range of the indexed text and its range in the original text. Both have the same length, or the range is one word of
/// the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) to: Range<usize>,
    pub(crate) from: Range<usize>,
}

/// A text in the form of the words index.
pub(crate) fn words(text: &str) -> String {
    let mut cut = String::with_capacity(text.len() + text.len() / 8);
    cut_up(text, true, &mut cut, |_| {});
    cut
}

/// Like [`words`], with the mapping to the original text.
pub(crate) fn words_and_cuts(text: &str) -> (String, Vec<Cut>) {
    let (mut cut, mut cuts) = (String::with_capacity(text.len()), Vec::new());
    cut_up(text, true, &mut cut, |piece| cuts.push(piece));
    (cut, cuts)
}

/// The words of a phrase, and whether the last word is only a prefix: in a message the run may continue after it.
pub(crate) fn phrase(text: &str) -> (String, bool) {
    let text = text.trim_end_matches(|character: char| !is_word(character));
    let mut cut = String::new();
    cut_up(text, false, &mut cut, |_| {});
    let mut last = text.chars().rev();
    let ends_unspaced = last.next().is_some_and(is_unspaced);
    (cut, ends_unspaced && !last.next().is_some_and(is_unspaced))
}

/// Divides a text into words. `last` tells whether the last character of the last run becomes a word too.
fn cut_up(text: &str, last: bool, cut: &mut String, mut record: impl FnMut(Cut)) {
    let mut rest = 0;
    while rest < text.len() {
        let run = text[rest..].find(is_unspaced).map_or(text.len(), |at| rest + at);
        if run > rest {
            let to = cut.len();
            // Some parts of SQLite end a text at a NUL, and the text must not contain the marks of matches.
            cut.extend(text[rest..run].chars().map(|c| if c.is_ascii_control() { ' ' } else { c }));
            record(Cut { to: to..cut.len(), from: rest..run });
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
            record(Cut { to: to..cut.len(), from: at..until });
        }
        if end > run {
            cut.push(' ');
        }
        rest = end;
    }
}

/// A text in the form of the trigram index: without runs of unspaced scripts, which the words index finds in any part and
/// which would fill the index with rare trigrams. One or two characters at the end form the beginning of a trigram.
///
/// The text is folded like the search text, because the index does not fold it.
pub(crate) fn grams(text: &str) -> String {
    let mut grams = String::with_capacity(text.len() + 2);
    for part in text.split(is_unspaced).filter(|part| !part.is_empty()) {
        grams.extend(part.chars().map(fold));
        grams.push('\n');
    }
    grams.push('\n');
    grams
}

/// Whether a character is part of a word: a letter, a digit, or a combining mark; not punctuation, a symbol or an emoji.
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

/// Folds upper to lower case.
fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

/// Folds case, typographic apostrophes, and the forms of sigma. Each character becomes exactly one: if the lower case has
/// an additional dot above, the dot is dropped.
fn fold(character: char) -> char {
    match character {
        '’' => '\'',
        'ς' => 'σ',
        _ => character.to_lowercase().next().unwrap_or(character),
    }
}

/// A text that must occur, ignoring case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needle {
    pub(crate) folded: String,
    /// Whether it must begin a word.
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

    /// The ranges of its occurrences. A prefix is extended to the whole word.
    pub(crate) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut lower = String::with_capacity(text.len());
        // For each byte of the folded text, the position of its character in the original text.
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
