//! Ranks short records of several fields, such as the names, the descriptions and the arguments of tools: as BM25F does, which adds the
//! occurrences of a word over the fields, each with the weight of its field, before it saturates them.

use crate::question::Question;
use crate::stem::stem;
use crate::words::each_word;

/// How much a word counts that occurs again, and how much long fields lose.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.5;

/// The records with at least one word of the question, best first, each with its place in `records`. Equal ones keep their order. Words that
/// carry little meaning in a sentence, such as `get` and `list`, count: they tell one name from another.
pub fn rank_records<const N: usize>(question: &str, records: &[[&str; N]], weights: [f64; N]) -> Vec<(usize, f64)> {
    let mut question = Question::of_every_word(question);
    let counted: Vec<[Counted; N]> =
        records.iter().map(|fields| fields.map(|field| Counted::of(&question, field))).collect();
    let holding =
        |term: usize| counted.iter().filter(|fields| fields.iter().any(|field| field.times[term] > 0.0)).count();
    let counts: Vec<u64> = (0..question.terms().len()).map(|term| holding(term) as u64).collect();
    question.weigh(&counts, records.len() as u64);
    let mut means = [0.0; N];
    for (at, mean) in means.iter_mut().enumerate() {
        *mean = counted.iter().map(|fields| fields[at].words).sum::<f64>() / counted.len().max(1) as f64;
    }
    let score = |fields: &[Counted; N]| -> f64 {
        let of_term = |(at, term): (usize, &crate::Term)| {
            let times: f64 = (0..N)
                .map(|field| {
                    let length = 1.0 - LENGTH + LENGTH * fields[field].words / means[field].max(1.0);
                    weights[field] * fields[field].times[at] / length
                })
                .sum();
            term.weight * times * (SATURATION + 1.0) / (times + SATURATION)
        };
        question.terms().iter().enumerate().map(of_term).sum()
    };
    let mut ranked: Vec<(usize, f64)> =
        counted.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

/// The words of a field.
struct Counted {
    words: f64,
    /// How often each term of the question occurs.
    times: Vec<f64>,
}

impl Counted {
    fn of(question: &Question, text: &str) -> Self {
        let mut counted = Self { words: 0.0, times: vec![0.0; question.terms().len()] };
        let mut stemmed = String::new();
        each_word(text, |word| {
            counted.words += 1.0;
            stemmed.clear();
            stemmed.push_str(word);
            stem(&mut stemmed);
            if let Some(term) = question.find(&stemmed) {
                counted.times[term] += 1.0;
            }
            true
        });
        counted
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
        rank_records(question, &TOOLS, [3.0, 1.0]).into_iter().map(|(at, _)| at).collect()
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
        let order: Vec<usize> = rank_records("a", &equal, [1.0]).into_iter().map(|(at, _)| at).collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(rank_records("", &equal, [1.0]), []);
        assert_eq!(rank_records::<1>("a", &[], [1.0]), []);
    }
}
