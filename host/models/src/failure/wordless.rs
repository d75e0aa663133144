//! Decides whether a refusal may be about the size of the request when it is in a language without a list of words.
//!
//! Without words, other signs remain: the size of the request, names of parameters, which are the same in every language, and
//! technical terms, which mostly are. An English refusal that the lists do not know is about something else, unless the window is
//! nearly full.

use super::size;

/// Words that English sentences have, and hardly any other language.
const ENGLISH: &[&str] = &[
    "the", "this", "your", "you", "not", "invalid", "must", "with", "and", "cannot", "failed", "unknown", "too",
    "does", "was", "been", "should", "is", "missing", "wrong",
];
/// Technical terms that other languages borrow, for what is not the size of a request.
const TERMS: &[&str] = &[
    "api",
    "json",
    "tool",
    "tools",
    "function",
    "functions",
    "url",
    "http",
    "https",
    "role",
    "roles",
    "key",
    "login",
    "oauth",
    "bearer",
    "regex",
    "utf",
    "base64",
    "mime",
    "jpeg",
    "png",
    "xml",
    "yaml",
    "sdk",
    "ip",
];
/// Parts of names of what is counted.
const SIZES: &[&str] = &[
    "token",
    "context",
    "prompt",
    "input",
    "message",
    "length",
    "n_ctx",
    "max_model_len",
    "request",
    "error",
    "window",
    "content",
];
/// With fewer letters outside of ASCII, the foreign word may be only a name.
const LEAST_LETTERS: usize = 2;

/// Whether a message names a parameter that is no size: an identifier, or a single word in quotes.
pub(super) fn names_parameter(text: &str) -> bool {
    let is_of_name = |each: char| each.is_ascii_alphanumeric() || "_[]".contains(each);
    let is_quote = |each: Option<char>| each.is_some_and(|each| "'\"`‘’“”«»„".contains(each));
    let mut start = 0;
    let mut name = None;
    for (at, each) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_of_name(each), name) {
            (true, None) => {
                start = at;
                name = Some(text[..at].chars().next_back());
            }
            (false, Some(before)) => {
                let word = &text[start..at];
                let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
                let is_identifier = letters >= 2 && (word.trim_matches('_').contains('_') || word.contains('['));
                let is_quoted = letters >= 2 && letters == word.len() && is_quote(before) && is_quote(Some(each));
                if (is_identifier || is_quoted) && !SIZES.iter().any(|size| word.contains(size)) {
                    return true;
                }
                name = None;
            }
            _ => {}
        }
    }
    false
}

/// Whether a message in lower case is in a language other than English. Only letters outside of ASCII show it: an English sentence can do
/// without the words of any list.
fn is_foreign(text: &str) -> bool {
    let mut words = text.split(|each: char| !each.is_alphanumeric());
    let letters = text.chars().filter(|each| !each.is_ascii() && each.is_alphabetic()).count();
    letters >= LEAST_LETTERS && !words.any(|word| ENGLISH.contains(&word))
}

/// Whether a refusal in lower case of a request of about `sent` tokens is worth a shorter one. A large part of a window is enough if nothing
/// says what else was refused; a smaller one where it names what is counted. The window may be a guess.
pub(super) fn may_be_size(text: &str, sent: u32, window: u32) -> bool {
    let words = || text.split(|each: char| !each.is_ascii_alphanumeric());
    if !is_foreign(text) || words().any(|word| TERMS.contains(&word)) {
        return false;
    }
    let least = if size::names_counted(text) { window / 16 } else { window / 8 };
    sent >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_in_an_unknown_language_may_be_about_size_unless_it_names_something_else() {
        for message in
            ["Nuk mund ta pranoj këtë bisedë", "Жазба өтө узун", "მოთხოვნა ძალიან გრძელია", "Þessi beiðni er of löng"]
        {
            assert!(may_be_size(&message.to_lowercase(), 20_000, 128_000), "{message}");
            assert!(!may_be_size(&message.to_lowercase(), 7_000, 128_000), "{message}");
        }
        for message in [
            "Ogiltig API-nyckel",
            "Неверный ключ API",
            "Chaîne JSON mal formée à la ligne 3",
            "Invalid value",
            "The server did not like this",
            "Bad Request",
            "Bad request from upstream provider",
            "Upstream returned no usable response, giving up",
            "Café provider returned error code four",
            "Ombi lako ni refu mno kwa mfumo huu",
            "boom",
            "",
        ] {
            assert!(!may_be_size(&message.to_lowercase(), 20_000, 128_000), "{message}");
        }
    }

    #[test]
    fn parameters_have_their_names_in_every_language() {
        for (message, is_named) in [
            ("Okänt fält 'foo'", true),
            ("Tuntematon kenttä top_k", true),
            ("Ошибка в tools[3]", true),
            ("不支持的参数 `seed`", true),
            ("För många tokens: max_prompt_tokens 16384", false),
            ("Begäran är för lång", false),
            ("'messages' är för långa", false),
            ("Es geht nicht: 'zu lang für mich'", false),
        ] {
            assert_eq!(names_parameter(&message.to_lowercase()), is_named, "{message}");
        }
    }
}
