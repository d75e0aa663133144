//! Texts as an index of words holds them, and where a text answers a question.

use crate::question::Question;
use crate::stem::stem;
use crate::words::{each_word, each_word_at};

/// The words of a text, separated by blanks, for an index that would take a sentence without blanks for one word.
pub fn indexed(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    each_word(text, |word| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        true
    });
    words
}

/// Where a text has words of a question: the byte at which each begins, and how much it counts. In the order of the text.
pub fn matches(question: &Question, text: &str) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    let mut stemmed = String::new();
    each_word_at(text, |at, word| {
        if question.may_contain(word) {
            stemmed.clear();
            stemmed.push_str(word);
            stem(&mut stemmed);
            if let Some(term) = question.find(&stemmed) {
                found.push((at, question.terms()[term].weight));
            }
        }
        true
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_index_are_those_of_a_question() {
        assert_eq!(indexed("Él's Café: v1.2 内存泄"), "el s cafe v1 2 内存 存泄");
        assert_eq!(indexed(" .,! "), "");
    }

    #[test]
    fn matches_are_where_the_words_are() {
        let mut question = Question::parse("Which ferries leave?");
        question.weigh(&[3, 30], 100);
        let text = "Å, the ferry left; others leave";
        let found: Vec<&str> = matches(&question, text).into_iter().map(|(at, _)| &text[at..at + 5]).collect();
        assert_eq!(found, ["ferry", "leave"]);
    }
}
