//! Snippets: the part of a found message with the most matches close together.

use std::ops::Range;

use hermes_session_store::Fragment;
use rusqlite::Connection;

use super::plan::Plan;
use super::text::{Cut, Needle, words_and_cuts};

/// The tokenizer of the words index, so that the same texts match.
pub(crate) const TOKENIZER: &str = "porter unicode61 remove_diacritics 2";
/// The size of a snippet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Characters of the snippet.
    length: usize,
    /// Characters before the first match.
    before: usize,
}

/// A line in a list.
pub(crate) const SNIPPET: Extent = Extent { length: 240, before: 60 };
/// A passage that can be understood on its own.
pub(crate) const EXCERPT: Extent = Extent { length: 600, before: 150 };
/// A long text is searched in parts of this many bytes until a match is found. Adjacent parts overlap.
const PART: usize = 16 << 10;
const OVERLAP: usize = 256;
/// The most matches that are considered for the best position.
const MAX_MATCHES: usize = 200;

/// The snippets of texts, with marked matches of a plan.
pub(crate) fn snippets(plan: &Plan, texts: &[String], extent: Extent) -> rusqlite::Result<Vec<Vec<Fragment>>> {
    let needles: Vec<&Needle> = plan.selections.iter().flat_map(|selection| &selection.holds).collect();
    let words = Words::new(&plan.phrases)?;
    let mut snippets = vec![Vec::new(); texts.len()];
    // Texts without a match so far, and the position at which to continue.
    let mut open: Vec<(usize, usize)> = (0..texts.len()).map(|number| (number, 0)).collect();
    while !open.is_empty() {
        let parts: Vec<&str> = open.iter().map(|&(number, start)| part(&texts[number], start)).collect();
        let found = words.ranges(&parts)?;
        let mut still_open = Vec::new();
        for ((&(number, start), part), mut ranges) in open.iter().zip(&parts).zip(found) {
            let text = &texts[number];
            ranges.extend(needles.iter().flat_map(|needle| needle.ranges(part)));
            let end = start + part.len();
            if ranges.is_empty() && end < text.len() {
                // The overlap contains every match across the border.
                still_open.push((number, text.floor_char_boundary(end - OVERLAP)));
            } else {
                let ranges = ranges.into_iter().map(|range| range.start + start..range.end + start).collect();
                snippets[number] = cut_out(text, &merged(ranges), extent);
            }
        }
        open = still_open;
    }
    Ok(snippets)
}

fn part(text: &str, start: usize) -> &str {
    let end = text.floor_char_boundary((start + PART).min(text.len()));
    &text[start..end]
}

const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// A temporary index of the shown texts, because only SQLite knows what a stem matches.
struct Words {
    /// `None` if the query has no words.
    index: Option<(Connection, String)>,
}

impl Words {
    fn new(phrases: &[String]) -> rusqlite::Result<Self> {
        if phrases.is_empty() {
            return Ok(Self { index: None });
        }
        let connection = Connection::open_in_memory()?;
        connection
            .execute_batch(&format!("CREATE VIRTUAL TABLE shown USING fts5 (words, tokenize = '{TOKENIZER}')"))?;
        Ok(Self { index: Some((connection, phrases.join(" OR "))) })
    }

    /// The positions of the phrases in each of the texts.
    fn ranges(&self, texts: &[&str]) -> rusqlite::Result<Vec<Vec<Range<usize>>>> {
        let mut ranges = vec![Vec::new(); texts.len()];
        let Some((connection, expression)) = &self.index else { return Ok(ranges) };
        // Rolled back when dropped, so the next texts find it empty.
        let transaction = connection.unchecked_transaction()?;
        let mut put = transaction.prepare_cached("INSERT INTO shown (rowid, words) VALUES (?1, ?2)")?;
        let mut cuts = Vec::with_capacity(texts.len());
        for (number, text) in (0_u32..).zip(texts) {
            // The texts contain no marks, because their control characters were replaced by blanks.
            let (words, cuts_of_this) = words_and_cuts(text);
            put.execute((number, words))?;
            cuts.push(cuts_of_this);
        }
        let mut find =
            transaction.prepare_cached("SELECT rowid, highlight(shown, 0, ?2, ?3) FROM shown WHERE shown MATCH ?1")?;
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
}

/// Maps a range of the indexed text to the original text.
fn original(cuts: &[Cut], range: Range<usize>) -> Option<Range<usize>> {
    let first = cuts.get(cuts.partition_point(|cut| cut.to.end <= range.start))?;
    let last = cuts.get(cuts.partition_point(|cut| cut.to.end < range.end))?;
    let is_copied = |cut: &Cut| cut.to.len() == cut.from.len();
    let start = first.from.start + if is_copied(first) { range.start.saturating_sub(first.to.start) } else { 0 };
    let end = if is_copied(last) { last.from.start + range.end.saturating_sub(last.to.start) } else { last.from.end };
    (start < end).then_some(start..end)
}

/// Sorts ranges and merges overlapping ones.
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

fn cut_out(text: &str, matches: &[Range<usize>], extent: Extent) -> Vec<Fragment> {
    let Extent { length, before } = extent;
    // A character has at most four bytes, so byte distances suffice to find matches close together.
    let close =
        |at: usize| matches[at..].iter().take_while(|other| other.end <= matches[at].start + length - before).count();
    let best = (0..matches.len().min(MAX_MATCHES)).max_by_key(|&at| (close(at), std::cmp::Reverse(at)));
    let focus = best.map_or(0, |at| matches[at].start);
    let start = text[..focus].char_indices().rev().nth(before - 1).map_or(0, |(at, _)| at);
    let end = text[start..].char_indices().nth(length).map_or(text.len(), |(at, _)| start + at);

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
        let snippets = snippets(plan, &texts, SNIPPET).unwrap();
        snippets[1].iter().map(|f| if f.matched { format!(">{}<", f.text) } else { f.text.clone() }).collect()
    }

    #[test]
    fn matches_are_marked() {
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
    fn a_match_anywhere_in_a_long_text_is_shown() {
        for at in [0, PART - 7, PART - 3, PART, 2 * PART - OVERLAP, 10 * PART] {
            let text = format!("{} exact phrase C++ {}", "é".repeat(at / 2), "word ".repeat(PART));
            assert!(marked("\"exact phrase\"", &text).contains(">exact phrase<"), "{at}");
            assert!(marked("C++", &text).contains(">C++<"), "{at}");
        }
        let far = format!("docker {} network", "x ".repeat(PART));
        assert!(marked("network docker", &far).starts_with(">docker< x"));
    }

    #[test]
    fn the_part_with_the_most_matches_is_shown() {
        let far = "word ".repeat(100);
        let text = format!("needle {far}needle and thread {far}");
        let shown = marked("needle OR thread", &text);
        assert!(shown.starts_with("…") && shown.ends_with("…"), "{shown}");
        assert!(shown.contains(">needle< and >thread<"), "{shown}");
        assert!(shown.chars().count() <= SNIPPET.length + 6, "{shown}");
    }
}
