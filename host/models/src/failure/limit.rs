//! The window that a refusal names.

/// Numbers outside this range are neither the size of a window nor that of a request.
const PLAUSIBLE: std::ops::RangeInclusive<u32> = 1_024..=10_000_000;

/// Words directly before the size of a window, in lower case.
const BEFORE: &[&str] = &[
    // `208310 tokens > 200000 maximum`
    " > ",
    "context length is",
    "context length of",
    "context length:",
    "context window is",
    "context window of",
    "context window:",
    "context size is",
    "context size of",
    "context size (",
    "maximum model length is",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed is",
    "maximum allowed input length is",
    "maximum prompt length is",
    "maximum input length is",
    "maximum length of",
    "range of input length should be [1,",
    "max_model_len is",
    "max_model_len=",
    "at most",
    "limit of",
    "limit is",
    "最大长度为",
    "最大长度是",
    "上下文长度为",
    "上下文长度是",
];

/// Words directly behind the size of a window.
const BEHIND: &[&str] = &[" maximum", " token limit", " token maximum", " token context", " tokens maximum"];

/// The size of the window, if a refusal of a request that is too long names it: by the words around it, or as the smaller of
/// several numbers, where the largest is what was sent.
pub(crate) fn stated(message: &str) -> Option<u32> {
    let text = message.to_lowercase();
    let before = BEFORE.iter().filter_map(|words| leading(text.split_once(words)?.1));
    let behind = BEHIND.iter().filter_map(|words| trailing(text.split_once(words)?.0));
    before.chain(behind).find(|limit| is_plausible(*limit)).or_else(|| smaller(&text))
}

/// The size of the window, if a refusal compares it with what was sent, about so many tokens, or has one number that may be it: less than
/// what was sent, and not a small part of it, as the number of an error is.
pub fn limit_below(message: &str, sent: u32) -> Option<u32> {
    let plausible: Vec<u32> = numbers(message).into_iter().filter(|number| is_plausible(*number)).collect();
    if is_comparison(&plausible, sent) {
        return smaller(message);
    }
    let number = *plausible.first().filter(|number| plausible.iter().all(|other| other == *number))?;
    let (wide, sent) = (u64::from(number), u64::from(sent));
    (wide * 10 < sent * 9 && wide * 4 >= sent).then_some(number)
}

/// Whether the numbers of a refusal describe a size. One number is enough if it is near the size of the request or the window, or
/// if it may be a window that is smaller than the request. Two numbers are enough if the larger may be the size of the request.
/// The ranges are wide, because a server's count differs from the estimate.
pub(crate) fn names_size(message: &str, sent: u32, window: u32) -> bool {
    let plausible: Vec<u32> = numbers(message).into_iter().filter(|number| is_plausible(*number)).collect();
    if is_comparison(&plausible, sent) {
        return true;
    }
    let (sent, window) = (f64::from(sent), f64::from(window));
    let is_within = |number: f64, least: f64, most: f64| (sent * least..=sent * most).contains(&number);
    let near = |number: &u32| {
        let is_round = number.is_multiple_of(512) || number.is_multiple_of(1000);
        let number = f64::from(*number);
        is_within(number, 0.75, 1.35)
            || is_round && is_within(number, 0.55, 1.0)
            || (number - window).abs() <= window / 50.0
    };
    plausible.iter().any(near)
}

/// Whether the larger of two numbers may be what was sent, and the other one a window.
fn is_comparison(plausible: &[u32], sent: u32) -> bool {
    let most = plausible.iter().copied().max().unwrap_or_default();
    let less = plausible.iter().copied().filter(|number| *number < most).max();
    let (wide, sent) = (u64::from(most), u64::from(sent));
    wide * 10 >= sent * 4 && wide * 10 <= sent * 25 && less.is_some_and(|less| less >= most / 8)
}

/// The largest number below the largest one, without the parts of a sum.
fn smaller(text: &str) -> Option<u32> {
    let mut numbers: Vec<u32> = numbers(text).into_iter().filter(|number| is_plausible(*number)).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.dedup();
    let (used, others) = numbers.split_first()?;
    let is_part = |number: u32| others.iter().any(|other| number.checked_add(*other) == Some(*used));
    others.iter().copied().find(|number| !is_part(*number))
}

/// Whether a number may be the size of a window.
pub(crate) fn is_plausible(limit: u32) -> bool {
    PLAUSIBLE.contains(&limit)
}

/// The zeros of scripts with digits of their own.
const ZEROS: &[char] = &[
    '\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}', '\u{be6}', '\u{c66}', '\u{ce6}',
    '\u{d66}', '\u{e50}', '\u{ed0}', '\u{1040}', '\u{17e0}', '\u{ff10}',
];

/// A digit of any script as one of ASCII.
fn ascii_digit(character: char) -> char {
    let value = |zero: &char| u32::from(character).checked_sub(u32::from(*zero)).filter(|value| *value < 10);
    let value = if character.is_ascii() { None } else { ZEROS.iter().find_map(value) };
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(character)
}

/// The numbers of a text, in order: `16384`, `16,384`, `16.384`, `16 384`, `16k`, `١٦٣٨٤`. Digits within words are left out.
pub(crate) fn numbers(text: &str) -> Vec<u32> {
    let characters: Vec<char> = text.chars().map(ascii_digit).collect();
    let digits = |at: usize| characters[at..].iter().take_while(|character| character.is_ascii_digit()).count();
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let first = digits(at);
        if first == 0 {
            at += 1;
            continue;
        }
        let is_within_word = at > 0 && (characters[at - 1].is_ascii_alphabetic() || characters[at - 1] == '_');
        let mut written: String = characters[at..at + first].iter().collect();
        at += first;
        let is_grouped = first <= 3;
        while is_grouped
            && characters.get(at).is_some_and(|mark| {
                matches!(mark, ',' | '.' | '\'' | '’' | '_' | ' ' | '\u{a0}' | '\u{202f}' | '٬' | '٫' | '，')
            })
            && digits(at + 1) == 3
        {
            written.extend(&characters[at + 1..at + 4]);
            at += 4;
        }
        // The rest of a decimal number says nothing about sizes.
        if characters.get(at) == Some(&'.') && digits(at + 1) > 0 {
            at += 1 + digits(at + 1);
        }
        let unit = match characters.get(at).map(char::to_ascii_lowercase) {
            Some('k') => 1_000,
            Some('m') => 1_000_000,
            _ => 1,
        };
        let is_in_word = |at: usize| characters.get(at).is_some_and(|next| next.is_ascii_alphabetic() || *next == '_');
        let ends_in_word = if unit > 1 { is_in_word(at + 1) } else { is_in_word(at) };
        if let Some(number) = written.parse::<u32>().ok().and_then(|number| number.checked_mul(unit))
            && !is_within_word
            && !ends_in_word
        {
            numbers.push(number);
        }
    }
    numbers
}

/// The number at the start of a text.
fn leading(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|character| !is_of_number(character)).unwrap_or(text.len());
    parsed(&text[..end])
}

/// The number at the end of a text.
fn trailing(text: &str) -> Option<u32> {
    let start = text
        .rfind(|character| !is_of_number(character))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    parsed(&text[start..])
}

/// Digits, and the commas between thousands.
pub(super) fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || character == ','
}

fn parsed(digits: &str) -> Option<u32> {
    digits.trim_end_matches(',').replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_named_in_several_ways() {
        for (message, limit) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
                Some(8_192),
            ),
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(200_000)),
            ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease it", Some(200_000)),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("This model's maximum prompt length is 131072 but the request contains 200000 tokens.", Some(131_072)),
            ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", Some(32_768)),
            ("Range of input length should be [1, 129024]", Some(129_024)),
            ("the prompt exceeds the 200,000 token limit", Some(200_000)),
            ("Your input exceeds the context window of this model.", None),
            ("上下文长度为 32768", Some(32_768)),
            ("context length is 512", None),
            ("context length is 99999999999", None),
            ("request 123456 failed", None),
            ("", None),
            // No words around the numbers are known.
            ("we take 16 384, you gave 18 000", Some(16_384)),
            ("18.000 Token, erlaubt sind 16.384", Some(16_384)),
            ("請求 18000 トークン、16k まで", Some(16_000)),
            ("30000 tokens (28000 in the talk, 2000 behind it), 8192 are possible", Some(8_192)),
            ("your 18000 tokens", None),
            ("request req_16384 of 18000 tokens", None),
        ] {
            assert_eq!(stated(message), limit, "{message}");
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, expected) in [
            ("16384", vec![16_384]),
            ("16,384 and 1.048.576 and 128k, 1M", vec![16_384, 1_048_576, 128_000, 1_000_000]),
            ("1.5 of 200,000.", vec![1, 200_000]),
            ("gpt4, v2 and id_77, 3rd, 99999999999", vec![]),
            ("(18000+200=18200)", vec![18_000, 200, 18_200]),
            ("上限16384个", vec![16_384]),
            ("1,2,3", vec![1, 2, 3]),
            ("۱۸۰۰۰ از ۱۶٬۳۸۴، १८००० ๑๖๓๘๔", vec![18_000, 16_384, 18_000, 16_384]),
            ("١٨٠٠٠ ＞ １６３８４", vec![18_000, 16_384]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn one_number_is_the_window_only_if_it_is_less_than_what_was_sent() {
        assert_eq!(limit_below("no more than 16384 fit", 20_000), Some(16_384));
        assert_eq!(limit_below("18000 do not fit", 18_500), None);
        assert_eq!(limit_below("context window exceeds limit (2013)", 18_500), None, "the number of an error");
        assert_eq!(limit_below("18000 or 16384", 30_000), Some(16_384));
        assert_eq!(limit_below("90000 or 16384", 30_000), None);
        assert!(names_size("18000 do not fit", 19_000, 128_000) && names_size("128000", 19_000, 128_000));
        assert!(!names_size("error 5000", 19_000, 128_000) && !names_size("", 19_000, 128_000));
        for (message, is_size) in [
            ("18000 av 16384", true),
            ("16384", true),
            ("16000", true),
            ("error 16123", false),
            ("60000 / 50000", true),
            ("2000 / 1800", false),
            ("40000 / 1200", false),
            ("90000 / 80000", false),
        ] {
            assert_eq!(names_size(message, 26_000, 128_000), is_size, "{message}");
        }
    }
}
