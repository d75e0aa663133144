//! The words of texts: for comparing memories, and for queries of the index.

/// The most words of a query.
const MOST: usize = 48;
/// Words that say nothing about the topic of a question.
const STOP: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "is", "it", "its",
    "know", "me", "my", "of", "on", "or", "our", "please", "she", "should", "so", "some", "tell", "than", "that",
    "the", "their", "them", "then", "there", "they", "this", "to", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];
const ARTICLES: [&str; 3] = ["a", "an", "the"];

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|character: char| !character.is_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A text in the form in which equal memories are equal: its words in order, in lower case, without articles and punctuation. A text
/// without words is itself.
pub(super) fn plain(text: &str) -> String {
    let plain = words(text).filter(|word| !ARTICLES.contains(&word.as_str())).collect::<Vec<_>>().join(" ");
    if plain.is_empty() { text.trim().to_owned() } else { plain }
}

/// A query of FTS5 for any of the words that say something; none if the text has no words.
pub(super) fn query(text: &str) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words(text) {
        if !all.contains(&word) {
            all.push(word);
        }
        if all.len() == 4 * MOST {
            break;
        }
    }
    let mut telling: Vec<&String> = all.iter().filter(|word| !STOP.contains(&word.as_str())).take(MOST).collect();
    if telling.is_empty() {
        telling = all.iter().take(MOST).collect();
    }
    // Words have only letters and digits, so quotes keep them from being operators.
    let quoted: Vec<String> = telling.into_iter().map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_case_articles_and_punctuation_are_the_same_memory() {
        assert_eq!(plain("Ada likes the green tea."), plain("ada likes green tea"));
        assert_ne!(plain("Ada beats Bob"), plain("Bob beats Ada"));
        assert_ne!(plain("Ada does not like tea"), plain("Ada does like tea"));
        assert_eq!(plain(" !? "), "!?");
    }

    #[test]
    fn no_text_becomes_an_operator_and_stop_words_are_left_out() {
        assert_eq!(
            query("What does Ada drink NEAR (tea*) \"or\"?").as_deref(),
            Some(r#""ada" OR "drink" OR "near" OR "tea""#)
        );
        assert_eq!(query("who are you").as_deref(), Some(r#""who" OR "are" OR "you""#));
        assert_eq!(query(" -- \" "), None);
        assert!(query(&"word ".repeat(10_000)).is_some_and(|query| query.len() < 20));
    }
}
