//! What is shown of a message that was found: the part of it where most of what was asked for stands close together.

use std::ops::Range;

use rusqlite::Connection;
use serde::Serialize;

use super::plan::{Index, Plan};
use super::text::{Cut, Needle, words_and_cuts};

/// As the words index has it: what matches there must match here.
pub(crate) const TOKENIZER: &str = "porter unicode61 remove_diacritics 2";
/// Characters of a snippet, and of them before its first match.
const LENGTH: usize = 240;
const BEFORE: usize = 60;
/// Matches that are looked at for the best place.
const MOST_MATCHES: usize = 200;

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fragment {
    /// As it stands in the message; `…` where something was left out before or behind.
    pub text: String,
    /// Whether it is what was looked for.
    pub matched: bool,
}

/// The parts of texts that show why a plan found them, with marks.
pub(crate) fn snippets(plan: &Plan, texts: &[String]) -> rusqlite::Result<Vec<Vec<Fragment>>> {
    let mut expressions = Vec::new();
    let mut needles = Vec::new();
    for selection in &plan.selections {
        if let Index::Words(expression) = &selection.index {
            expressions.push(expression.as_str());
        }
        expressions.extend(selection.words.as_deref());
        needles.extend(&selection.holds);
    }
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let by_words = match expressions.is_empty() {
        true => vec![Vec::new(); texts.len()],
        false => by_words(&expressions.join(" OR "), texts)?,
    };
    let snippets = texts.iter().zip(by_words).map(|(text, mut ranges)| {
        ranges.extend(needles.iter().flat_map(|needle: &&Needle| needle.ranges(text)));
        cut_out(text, &merged(ranges))
    });
    Ok(snippets.collect())
}

const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// An index in memory of just these texts says where: what a stem matches is known to SQLite alone.
fn by_words(expression: &str, texts: &[String]) -> rusqlite::Result<Vec<Vec<Range<usize>>>> {
    let connection = Connection::open_in_memory()?;
    connection
        .execute_batch(&format!("BEGIN; CREATE VIRTUAL TABLE shown USING fts5 (words, tokenize = '{TOKENIZER}')"))?;
    let mut put = connection.prepare("INSERT INTO shown (rowid, words) VALUES (?1, ?2)")?;
    let mut cuts = Vec::with_capacity(texts.len());
    for (number, text) in (0_u32..).zip(texts) {
        // Neither mark is in it: control characters are blanks there.
        let (words, cuts_of_this) = words_and_cuts(text);
        put.execute((number, words))?;
        cuts.push(cuts_of_this);
    }
    let mut ranges = vec![Vec::new(); texts.len()];
    let mut find = connection.prepare("SELECT rowid, highlight(shown, 0, ?2, ?3) FROM shown WHERE shown MATCH ?1")?;
    let mut rows = find.query((expression, OPEN.to_string(), CLOSE.to_string()))?;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, u32>(0)? as usize;
        let marked: String = row.get(1)?;
        let (mut at, mut start) = (0, 0);
        for character in marked.chars() {
            match character {
                OPEN => start = at,
                CLOSE => ranges[number].extend(original(&cuts[number], start..at)),
                other => at += other.len_utf8(),
            }
        }
    }
    Ok(ranges)
}

/// Where a stretch of the cut text comes from.
fn original(cuts: &[Cut], range: Range<usize>) -> Option<Range<usize>> {
    let first = cuts.get(cuts.partition_point(|cut| cut.to.end <= range.start))?;
    let last = cuts.get(cuts.partition_point(|cut| cut.to.end < range.end))?;
    let is_copied = |cut: &Cut| cut.to.len() == cut.from.len();
    let start = first.from.start + if is_copied(first) { range.start.saturating_sub(first.to.start) } else { 0 };
    let end = if is_copied(last) { last.from.start + range.end.saturating_sub(last.to.start) } else { last.from.end };
    (start < end).then_some(start..end)
}

/// In order, with none that overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

fn cut_out(text: &str, matches: &[Range<usize>]) -> Vec<Fragment> {
    // A character has four bytes at most: enough to tell which matches stand close together.
    let close =
        |at: usize| matches[at..].iter().take_while(|other| other.end <= matches[at].start + LENGTH - BEFORE).count();
    let best = (0..matches.len().min(MOST_MATCHES)).max_by_key(|&at| (close(at), std::cmp::Reverse(at)));
    let focus = best.map_or(0, |at| matches[at].start);
    let start = text[..focus].char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let end = text[start..].char_indices().nth(LENGTH).map_or(text.len(), |(at, _)| start + at);

    let mut fragments = Vec::new();
    let mut push = |text: String, matched: bool| {
        if !text.is_empty() {
            fragments.push(Fragment { text, matched });
        }
    };
    let mut plain = if start > 0 { String::from("…") } else { String::new() };
    let mut at = start;
    for range in matches.iter().filter(|range| range.end > start && range.start < end) {
        let (from, until) = (range.start.max(start), range.end.min(end));
        plain.push_str(&text[at..from]);
        push(std::mem::take(&mut plain), false);
        push(text[from..until].to_owned(), true);
        at = until;
    }
    plain.push_str(&text[at..end]);
    if end < text.len() {
        plain.push('…');
    }
    push(plain, false);
    fragments
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::search::query::Query;

    fn marked(query: &str, text: &str) -> String {
        let plan = &Plan::all(&Query::parse(query))[0];
        let texts = ["another".to_owned(), text.to_owned()];
        let snippets = snippets(plan, &texts).unwrap();
        snippets[1].iter().map(|f| if f.matched { format!(">{}<", f.text) } else { f.text.clone() }).collect()
    }

    #[test]
    fn what_was_looked_for_is_marked_where_it_stands() {
        for (query, text, shown) in [
            ("deploy", "He deployed, she deploys.", "He >deployed<, she >deploys<."),
            ("contain*", "two containers", "two >containers<"),
            ("cafe", "un CAFÉ noir", "un >CAFÉ< noir"),
            ("\"exact phrase\"", "exact, an exact\nphrase", "exact, an >exact\nphrase<"),
            ("don't panic", "don't panic", ">don't< >panic<"),
            ("src/main.rs", "in src/main.rs:7", "in >src/main.rs<:7"),
            ("c++", "C, C++ and c++17", "C, >C++< and >c++<17"),
            ("内存泄漏", "用heaptrack定位内存泄漏,再看", "用heaptrack定位>内存泄漏<,再看"),
            ("heaptrack 漏", "heaptrack定位内存泄漏", ">heaptrack<定位内存泄>漏<"),
            ("内", "一内存", "一>内存<"),
            ("a", "\u{1}a\u{2}\0b a", "\u{1}>a<\u{2}\0b >a<"),
            ("🙂", "so 🙂!", "so >🙂<!"),
            ("nothing", "here", "here"),
        ] {
            assert_eq!(marked(query, text), shown, "{query}");
        }
    }

    #[test]
    fn the_part_with_the_most_matches_is_shown() {
        let far = "word ".repeat(100);
        let text = format!("needle {far}needle and thread {far}");
        let shown = marked("needle OR thread", &text);
        assert!(shown.starts_with("…") && shown.ends_with("…"), "{shown}");
        assert!(shown.contains(">needle< and >thread<"), "{shown}");
        assert!(shown.chars().count() <= LENGTH + 6, "{shown}");
    }
}
