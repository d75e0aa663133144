//! Finds entries by words: BM25 over word stems, and over pairs of characters where a script has no spaces.

use std::collections::HashMap;

/// Words that say nothing about a text's subject.
const COMMON: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "get", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "now", "of", "on", "or", "our", "please", "she",
    "should", "so", "some", "tell", "that", "the", "their", "them", "then", "there", "they", "this", "to", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// How fast more occurrences of a term stop to count, and how much a text's length counts: the usual values of BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The stems of a text's words, without common words; pairs of characters for scripts without spaces.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut word = String::new();
    let mut dense: Vec<char> = Vec::new();
    for character in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        let is_dense = is_dense(character);
        if !is_dense && !dense.is_empty() {
            pairs(&mut dense, &mut terms);
        }
        if is_dense {
            flush(&mut word, &mut terms);
            dense.push(character);
        } else if character.is_alphanumeric() {
            word.push(character);
        } else if !matches!(character, '\'' | '\u{2019}') {
            flush(&mut word, &mut terms);
        }
    }
    terms
}

fn flush(word: &mut String, terms: &mut Vec<String>) {
    let whole = std::mem::take(word);
    if !whole.is_empty() && !COMMON.contains(&whole.as_str()) {
        terms.push(stem(&whole).to_owned());
    }
}

fn pairs(dense: &mut Vec<char>, terms: &mut Vec<String>) {
    match dense.as_slice() {
        [one] => terms.push(one.to_string()),
        several => terms.extend(several.windows(2).map(|pair| pair.iter().collect::<String>())),
    }
    dense.clear();
}

/// Chinese, Japanese and Korean letters.
fn is_dense(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}')
}

/// Cuts the endings that English words change most. Both the entry and the question are cut, so a stem need not be a word.
fn stem(word: &str) -> &str {
    let cut = |ending: &str, least: usize| word.strip_suffix(ending).filter(|stem| stem.len() >= least);
    let stem = cut("ing", 3).or_else(|| cut("ed", 3)).or_else(|| cut("es", 3));
    let stem = stem.or_else(|| cut("s", 3).filter(|stem| !stem.ends_with('s'))).unwrap_or(word);
    stem.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(stem)
}

/// The terms of several texts, ready for questions.
#[derive(Debug, Default, Clone)]
pub struct Index {
    /// For each term the texts that contain it, and how often.
    places: HashMap<String, Vec<(usize, u32)>>,
    lengths: Vec<usize>,
}

impl Index {
    /// An index of texts, which are named by their positions.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut index = Self::default();
        for (at, text) in texts.into_iter().enumerate() {
            let terms = terms(text);
            index.lengths.push(terms.len());
            for term in terms {
                let places = index.places.entry(term).or_default();
                match places.last_mut() {
                    Some((last, count)) if *last == at => *count += 1,
                    _ => places.push((at, 1)),
                }
            }
        }
        index
    }

    /// The texts that share a term with the question, the best first. Of equally good ones, the later one is first.
    pub fn find(&self, question: &str) -> Vec<usize> {
        let mut asked = terms(question);
        asked.sort();
        asked.dedup();
        let count = self.lengths.len() as f64;
        let average = (self.lengths.iter().sum::<usize>() as f64 / count.max(1.0)).max(1.0);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for places in asked.iter().filter_map(|term| self.places.get(term)) {
            let having = places.len() as f64;
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            for (at, times) in places {
                let times = f64::from(*times);
                let length = self.lengths[*at] as f64 / average;
                let weight = times * (SATURATION + 1.0) / (times + SATURATION * (1.0 - LENGTH + LENGTH * length));
                *scores.entry(*at).or_default() += rarity * weight;
            }
        }
        let mut found: Vec<(usize, f64)> = scores.into_iter().collect();
        found.sort_by(|(at, score), (other, than)| than.total_cmp(score).then(other.cmp(at)));
        found.into_iter().map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_forms_of_their_words_the_best_first() {
        let texts = [
            "the deploy of the billing service failed on Friday",
            "Anna prefers tea; billing is hers",
            "we moved the database to Oslo",
            "東京の会議は延期された",
        ];
        let index = Index::of(texts);
        for (question, expected) in [
            ("which services were deployed for billing?", vec![0, 1]),
            ("what does anna's team drink", vec![1]),
            ("moving databases", vec![2]),
            ("東京はどう", vec![3]),
            ("what is it about?", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(index.find(question), expected, "{question}");
        }
        assert_eq!(Index::default().find("tea"), Vec::<usize>::new());
    }

    #[test]
    fn of_equal_entries_the_newer_one_is_first() {
        assert_eq!(Index::of(["rent 900", "rent 950"]).find("rent"), [1, 0]);
    }
}
