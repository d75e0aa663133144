//! Finds lines in a file: as they are, and, if that finds nothing, with more and more differences forgiven.

use crate::text::{Line, REPLACEMENT};

/// What is forgiven when lines are compared, from nothing to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leniency {
    pub(super) line_ends: bool,
    pub(super) indentation: bool,
    pub(super) typography: bool,
}

/// In this order they are tried.
pub(super) const LENIENCIES: [Leniency; 6] = [
    Leniency { line_ends: false, indentation: false, typography: false },
    Leniency { line_ends: true, indentation: false, typography: false },
    Leniency { line_ends: false, indentation: false, typography: true },
    Leniency { line_ends: true, indentation: false, typography: true },
    Leniency { line_ends: true, indentation: true, typography: false },
    Leniency { line_ends: true, indentation: true, typography: true },
];

impl Leniency {
    fn equal(self, one: &str, other: &str) -> bool {
        let (mut one, mut other) = (one, other);
        if self.line_ends {
            (one, other) = (one.trim_end(), other.trim_end());
        }
        if self.indentation {
            (one, other) = (one.trim_start(), other.trim_start());
        }
        one == other || (self.typography && fold(one).eq(fold(other))) || (self.typography && without_bytes(one, other))
    }
}

/// A place where lines were found, and what had to be forgiven.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The first line, from 0.
    pub(super) at: usize,
    /// What was different.
    pub(super) forgiven: Leniency,
    /// The file's indentation for each one that was written, if they differ.
    indents: Vec<(String, String)>,
}

impl Found {
    /// A place that was given by its number.
    pub(super) fn exactly(at: usize) -> Self {
        Self { at, forgiven: LENIENCIES[0], indents: Vec::new() }
    }

    /// A written line with the indentation that the file has at this place.
    pub(super) fn indented(&self, line: &str) -> String {
        let (indent, rest) = split_indent(line);
        if rest.is_empty() || self.indents.is_empty() {
            return line.to_owned();
        }
        let known = self.indents.iter().filter(|(written, _)| indent.starts_with(written.as_str()));
        match known.max_by_key(|(written, _)| written.len()) {
            Some((written, own)) => format!("{own}{}{rest}", &indent[written.len()..]),
            // Less indented than all that was found: by as much less as in the patch.
            None => match self.indents.iter().min_by_key(|(written, _)| written.len()) {
                Some((written, own)) if written.starts_with(indent) => {
                    let less = &written[indent.len()..];
                    format!("{}{rest}", own.strip_suffix(less).unwrap_or(indent))
                }
                _ => line.to_owned(),
            },
        }
    }
}

/// All places from line `from` on where `wanted` is found, with the least leniency that finds any.
pub(super) fn find(lines: &[Line<'_>], wanted: &[&str], from: usize) -> Vec<Found> {
    if wanted.is_empty() || wanted.len() > lines.len() {
        return Vec::new();
    }
    let last = lines.len() - wanted.len();
    for leniency in LENIENCIES {
        let places = (from..=last)
            .filter(|at| lines[*at..].iter().zip(wanted).all(|(line, wanted)| leniency.equal(line.text, wanted)));
        let found: Vec<Found> = places.filter_map(|at| found_at(&lines[at..], wanted, at, leniency)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// The differences that have to be forgiven at this place. `None` if one written indentation matches several in the file: then
/// the indentation of new lines is unknown.
fn found_at(lines: &[Line<'_>], wanted: &[&str], at: usize, leniency: Leniency) -> Option<Found> {
    let mut forgiven = LENIENCIES[0];
    let mut indents: Vec<(String, String)> = Vec::new();
    for (line, wanted) in lines.iter().zip(wanted) {
        let (own, own_rest) = split_indent(line.text);
        let (written, written_rest) = split_indent(wanted);
        forgiven.line_ends |= trailing(line.text) != trailing(wanted);
        forgiven.typography |= own_rest.trim_end() != written_rest.trim_end();
        if leniency.indentation && !own_rest.is_empty() && !written_rest.is_empty() {
            match indents.iter().find(|(known, _)| known == written) {
                Some((_, known)) if known != own => return None,
                Some(_) => {}
                None => indents.push((written.to_owned(), own.to_owned())),
            }
        }
    }
    forgiven.indentation = indents.iter().any(|(written, own)| written != own);
    if !forgiven.indentation {
        indents.clear();
    }
    Some(Found { at, forgiven, indents })
}

fn trailing(line: &str) -> &str {
    &line[line.trim_end().len()..]
}

fn split_indent(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start().len())
}

/// Characters that programs for writing put in place of plain ones.
pub(super) fn fold(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(|letter| folded(letter).chars().chain((folded(letter).is_empty()).then_some(letter)))
}

/// The plain text for a typographic character; empty for others.
fn folded(letter: char) -> &'static str {
    match letter {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{2026}' => "...",
        _ => "",
    }
}

/// A text without typographic characters, and where its parts come from.
pub(super) struct Folded {
    pub(super) text: String,
    /// The beginnings of the parts, in bytes of this text and of the original. A part begins at each typographic character and
    /// after it.
    parts: Vec<Part>,
}

struct Part {
    at: usize,
    origin: usize,
    /// Whether it stands for one typographic character.
    is_folded: bool,
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(original.len()), parts: Vec::new() };
        let mut plain_from = 0;
        for (origin, letter) in original.char_indices() {
            let ascii = self::folded(letter);
            if !ascii.is_empty() {
                folded.begin(plain_from, false);
                folded.text.push_str(&original[plain_from..origin]);
                folded.begin(origin, true);
                folded.text.push_str(ascii);
                plain_from = origin + letter.len_utf8();
            }
        }
        folded.begin(plain_from, false);
        folded.text.push_str(&original[plain_from..]);
        folded
    }

    fn begin(&mut self, origin: usize, is_folded: bool) {
        self.parts.push(Part { at: self.text.len(), origin, is_folded });
    }

    /// The place in the original for a place of this text. Within the replacement of a typographic character, it is the place of
    /// that character.
    pub(super) fn origin(&self, at: usize) -> usize {
        let after = self.parts.partition_point(|part| part.at <= at);
        match after.checked_sub(1).map(|last| &self.parts[last]) {
            Some(part) if part.is_folded => part.origin,
            Some(part) => part.origin + at - part.at,
            None => at,
        }
    }
}

/// Whether the texts are equal but for bytes that `read_file` could only show as �.
fn without_bytes(own: &str, written: &str) -> bool {
    written.contains(REPLACEMENT)
        && own.chars().count() == written.chars().count()
        && own
            .chars()
            .zip(written.chars())
            .all(|(own, written)| own == written || (written == REPLACEMENT && own >= '\u{80}'))
}

/// How far the lines match at the best place: its first line, and how many match. For an error that says what is different.
pub(super) fn nearest(lines: &[Line<'_>], wanted: &[&str]) -> Option<(usize, usize)> {
    let most_lenient = LENIENCIES[LENIENCIES.len() - 1];
    let length = |at: usize| {
        lines[at..].iter().zip(wanted).take_while(|(line, wanted)| most_lenient.equal(line.text, wanted)).count()
    };
    (0..lines.len())
        .map(|at| (at, length(at)))
        .rev()
        .max_by_key(|(_, length)| *length)
        .filter(|(_, length)| *length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::lines;

    fn places(text: &str, wanted: &[&str]) -> Vec<(usize, [bool; 3])> {
        let found = find(&lines(text), wanted, 0);
        let forgiven =
            |found: &Found| [found.forgiven.line_ends, found.forgiven.indentation, found.forgiven.typography];
        found.iter().map(|found| (found.at + 1, forgiven(found))).collect()
    }

    #[test]
    fn the_least_leniency_that_finds_something_counts() {
        let exact = [false; 3];
        assert_eq!(places("a\nb\na\n", &["a"]), [(1, exact), (3, exact)]);
        assert_eq!(places("a \na\n", &["a"]), [(2, exact)], "an exact match hides the others");
        assert_eq!(places("a \t\nb\n", &["a", "b"]), [(1, [true, false, false])]);
        assert_eq!(places("say \u{201c}no\u{201d} \u{2013} now\n", &["say \"no\" - now"]), [(1, [false, false, true])]);
        assert_eq!(places("\tif x:\n\t\ty\n", &["if x:", "    y"]), [(1, [false, true, false])]);
        assert_eq!(places("  it\u{2019}s \n", &["it's"]), [(1, [true, true, true])]);
        assert_eq!(places("caf\u{e9}\n", &["caf\u{fffd}"]), [(1, [false, false, true])]);
        assert_eq!(places("a\nb\n", &["a", "c"]), []);
        assert_eq!(places("a\n", &["a", "b"]), []);
    }

    #[test]
    fn places_of_a_folded_text_are_found_in_the_original() {
        let original = "a\u{201c}b\u{2026}\u{2019}\u{e9}c";
        let folded = Folded::new(original);
        assert_eq!(folded.text, "a\"b...'\u{e9}c");
        let origins: Vec<usize> = folded.text.char_indices().map(|(at, _)| folded.origin(at)).collect();
        assert_eq!(origins, [0, 1, 4, 5, 5, 5, 8, 11, 13]);
        assert_eq!(folded.origin(folded.text.len()), original.len());
    }

    #[test]
    fn one_written_indentation_cannot_stand_for_two() {
        assert_eq!(places("a\n  b\n", &["    a", "    b"]), []);
    }

    #[test]
    fn new_lines_get_the_indentation_of_the_file() {
        let found = find(&lines("\t\tif x:\n\t\t\ty\n"), &["  if x:", "    y"], 0).remove(0);
        for (written, expected) in
            [("  else:", "\t\telse:"), ("    z", "\t\t\tz"), ("      deep", "\t\t\t  deep"), ("", ""), ("\tx", "\tx")]
        {
            assert_eq!(found.indented(written), expected, "{written:?}");
        }
        let outer = find(&lines("        y\n"), &["    y"], 0).remove(0);
        assert_eq!(outer.indented("z"), "    z");
    }

    #[test]
    fn the_nearest_place_is_the_first_with_the_most_equal_lines() {
        let text = "a\nb\nx\na\nb\nc\ny\na\nb\nc\n";
        assert_eq!(nearest(&lines(text), &["a", "b", "c", "d"]), Some((3, 3)));
        assert_eq!(nearest(&lines(text), &["q"]), None);
    }
}
