//! Keys: a type that cannot be printed by accident.

use std::fmt;

/// A key, or several keys with commas between them. `Debug` and `Display` show only what [`redact`] leaves.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A key from its text, blanks around it removed; none where nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The single keys, without blanks around them.
    pub fn parts(&self) -> Vec<Secret> {
        self.0.split(',').filter_map(Secret::new).collect()
    }

    /// The key itself, for the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text with every occurrence of the key made unreadable: servers like to quote what they refuse.
    pub(crate) fn scrub(&self, text: &str) -> String {
        // Shorter ones are placeholders such as `x`, and would tear words apart.
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&self.0, "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", redact(&self.0))
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.0))
    }
}

/// A key as it may be shown: its first six and last four characters, or nothing of a key below eighteen. Of several keys with
/// commas between them, each is shown like this.
///
/// ```
/// assert_eq!(hermes_models::redact("sk-0123456789abcdefgh"), "sk-012...efgh");
/// assert_eq!(hermes_models::redact("hunter2"), "***");
/// ```
pub fn redact(key: &str) -> String {
    key.split(',').map(|key| redact_one(key.trim())).collect::<Vec<_>>().join(", ")
}

fn redact_one(key: &str) -> String {
    let characters: Vec<char> = key.chars().collect();
    if characters.len() < 18 {
        return "***".to_owned();
    }
    let first: String = characters[..6].iter().collect();
    let last: String = characters[characters.len() - 4..].iter().collect();
    format!("{first}...{last}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed_whole() {
        let long = Secret::new(" sk-0123456789abcdefgh\n").unwrap();
        assert_eq!(format!("{long} {long:?}"), "sk-012...efgh Secret(sk-012...efgh)");
        let short = Secret::new("sk-0123456789abcd").unwrap();
        assert_eq!(format!("{short} {short:?}"), "*** Secret(***)");
        let both = Secret::new("sk-0123456789abcdefgh, sk-0123456789").unwrap();
        assert_eq!(both.to_string(), "sk-012...efgh, ***");
        assert_eq!(
            both.parts(),
            [Secret::new("sk-0123456789abcdefgh").unwrap(), Secret::new("sk-0123456789").unwrap()]
        );
        assert!(Secret::new("  ").is_none());
        assert_eq!(redact("äöüäöüäöüäöüäöüäöü"), "äöüäöü...üäöü");
    }
}
