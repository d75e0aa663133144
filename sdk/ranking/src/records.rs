//! Ranks short records of several fields, such as the names, the descriptions and the arguments of tools: as BM25F does, which adds the
//! occurrences of a word over the fields, each with the weight of its field, before it saturates them.

use std::collections::HashMap;

use crate::question::Question;
use crate::stem::stem;
use crate::words::each_word;

/// How much a word counts that occurs again, and how much long fields lose.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.5;

/// An index of records with `N` fields each: which words occur in which record.
#[derive(Debug, Clone, Default)]
pub struct Records<const N: usize> {
    /// The records that have a stem, each with how often its fields have it.
    places: HashMap<String, Vec<(usize, [f64; N])>>,
    /// How many words the fields of each record have.
    lengths: Vec<[f64; N]>,
}

impl<const N: usize> Records<N> {
    /// Reads the records.
    pub fn new<'t>(records: impl IntoIterator<Item = [&'t str; N]>) -> Self {
        let mut index = Self { places: HashMap::new(), lengths: Vec::new() };
        let mut stemmed = String::new();
        for (at, fields) in records.into_iter().enumerate() {
            let mut lengths = [0.0; N];
            for (field, text) in fields.into_iter().enumerate() {
                each_word(text, |word| {
                    lengths[field] += 1.0;
                    stemmed.clear();
                    stemmed.push_str(word);
                    stem(&mut stemmed);
                    let places = match index.places.get_mut(&stemmed) {
                        Some(places) => places,
                        None => index.places.entry(stemmed.clone()).or_default(),
                    };
                    match places.last_mut().filter(|(last, _)| *last == at) {
                        Some((_, times)) => times[field] += 1.0,
                        None => {
                            let mut times = [0.0; N];
                            times[field] = 1.0;
                            places.push((at, times));
                        }
                    }
                    true
                });
            }
            index.lengths.push(lengths);
        }
        index
    }

    /// The records with at least one word of the question, best first, each with its place and its score. `weights` says how much a word
    /// counts in each field. Equal ones keep their order. Words that carry little meaning in a sentence, such as `get` and `list`, count:
    /// they tell one name from another.
    pub fn rank(&self, question: &str, weights: [f64; N]) -> Vec<(usize, f64)> {
        let mut question = Question::of_every_word(question);
        let places: Vec<&[(usize, [f64; N])]> =
            question.terms().iter().map(|term| self.places.get(&term.stem).map_or(&[][..], Vec::as_slice)).collect();
        let counts: Vec<u64> = places.iter().map(|places| places.len() as u64).collect();
        question.weigh(&counts, self.lengths.len() as u64);
        let mean = |field: usize| {
            let all: f64 = self.lengths.iter().map(|lengths| lengths[field]).sum();
            (all / self.lengths.len().max(1) as f64).max(1.0)
        };
        let means: [f64; N] = std::array::from_fn(mean);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for (term, places) in question.terms().iter().zip(places) {
            for (at, times) in places {
                let times: f64 = (0..N)
                    .map(|field| {
                        let length = 1.0 - LENGTH + LENGTH * self.lengths[*at][field] / means[field];
                        weights[field] * times[field] / length
                    })
                    .sum();
                *scores.entry(*at).or_default() += term.weight * times * (SATURATION + 1.0) / (times + SATURATION);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [[&str; 2]; 5] = [
        ["get issue", "Read one issue of a project."],
        ["list issues", "All issues of a project, page by page."],
        ["create issue", "Write a new issue."],
        ["delete file", "Removes a file; an issue may mention it."],
        ["solve", "Solves equations."],
    ];

    fn best(question: &str) -> Vec<usize> {
        Records::new(TOOLS).rank(question, [3.0, 1.0]).into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn a_word_in_a_weighty_field_comes_first_and_small_words_tell_names_apart() {
        assert_eq!(best("get the issue")[0], 0);
        assert_eq!(best("list issues")[0], 1);
        assert_eq!(best("solving equations"), [4]);
        assert_eq!(best("create an issue")[0], 2);
        assert_eq!(best("weather"), [0; 0]);
    }

    #[test]
    fn equal_records_keep_their_order() {
        let equal = [["a b"], ["a b"], ["a b"]];
        let order: Vec<usize> = Records::new(equal).rank("a", [1.0]).into_iter().map(|(at, _)| at).collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(Records::new(equal).rank("", [1.0]), []);
        assert_eq!(Records::<1>::new([]).rank("a", [1.0]), []);
    }
}
