//! `old_string` and `new_string`: the parts of a file that are replaced.

use std::borrow::Cow;
use std::ops::Range;

use hermes_plugin::Error;

use super::assumed::{Assumed, places};
use super::matching::{self, Folded, Found};
use crate::text::{Edit, Line, Text, end_at, has_lone_returns, lines, with_feeds};

/// A file's text with `\n` as its line end, and where it comes from.
struct View<'t> {
    file: &'t str,
    all: Vec<Line<'t>>,
    /// Without the carriage returns that belong to a line end.
    plain: Cow<'t, str>,
    /// The places of the removed carriage returns, in bytes of `plain`.
    left_out: Vec<usize>,
}

impl<'t> View<'t> {
    fn new(file: &'t str) -> Self {
        let all = lines(file);
        if !file.contains('\r') {
            return Self { file, all, plain: Cow::Borrowed(file), left_out: Vec::new() };
        }
        let (mut plain, mut left_out) = (String::with_capacity(file.len()), Vec::new());
        for line in &all {
            plain.push_str(line.text);
            if let Some(returns) = line.end.strip_suffix('\n') {
                left_out.extend(returns.bytes().map(|_| plain.len()));
            }
            // A lone carriage return is replaced by a line feed of the same length, so the places stay.
            plain.push_str(if line.end.is_empty() { "" } else { "\n" });
        }
        Self { file, all, plain: Cow::Owned(plain), left_out }
    }

    /// The same part in the file.
    fn in_file(&self, part: &Range<usize>) -> Range<usize> {
        // A part that begins at a line end begins before its carriage return, and one that ends there ends before it.
        let moved = |at: usize| at + self.left_out.partition_point(|left_out| *left_out < at);
        moved(part.start)..moved(part.end)
    }

    /// The text with the line ends that the file has at this place.
    fn with_ends(&self, part: &Range<usize>, text: &str) -> String {
        let at = self.all.partition_point(|line| line.whole().end <= part.start);
        match end_at(&self.all, at) {
            "\n" => text.to_owned(),
            end => text.replace('\n', end),
        }
    }
}

/// A part of the view and its replacement.
struct Match {
    part: Range<usize>,
    new: String,
}

/// The edits that replace `old` by `new` in the file at `path`: one, or with `all` one for each place.
pub(super) fn edits(path: &str, text: &Text, old: &str, new: &str, all: bool) -> Result<(Vec<Edit>, Assumed), Error> {
    let is_mac = has_lone_returns(&text.content);
    let plain = |text: &str| {
        let text = with_feeds(text);
        if is_mac { text.replace('\r', "\n") } else { text }
    };
    let (old, new) = (plain(old), plain(new));
    if old == new {
        return Err(Error::invalid("old_string and new_string are the same, so nothing would change"));
    }
    let view = View::new(&text.content);
    let mut assumed = Assumed::default();
    let mut found = search(&view.plain, &old, &new, &mut assumed);
    if found.is_empty()
        && let Some(unescaped) = unescape(&old)
    {
        found = search(&view.plain, &unescaped, &unescape(&new).unwrap_or_else(|| new.clone()), &mut assumed);
        if !found.is_empty() {
            assumed.add(
                "the escapes in old_string and new_string (`\\n`, `\\t`, `\\\"`) stand for the characters they name",
            );
        }
    }
    let line_of = |found: &Match| view.plain[..found.part.start].matches('\n').count() + 1;
    match found.len() {
        0 => return Err(super::assumed::not_found(path, text, "old_string", &old.lines().collect::<Vec<_>>())),
        1 => {}
        _ if all => {}
        _ => {
            return Err(Error::invalid(format!(
                "old_string occurs {} times in {path}, {}: give more of the lines around it, or replace_all",
                found.len(),
                places(found.iter().map(line_of))
            ))
            .with_code("ambiguous"));
        }
    }
    let mut edits = Vec::with_capacity(found.len());
    for Match { part, new } in found {
        let Edit { part, new } = Edit { part, new }.narrowed(&view.plain);
        let taken = view.in_file(&part);
        let new = super::assumed::with_bytes(path, text, &view.file[taken.clone()], &view.with_ends(&taken, &new))?;
        edits.push(Edit { part: taken, new });
    }
    Ok((edits, assumed))
}

/// All places of `old`, with the least leniency that finds any.
fn search(plain: &str, old: &str, new: &str, assumed: &mut Assumed) -> Vec<Match> {
    let exact: Vec<Match> =
        plain.match_indices(old).map(|(at, _)| Match { part: at..at + old.len(), new: new.to_owned() }).collect();
    if !exact.is_empty() {
        return exact;
    }
    let whole = by_lines(plain, old, new, assumed);
    if !whole.is_empty() {
        return whole;
    }
    let wanted: String = matching::fold(old).collect();
    let folded = Folded::new(plain);
    let typographic: Vec<Match> = folded
        .text
        .match_indices(&wanted)
        .map(|(at, _)| (folded.origin(at)..folded.origin(at + wanted.len()), at))
        // A part must not begin or end within `…`.
        .filter(|(part, at)| matching::fold(&plain[part.clone()]).eq(folded.text[*at..*at + wanted.len()].chars()))
        .map(|(part, _)| Match { part, new: new.to_owned() })
        .collect();
    if !typographic.is_empty() {
        assumed.typography();
    }
    typographic
}

/// Places where whole lines are equal but for what is forgiven.
fn by_lines(plain: &str, old: &str, new: &str, assumed: &mut Assumed) -> Vec<Match> {
    let all = lines(plain);
    let wanted: Vec<&str> = old.lines().collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return Vec::new();
    }
    let mut free = 0;
    let found: Vec<Found> = matching::find(&all, &wanted, 0)
        .into_iter()
        // Places must not overlap.
        .filter(|found| {
            let is_free = found.at >= free;
            if is_free {
                free = found.at + wanted.len();
            }
            is_free
        })
        .collect();
    let matched = |found: &Found| {
        let last = &all[found.at + wanted.len() - 1];
        let end = last.whole().end - if old.ends_with('\n') { 0 } else { last.end.len() };
        let new: String = new.split_inclusive('\n').map(|line| found.indented(line)).collect();
        Match { part: all[found.at].start..end, new }
    };
    for found in &found {
        assumed.forgiven(found.forgiven);
    }
    found.iter().map(matched).collect()
}

/// The text with its escapes replaced. `None` if it has none.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut changed = false;
    while let Some(letter) = rest.next() {
        let named = match (letter, rest.clone().next()) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('r')) => Some('\r'),
            ('\\', Some(quote @ ('"' | '\'' | '\\'))) => Some(quote),
            _ => None,
        };
        match named {
            Some(named) => {
                rest.next();
                changed = true;
                plain.push(named);
            }
            None => plain.push(letter),
        }
    }
    changed.then(|| plain.replace("\r\n", "\n"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    fn replaced(content: &[u8], old: &str, new: &str, all: bool) -> Result<(Vec<u8>, String), String> {
        let text = Text::decode("a.txt", content).unwrap();
        let (edits, assumed) = edits("a.txt", &text, old, new, all).map_err(|error| error.message)?;
        let changed = text.edited("a.txt", &edits).map_err(|error| error.message)?;
        Ok((changed.encode(), assumed.to_string()))
    }

    fn exact(content: &str, old: &str, new: &str) -> String {
        let (bytes, assumed) = replaced(content.as_bytes(), old, new, false).unwrap();
        assert_eq!(assumed, "");
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn exact_text_is_replaced_and_all_else_stays() {
        assert_eq!(exact("one two\n", "two", "2"), "one 2\n");
        assert_eq!(exact("a\r\nb\r\nc", "a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc");
        assert_eq!(exact("a\nb\r\nc\r\n", "b\n", "b\nB\n"), "a\nb\r\nB\r\nc\r\n", "the ends of the place count");
        assert_eq!(exact("a\r\nb\r\n", "a\r\nb", "a"), "a\r\n");
        assert_eq!(exact("\u{feff}a", "a", "b"), "\u{feff}b");
        assert_eq!(exact("a\r\nb\r\n", "a\n", ""), "b\r\n");
        assert_eq!(exact("a\rb\rc", "a\nb", "x\ny\nz"), "x\ry\rz\rc", "a classic Macintosh");
        assert_eq!(exact("a\rb\rc", "a\rb", "x"), "x\rc");
        assert_eq!(exact("a\r\r\nb\r\r\nc", "a\nb", "x\ny\nz"), "x\r\r\ny\r\r\nz\r\r\nc");
        assert_eq!(exact("a\r\r\nb\r\r\n", "a\r\r\nb\r\n", "a\r\nx\r\n"), "a\r\r\nx\r\r\n");
        assert_eq!(exact("a\r\r\nb\nc\r\n", "b\n", ""), "a\r\r\nc\r\n");
        assert_eq!(exact("a\rb\nc\n", "b", "x\ny"), "a\rx\ny\nc\n", "a stray carriage return is no line end");
    }

    #[test]
    fn what_is_not_utf8_stays() {
        let latin = b"caf\xe9\nna\xefve\n";
        assert_eq!(replaced(latin, "naïve", "naïveté", false).unwrap().0, b"caf\xe9\nna\xefvet\xe9\n");
        let (bytes, assumed) = replaced(latin, "na\u{fffd}ve", "na\u{fffd}ve!", false).unwrap();
        assert_eq!(bytes, b"caf\xe9\nna\xefve!\n");
        assert!(assumed.contains("�"), "{assumed}");
        assert!(replaced(latin, "caf\u{fffd}", "\u{fffd}\u{fffd}", false).unwrap_err().contains("�"));
        assert!(replaced(latin, "naïve", "€", false).unwrap_err().contains("`€`"));
        let mixed = b"\xff \xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc x";
        assert_eq!(replaced(mixed, "üüüü", "öüüü", false).unwrap().0, b"\xff \xc3\xb6\xc3\xbc\xc3\xbc\xc3\xbc x");
    }

    #[test]
    fn a_place_that_is_not_unique_is_refused_with_its_lines() {
        let error = replaced(b"x\ny\nx\nx x\n", "x", "z", false).unwrap_err();
        assert!(error.contains("occurs 4 times in a.txt, at lines 1, 3, 4 and 4"), "{error}");
        assert_eq!(replaced(b"x\ny\nx\n", "x", "z", true).unwrap().0, b"z\ny\nz\n");
    }

    #[test]
    fn every_forgiven_difference_is_named() {
        let cases = [
            ("if a:  \n    b\n", "if a:\n    b", "if a:\n    c", "if a:\n    c\n", "line ends"),
            ("\tif a:\n\t\tb\n", "if a:\n    b", "if a:\n    c\n    d", "\tif a:\n\t\tc\n\t\td\n", "indentation"),
            ("say “no” now\n", "say \"no\" now", "say \"no\" later", "say \"no\" later\n", "typographic"),
            ("he said “no” now\n", "said \"no\" no", "said \"no\" lo", "he said \"no\" low\n", "typographic"),
            ("a\nb\n", "a\\nb", "c\\nd", "c\nd\n", "escapes"),
            ("x = \"1\"\n", "x = \\\"1\\\"", "x = \\\"2\\\"", "x = \"2\"\n", "escapes"),
        ];
        for (content, old, new, expected, named) in cases {
            let (bytes, assumed) = replaced(content.as_bytes(), old, new, false).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{old}");
            assert!(assumed.contains(named), "{old}: {assumed}");
        }
    }

    #[test]
    fn what_is_not_found_says_what_is_different() {
        let error = replaced(b"a\nb\nc\n", "a\nb\nd", "x", false).unwrap_err();
        assert!(error.contains("line 3 has `c`") && error.contains("`d`"), "{error}");
        let error = replaced(b"a\nb\n", "1|a\n2|b", "x", false).unwrap_err();
        assert!(error.contains("without the line numbers"), "{error}");
        let error = replaced(b"a\nb\n", "zebra", "x", false).unwrap_err();
        assert!(error.contains("no line of a.txt"), "{error}");
        assert!(replaced(b"a\n", "a", "a", false).unwrap_err().contains("the same"));
    }

    proptest! {
        /// A unique part is replaced, whatever surrounds it, and the rest keeps each byte.
        #[test]
        fn only_the_found_part_changes(
            before in prop::collection::vec(any::<u8>().prop_filter("text", |byte| ![0, b'Q'].contains(byte)), 0..30),
            after in prop::collection::vec(any::<u8>().prop_filter("text", |byte| ![0, b'Q'].contains(byte)), 0..30),
        ) {
            let content = [&before[..], b"\nQ1Q\n", &after[..]].concat();
            // Not in what begins with a mark of UTF-16, and not amid the states of ISO-2022-JP.
            let text = Text::decode("a.txt", &content).unwrap();
            prop_assume!(text.content.contains("\nQ1Q\n") && !text.charset().is_stateful());
            let (changed, _) = replaced(&content, "Q1Q", "2", false).unwrap();
            prop_assert_eq!(changed, [&before[..], b"\n2\n", &after[..]].concat());
        }
    }
}
