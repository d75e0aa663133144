//! The stem of an English word, by Porter's rules of 1980, which SQLite's index follows too.

/// The shortest word that is stemmed, in bytes.
const SHORTEST: usize = 3;
/// The longest word that is stemmed, in bytes.
const LONGEST: usize = 64;

/// Suffixes of the second step, with what replaces them behind a stem of at least one syllable.
const SECOND: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
/// Suffixes of the third step.
const THIRD: &[(&str, &str)] =
    &[("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
/// Suffixes of the fourth step, which are dropped behind a stem of at least two syllables.
const FOURTH: &[&str] = &[
    "ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
];

/// Replaces a word in lower case by its stem. A stem begins with the first two letters of its word.
pub(crate) fn stem(word: &mut String) {
    if word.len() < SHORTEST || word.len() > LONGEST || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    plural(word);
    past(word);
    if word.ends_with('y') && has_vowel(&word[..word.len() - 1]) {
        replace(word, 1, "i");
    }
    for table in [SECOND, THIRD] {
        if let Some((suffix, by)) = longest(table, word)
            && measure(&word[..word.len() - suffix.len()]) > 0
        {
            replace(word, suffix.len(), by);
        }
    }
    fourth(word);
    let before = word.len() - 1;
    if word.ends_with('e') {
        let syllables = measure(&word[..before]);
        if syllables > 1 || (syllables == 1 && !is_short(&word[..before])) {
            word.truncate(before);
        }
    }
    if word.ends_with("ll") && measure(word) > 1 {
        word.truncate(word.len() - 1);
    }
}

fn plural(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        replace(word, 2, "");
    } else if word.ends_with('s') && !word.ends_with("ss") {
        replace(word, 1, "");
    }
}

fn past(word: &mut String) {
    if word.ends_with("eed") {
        if measure(&word[..word.len() - 3]) > 0 {
            replace(word, 1, "");
        }
        return;
    }
    let suffix = ["ed", "ing"].into_iter().find(|suffix| word.ends_with(suffix));
    let Some(suffix) = suffix.filter(|suffix| has_vowel(&word[..word.len() - suffix.len()])) else { return };
    replace(word, suffix.len(), "");
    if ["at", "bl", "iz"].into_iter().any(|ending| word.ends_with(ending)) {
        word.push('e');
    } else if is_doubled(word) && !word.ends_with(['l', 's', 'z']) {
        replace(word, 1, "");
    } else if measure(word) == 1 && is_short(word) {
        word.push('e');
    }
}

fn fourth(word: &mut String) {
    let Some(suffix) = FOURTH.iter().find(|suffix| word.ends_with(**suffix)) else { return };
    let before = &word[..word.len() - suffix.len()];
    if measure(before) > 1 && (*suffix != "ion" || before.ends_with(['s', 't'])) {
        replace(word, suffix.len(), "");
    }
}

fn longest<'a>(table: &[(&'a str, &'a str)], word: &str) -> Option<(&'a str, &'a str)> {
    table.iter().filter(|(suffix, _)| word.ends_with(suffix)).max_by_key(|(suffix, _)| suffix.len()).copied()
}

fn replace(word: &mut String, length: usize, by: &str) {
    word.truncate(word.len() - length);
    word.push_str(by);
}

fn is_vowel(word: &[u8], at: usize) -> bool {
    match word[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => at > 0 && !is_vowel(word, at - 1),
        _ => false,
    }
}

fn has_vowel(word: &str) -> bool {
    (0..word.len()).any(|at| is_vowel(word.as_bytes(), at))
}

/// How often a consonant follows a vowel.
fn measure(word: &str) -> usize {
    let vowels: Vec<bool> = (0..word.len()).map(|at| is_vowel(word.as_bytes(), at)).collect();
    vowels.windows(2).filter(|pair| pair[0] && !pair[1]).count()
}

fn is_doubled(word: &str) -> bool {
    let bytes = word.as_bytes();
    matches!(bytes, [.., a, b] if a == b) && !is_vowel(bytes, bytes.len() - 1)
}

/// Whether a word ends with consonant, vowel, consonant, and the last is not w, x or y.
fn is_short(word: &str) -> bool {
    let (bytes, end) = (word.as_bytes(), word.len());
    end >= 3
        && !is_vowel(bytes, end - 1)
        && is_vowel(bytes, end - 2)
        && !is_vowel(bytes, end - 3)
        && !matches!(bytes[end - 1], b'w' | b'x' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_dropped_as_in_porters_paper() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("conflated", "conflat"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("vietnamization", "vietnam"),
            ("hopefulness", "hope"),
            ("electrical", "electr"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controll", "control"),
            ("roll", "roll"),
            ("be", "be"),
            ("café", "café"),
            ("2023", "2023"),
        ] {
            let mut word = word.to_owned();
            stem(&mut word);
            assert_eq!(word, expected);
        }
    }
}
