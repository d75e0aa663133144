//! Finds calls that the texts of segments already mention. Each proposal searches for many calls in texts that mostly
//! stayed the same since the previous proposal, so results are cached.

use std::collections::HashMap;

use hermes_guest_engine::fnv;

/// Bytes of a window (n-gram).
const WINDOW: usize = 4;

/// Search results, by hash of the text searched.
#[derive(Debug, Default)]
pub(crate) struct MentionIndex(HashMap<u64, Searched>);

#[derive(Debug)]
struct Searched {
    windows: Windows,
    /// Results by hash of the call.
    tells: HashMap<u64, bool>,
}

impl MentionIndex {
    /// Returns a function that tells whether one of these texts mentions a call. Drops cached results for other texts.
    pub(crate) fn by<'t>(&'t mut self, texts: &'t [String]) -> impl FnMut(&str) -> bool + 't {
        let marked: Vec<(u64, &String)> = texts.iter().map(|text| (fnv(text.bytes()), text)).collect();
        self.0.retain(|mark, _| marked.iter().any(|(known, _)| known == mark));
        move |about| {
            let call = fnv(about.bytes());
            marked.iter().any(|(mark, text)| {
                let new = || Searched { windows: Windows::of(text), tells: HashMap::new() };
                let Searched { windows, tells } = self.0.entry(*mark).or_insert_with(new);
                *tells.entry(call).or_insert_with(|| windows.may_hold(about) && text.contains(about))
            })
        }
    }
}

/// A bloom filter over all n-grams of a text: if one n-gram of a passage is missing, the text does not contain the passage.
#[derive(Debug)]
struct Windows(Box<[u64; 1 << 10]>);

impl Windows {
    fn of(text: &str) -> Self {
        let mut bits = Box::new([0; 1 << 10]);
        for window in text.as_bytes().windows(WINDOW) {
            let (word, bit) = place(window);
            bits[word] |= bit;
        }
        Self(bits)
    }

    fn may_hold(&self, passage: &str) -> bool {
        passage.as_bytes().windows(WINDOW).map(place).all(|(word, bit)| self.0[word] & bit != 0)
    }
}

fn place(window: &[u8]) -> (usize, u64) {
    let number = window.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    let hash = number.wrapping_mul(0x9e37_79b1) >> 16;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_cache_agrees_with_a_plain_search(texts in prop::collection::vec("[ab ]{0,40}", 0..4), about in "[ab ]{0,6}") {
            let mut told = MentionIndex::default();
            let holds = texts.iter().any(|text| text.contains(&about));
            for _ in 0..2 {
                prop_assert_eq!(told.by(&texts)(&about), holds);
            }
            let (other, part) = (["nothing".to_owned()], &about[..about.len() / 2]);
            prop_assert_eq!(told.by(&other)(part), part.is_empty());
        }
    }
}
