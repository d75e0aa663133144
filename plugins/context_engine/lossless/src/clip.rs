//! Shortening and formatting of texts, numbers and times.

use hermes_guest_engine::budget;

/// Joins all lines, collapses white space and control characters to single spaces, and cuts after `most` characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut blank = false;
    for character in text.chars() {
        if is_break(character) || character.is_whitespace() {
            blank = count > 0;
            continue;
        }
        if count + usize::from(blank) >= most {
            line.push('…');
            return line;
        }
        if blank {
            line.push(' ');
            count += 1;
            blank = false;
        }
        line.push(character);
        count += 1;
    }
    line
}

/// Whether the character ends a line, or changes the direction or position of text.
pub(crate) fn is_break(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The largest character boundary up to `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The beginning and end of a text within `most` bytes, with a mark between them that says how much is left out.
pub(crate) fn ends(text: &str, most: usize, whole: &str) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = floor(text, most * 2 / 3);
    let mut tail = text.len() - (most / 3).min(text.len());
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let mark = format!("[… {} bytes left out; whole: {whole} …]", tail - head);
    format!("{}\n{mark}\n{}", &text[..head], &text[tail..])
}

/// The largest cap such that the sizes, each limited to it, sum to at most `budget`; the maximum if all fit.
pub(crate) fn cap(sizes: &[usize], budget: usize) -> usize {
    let cap = budget::cap(sizes.iter().map(|size| *size as u64), budget as u64);
    cap.and_then(|cap| usize::try_from(cap).ok()).unwrap_or(usize::MAX)
}

/// A number with a thousands separator: `8,554`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Unix milliseconds as `2026-01-02 15:04` in UTC. A local time zone could change later, but the text is frozen.
pub(crate) fn time(milliseconds: u64) -> String {
    let minutes = milliseconds / 60_000;
    let (days, minutes) = (minutes / 1_440, minutes % 1_440);
    // Civil calendar in 400-year eras whose years begin in March.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_contains_no_line_breaks() {
        let text = "  a\r\n\tb\u{2028}c\u{202e}d\0e  ";
        assert_eq!(line(text, 80), "a b c d e");
        assert_eq!(line("eins zwei drei", 9), "eins zwei…");
        assert_eq!(line("渡轮晚点", 2), "渡轮…");
    }

    #[test]
    fn both_ends_stay_and_no_character_is_split() {
        let text = format!("begin{}end", "渡".repeat(1_000));
        let short = ends(&text, 90, "#7");
        assert!(short.starts_with("begin渡") && short.ends_with("渡end") && short.contains("whole: #7"), "{short}");
        assert!(short.len() < 160);
        assert_eq!(ends("short", 90, "#7"), "short");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [(0, "0"), (999, "999"), (8_554, "8,554"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn times_follow_the_civil_calendar() {
        for (milliseconds, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400_000, "2000-02-29 00:00"),
            (1_765_233_665_292, "2025-12-08 22:41"),
            (4_107_542_399_000, "2100-02-28 23:59"),
            (4_107_542_400_000, "2100-03-01 00:00"),
        ] {
            assert_eq!(time(milliseconds), text);
        }
    }
}
