//! The text of titles: cleaning and numbering. A store decides which session has which title.

use crate::SessionError;

/// Longer titles are refused, not cut.
const LONGEST: usize = 100;

/// A title with a number. A long title is cut to make room for the number.
pub fn numbered(base: &str, number: u64) -> String {
    let suffix = format!(" #{number}");
    let room = LONGEST.saturating_sub(suffix.chars().count());
    let cut: String = base.chars().take(room).collect();
    format!("{}{suffix}", cut.trim_end())
}

/// Splits a title into its base and its number. Only a number in the format of [`numbered`] counts.
pub fn split(title: &str) -> (&str, Option<u64>) {
    if let Some((base, digits)) = title.rsplit_once(" #")
        && let Ok(number) = digits.parse::<u32>()
        && number > 0
        && number.to_string() == digits
        && !base.is_empty()
    {
        return (base, Some(number.into()));
    }
    (title, None)
}

/// Cleans a title: one line without characters that disturb a terminal or a list. `None` if nothing is left.
pub fn clean(title: &str) -> Result<Option<String>, SessionError> {
    let visible: String =
        title.chars().filter(|c| c.is_whitespace() || !(c.is_control() || is_invisible(*c))).collect();
    let title = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = title.chars().count();
    if length > LONGEST {
        return Err(SessionError::TitleTooLong { length, most: LONGEST });
    }
    Ok((!title.is_empty()).then_some(title))
}

/// Whether a character has no width, changes the direction of text, or marks annotations and objects.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_number_is_split_from_a_title() {
        for (title, base, number) in [
            ("Alpha #2", "Alpha", Some(2)),
            ("Alpha #2 #3", "Alpha #2", Some(3)),
            ("C #1 tips", "C #1 tips", None),
            ("Alpha #02", "Alpha #02", None),
            ("Alpha #0", "Alpha #0", None),
            ("Alpha #+2", "Alpha #+2", None),
            ("Alpha #99999999999999999999", "Alpha #99999999999999999999", None),
            ("#2", "#2", None),
            (" #2", " #2", None),
        ] {
            assert_eq!(split(title), (base, number), "{title}");
        }
    }
}
