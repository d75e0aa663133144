//! Words of commands in a report, so that their borders can be seen: a front end that breaks lines makes one blank of several,
//! and a line break in a name would look like a second name.

/// A word of a command: in quotation marks unless it is plain.
pub(super) fn word(text: &str) -> String {
    let is_plain = |character: char| !character.is_whitespace() && !character.is_control() && character != '"';
    // A separator of the report is part of no word.
    if !text.is_empty() && text.chars().all(is_plain) && !text.ends_with([';', ',']) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A command line as it is written, whose single blanks are borders already.
pub(super) fn line(text: &str) -> String {
    let is_exact = text.split(' ').all(|word| !word.is_empty() && !word.contains(char::is_whitespace))
        && !text.contains(char::is_control);
    if is_exact { text.to_owned() } else { quoted(text) }
}

/// A text in quotation marks, with escapes for all that a front end could change: also for each blank after a blank.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for character in format!("{text:?}").chars() {
        match character {
            ' ' if out.ends_with(' ') || out.ends_with(BLANK) => out.push_str(BLANK),
            other => out.push(other),
        }
    }
    out
}

/// A blank that no front end takes for one.
const BLANK: &str = r"\u{20}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_words_can_be_seen() {
        for (text, shown) in [
            ("-y", "-y"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a   b", r#""a \u{20}\u{20}b""#),
            ("a\nB", r#""a\nB""#),
            ("a\u{a0}b", r#""a\u{a0}b""#),
            ("\"a", r#""\"a""#),
            ("a;", r#""a;""#),
        ] {
            assert_eq!(word(text), shown, "{text:?}");
        }
        assert_eq!(line("sh -c x"), "sh -c x");
        assert_eq!(line("sh  -c x"), r#""sh \u{20}-c x""#);
        assert_eq!(line("sh\nx"), r#""sh\nx""#);
    }
}
