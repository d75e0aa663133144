//! Where two answers differ that should be equal.

/// Shows where two texts begin to differ.
pub(crate) fn difference(first: &str, second: &str) -> String {
    let at = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| {
        let begin = text.floor_char_boundary(at.saturating_sub(30));
        text[begin..text.floor_char_boundary((at + 60).min(text.len()))].to_owned()
    };
    format!("first `{}`, then `{}`", around(first), around(second))
}
