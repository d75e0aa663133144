//! Redaction of secrets wherever configuration is shown.

use hermes_models::redact;
use serde_json::Value;

/// Ends of names whose values are secrets.
const SECRET_NAMES: &[&str] = &[
    "api_key",
    "api_keys",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "authorization",
    "private_key",
];
/// Names of sections all of whose values are secrets.
const HOLDERS: &[&str] = &["env", "headers"];
/// Prefixes of the keys of known services.
const KEY_STARTS: &[&str] = &[
    "sk-",
    "pk-",
    "rk-",
    "gsk_",
    "xai-",
    "AIza",
    "ghp_",
    "gho_",
    "github_pat_",
    "hf_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
];
/// The least length of a run of letters and digits, with both in it, that counts as a key.
const LONG_RUN: usize = 32;

/// A value with all secrets redacted, recognised by the name of their key or by their form.
pub fn redacted(value: Value) -> Value {
    match value {
        Value::Object(section) => section
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    value if is_secret_name(&name) => hidden(value),
                    // Variables and headers of servers: any of them may be a key.
                    Value::Object(values) if HOLDERS.contains(&name.as_str()) => {
                        values.into_iter().map(|(name, value)| (name, hidden(value))).collect()
                    }
                    value => redacted(value),
                };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::String(text) => Value::String(redacted_text(&text)),
        other => other,
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|secret| name.ends_with(secret))
}

fn hidden(value: Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() || is_variable(&text) => Value::String(text),
        Value::String(text) => Value::String(redact(&text)),
        Value::Null => Value::Null,
        Value::Array(items) => items.into_iter().map(hidden).collect(),
        _ => Value::String("***".to_owned()),
    }
}

/// A variable that is not set. Its name is not a secret.
fn is_variable(text: &str) -> bool {
    text.strip_prefix("${").and_then(|text| text.strip_suffix('}')).is_some_and(|name| !name.contains(['$', '{', '}']))
}

/// A text with everything that looks like a key redacted, and the password of an address.
pub fn redacted_text(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    // Whether an address has begun.
    let mut has_scheme = false;
    while !rest.is_empty() {
        let end = rest.find(|character: char| !is_key_character(character)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        has_scheme |= shown.ends_with("://");
        let password = after.starts_with('@') && shown.ends_with(':') && !shown.ends_with("://") && has_scheme;
        if password {
            shown.push_str("***");
        } else if looks_like_key(run) {
            shown.push_str(&redact(run));
        } else {
            shown.push_str(run);
        }
        let mut characters = after.chars();
        shown.extend(characters.next());
        rest = characters.as_str();
    }
    shown
}

fn is_key_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
}

fn looks_like_key(run: &str) -> bool {
    if KEY_STARTS.iter().any(|start| run.starts_with(start)) {
        return run.len() >= 16;
    }
    // Names of models and files contain words; keys do not.
    let longest = run.split(['-', '_', '.']).map(str::len).max().unwrap_or_default();
    let has = |test: fn(&char) -> bool| run.chars().any(|character| test(&character));
    longest >= LONG_RUN && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let value = json!({
            "api_key": "sk-0123456789abcdefghij", "TOKEN": "short", "client-secret": 12345, "password": ["a"],
            "api_keys": ["sk-0123456789abcdefghij", "${KEY}"],
            "max_tokens": 5, "api_key_env": "NAME", "empty_token": "", "other_token": null, "later_api_key": "${KEY}",
            "headers": {"Authorization": "Bearer abcdefghijklmnopqrst", "X-Workspace": "mine", "X-Key": "${KEY}"},
            "env": {"PGUSER": "ada"},
        });
        let expected = json!({
            "api_key": "sk-012...ghij", "TOKEN": "***", "client-secret": "***", "password": ["***"],
            "api_keys": ["sk-012...ghij", "${KEY}"],
            "max_tokens": 5, "api_key_env": "NAME", "empty_token": "", "other_token": null, "later_api_key": "${KEY}",
            "headers": {"Authorization": "Bearer...qrst", "X-Workspace": "***", "X-Key": "${KEY}"},
            "env": {"PGUSER": "***"},
        });
        assert_eq!(redacted(value), expected);
    }

    #[test]
    fn secrets_are_known_by_how_they_look() {
        for (text, shown) in [
            ("sk-0123456789abcdefghij", "sk-012...ghij"),
            ("Bearer ghp_0123456789abcdefghij", "Bearer ghp_01...ghij"),
            ("http://h/v1?key=AIza0123456789abcdefghij", "http://h/v1?key=AIza01...ghij"),
            ("https://me:hunter2@host/v1", "https://me:***@host/v1"),
            ("0123456789abcdef0123456789abcdef", "012345...cdef"),
            ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
            ("/a/path/to/some-folder/claude-sonnet-4-5-20250929", "/a/path/to/some-folder/claude-sonnet-4-5-20250929"),
            ("äöü", "äöü"),
        ] {
            assert_eq!(redacted_text(text), shown);
        }
    }
}
