//! Secrets that the host puts into requests, each restricted to one audience.

use std::fmt;

use super::redaction::REDACTED;
use super::site::Site;

/// A shorter value cannot be recognised in an answer, and so not redacted.
const SHORTEST: usize = 8;
/// A longer value does not fit into the headers of servers.
const LONGEST: usize = 4 << 10;

/// A secret for one audience.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The plugin's name for it.
    pub name: String,
    /// The variable with its value, for messages.
    pub variable: String,
    /// Its audience.
    pub audience: Site,
    value: Result<String, &'static str>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} for {}, {:?})", self.name, self.audience, self.value.as_ref().map(|_| REDACTED))
    }
}

impl Secret {
    /// A secret with the value of its variable.
    pub fn new(name: String, variable: String, audience: Site, value: Option<String>) -> Self {
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let value = match value {
            None => Err("is not set"),
            Some(value) if value.len() < SHORTEST => {
                Err("has fewer than 8 characters, too few to keep it out of answers")
            }
            Some(value) if value.len() > LONGEST => Err("has more than 4096 characters"),
            Some(value) if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => {
                Err("has characters that no header can carry")
            }
            Some(value) => Ok(value),
        };
        Self { name, variable, audience, value }
    }

    /// The value, or why it cannot be sent.
    pub(super) fn value(&self) -> Result<&str, &'static str> {
        self.value.as_deref().map_err(|why| *why)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_redaction_could_not_find_is_not_sent() {
        let audience: Site = "https://api.example.org/".parse().unwrap();
        let of = |value: Option<&str>| Secret::new("k".into(), "K".into(), audience.clone(), value.map(str::to_owned));
        let long = "x".repeat(4097);
        for value in ["", "  \n", "short12", "two\nlines of it", "kön1gskey", &long] {
            assert!(of(Some(value)).value().is_err(), "{value:?}");
        }
        assert!(of(None).value().is_err());
        let key = of(Some(" a key with a newline\n"));
        assert_eq!(key.value(), Ok("a key with a newline"));
        assert!(!format!("{key:?}").contains("newline"), "{key:?}");
    }
}
