//! Vectors from counted words. Plain functions, which `cargo test` runs natively.

/// Letters of a part of a word. Words with a common part are a little similar: `ferry` and `ferries`.
const PART: usize = 4;
/// What a part counts, compared with a whole word.
const PART_WEIGHT: f32 = 0.3;

/// A vector of length 1. Each word and each beginning of a word adds to one of its numbers.
pub fn vector(text: &str, dimensions: u32) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions as usize];
    let text = text.to_lowercase();
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        vector[place(word, dimensions)] += 1.0;
        if let Some((end, _)) = word.char_indices().nth(PART) {
            vector[place(&word[..end], dimensions)] += PART_WEIGHT;
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    } else {
        // A text without words: plugins that divide by the length must not divide by 0.
        vector[0] = 1.0;
    }
    vector
}

/// FNV-1a: the same number on every machine and in every version of Rust.
fn place(word: &str, dimensions: u32) -> usize {
    let hash = word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash % u64::from(dimensions)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearness(one: &str, other: &str) -> f32 {
        vector(one, 256).iter().zip(vector(other, 256)).map(|(one, other)| one * other).sum()
    }

    #[test]
    fn texts_that_share_words_are_near() {
        let question = "When does the ferry leave?";
        assert!(nearness(question, question) > 0.999);
        assert!(nearness(question, "The ferry leaves at noon.") > nearness(question, "Tea is at four."));
        assert!(nearness("ferry", "ferries") > 0.0);
    }

    #[test]
    fn a_text_without_words_has_a_vector_of_length_1() {
        assert_eq!(nearness("?!", ""), 1.0);
    }
}
