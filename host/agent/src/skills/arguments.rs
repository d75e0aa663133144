//! The arguments of a skill that the user calls, in the places that its text names.

/// The text with the user's words in place of `$ARGUMENTS`, and each of them in place of `$1` to `$9`. A place stays as it is if
/// a backslash precedes it, or if there are too few arguments for it. Without any place, the words follow the text.
pub(super) fn substituted(text: &str, arguments: &str) -> String {
    let arguments = arguments.trim();
    let words = words(arguments);
    let (mut filled, mut rest, mut is_used) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find('$') {
        let (before, place) = rest.split_at(at);
        let (length, value) = match place_of(&place[1..]) {
            Some(Place::All) => (1 + ALL.len(), Some(arguments)),
            Some(Place::Numbered(number)) => (2, words.get(number - 1).map(String::as_str)),
            None => (1, None),
        };
        let is_escaped = length > 1 && before.ends_with('\\');
        match value.filter(|_| !is_escaped) {
            Some(value) => {
                filled.push_str(before);
                filled.push_str(value);
                is_used = true;
            }
            None => {
                filled.push_str(if is_escaped { &before[..before.len() - 1] } else { before });
                filled.push_str(&place[..length]);
            }
        }
        rest = &place[length..];
    }
    filled.push_str(rest);
    if !is_used && !arguments.is_empty() {
        filled.truncate(filled.trim_end().len());
        filled.push_str(&format!("\n\nArguments: {arguments}"));
    }
    filled
}

const ALL: &str = "ARGUMENTS";

enum Place {
    All,
    /// From 1.
    Numbered(usize),
}

/// The place that a text behind `$` names: as a whole word, so that `$10` and `$ARGUMENTS_FILE` are none.
fn place_of(text: &str) -> Option<Place> {
    let ends = |length: usize| !text[length..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    if text.starts_with(ALL) && ends(ALL.len()) {
        return Some(Place::All);
    }
    let number = text.chars().next()?.to_digit(10).filter(|number| *number > 0 && ends(1))?;
    Some(Place::Numbered(number as usize))
}

/// The words as a shell divides them; without its quotes if they do not match.
fn words(arguments: &str) -> Vec<String> {
    let plain = || arguments.split_whitespace().map(str::to_owned).collect();
    shlex::split(arguments).unwrap_or_else(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_words_without_a_place_follow_the_text() {
        for (text, arguments, expected) in [
            ("Deploy $ARGUMENTS now.", " to staging ", "Deploy to staging now."),
            ("Deploy $ARGUMENTS now.", "", "Deploy  now."),
            ("From $1 to $2, $2 last.", "a 'b c'", "From a to b c, b c last."),
            ("From $1 to $2.", "a", "From a to $2."),
            ("From $1.", "", "From $1."),
            (r"awk '{print \$1}' for $1", "x", "awk '{print $1}' for x"),
            ("$10 $ARGUMENTS_FILE $HOME $ $", "x", "$10 $ARGUMENTS_FILE $HOME $ $\n\nArguments: x"),
            ("Steps.\n", "it's odd", "Steps.\n\nArguments: it's odd"),
            ("Odd: $2", "it's odd", "Odd: odd"),
            ("Nested: $1", "$ARGUMENTS $2", "Nested: $ARGUMENTS"),
            ("Steps.\n", " ", "Steps.\n"),
            ("é$1é", "ü", "éüé"),
        ] {
            assert_eq!(substituted(text, arguments), expected, "{text:?} {arguments:?}");
        }
    }
}
