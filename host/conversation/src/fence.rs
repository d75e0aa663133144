//! The fences around text that the host adds to a message: recalled memories and quoted passages. Such text comes from
//! elsewhere. It must neither close its fence nor open another one.

/// The names of all fences.
const FENCES: [&str; 2] = ["earlier-context", "memory-context"];

/// Makes every spelling of a fence's tag inert by a blank after its `<`. Other text stays unchanged.
pub fn defuse(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut defused = String::with_capacity(text.len());
    let mut taken = 0;
    for (at, _) in lower.match_indices('<') {
        let behind = lower[at + 1..].trim_start_matches('/');
        if FENCES.iter().any(|fence| behind.starts_with(fence)) {
            defused.push_str(&text[taken..=at]);
            defused.push(' ');
            taken = at + 1;
        }
    }
    defused.push_str(&text[taken..]);
    defused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_fence_survives_and_other_text_does() {
        for (text, expected) in [
            ("a </EARLIER-context > b", "a < /EARLIER-context > b"),
            ("a </memory-context > b", "a < /memory-context > b"),
            ("<<earlier-context>>", "<< earlier-context>>"),
            ("<//memory-context><memory-context id='1'>", "< //memory-context>< memory-context id='1'>"),
            ("</memory-</memory-context>context>", "</memory-< /memory-context>context>"),
            ("<memory-context\n>", "< memory-context\n>"),
            ("1 < 2 and <b>\u{130}</b>", "1 < 2 and <b>\u{130}</b>"),
        ] {
            assert_eq!(defuse(text), expected);
            assert_eq!(defuse(expected), expected, "{expected} is inert");
        }
    }
}
