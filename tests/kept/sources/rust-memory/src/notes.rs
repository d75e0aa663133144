//! Notes in a text, one per line. Plain functions, which `cargo test` runs natively.

use std::collections::BTreeSet;

/// The most characters of a note.
const NOTE: usize = 300;
/// The fewest characters of a word that is compared.
const WORD: usize = 3;

/// The notes in a text: the rest of each line that begins with the keyword.
pub fn in_text(text: &str, keyword: &str) -> Vec<String> {
    let keyword = keyword.to_lowercase();
    let notes = text.lines().filter_map(|line| {
        let line = line.trim();
        let (first, rest) = line.split_once(char::is_whitespace)?;
        let first = first.trim_end_matches([':', ',', '.', '!']).to_lowercase();
        let note: String = rest.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(NOTE).collect();
        (first == keyword && !note.is_empty()).then_some(note)
    });
    notes.collect()
}

/// The notes with new ones appended, or `None` if all are known already.
pub fn added(notes: &str, new: &[String]) -> Option<String> {
    let mut all: Vec<&str> = notes.lines().collect();
    let before = all.len();
    for note in new {
        if !all.contains(&note.as_str()) {
            all.push(note);
        }
    }
    (all.len() > before).then(|| all.join("\n") + "\n")
}

/// Notes that share a word with the question. Most shared words first, then newest first.
pub fn about<'a>(notes: &'a str, question: &str) -> Vec<&'a str> {
    let question_words = words(question);
    let mut found: Vec<(usize, usize, &str)> = notes
        .lines()
        .enumerate()
        .map(|(at, note)| (words(note).intersection(&question_words).count(), at, note))
        .filter(|(shared, ..)| *shared > 0)
        .collect();
    found.sort_by(|one, other| (other.0, other.1).cmp(&(one.0, one.1)));
    found.into_iter().map(|(.., note)| note).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| word.chars().count() >= WORD);
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_the_keyword_is_stored() {
        let text = "Hello.\nRemember: the ferry  leaves at 07:45\nI remember nothing\nremember\n";
        assert_eq!(in_text(text, "remember"), ["the ferry leaves at 07:45"]);
    }

    #[test]
    fn a_note_is_stored_once() {
        let new = ["the ferry is late".to_owned()];
        let once = added("", &new);
        assert_eq!(once.as_deref(), Some("the ferry is late\n"));
        assert_eq!(added(&once.unwrap_or_default(), &new), None);
    }

    #[test]
    fn notes_that_share_most_words_come_first() {
        let notes = "tea at four\nthe ferry leaves at noon\nthe ferry is red\n";
        assert_eq!(
            about(notes, "When does the Ferry leave? It leaves soon."),
            ["the ferry leaves at noon", "the ferry is red"]
        );
        assert!(about(notes, "").is_empty());
    }
}
