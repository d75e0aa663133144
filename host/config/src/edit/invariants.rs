//! The promises of every change of a `config.yaml`, whatever the file contains. The property tests here and the fuzz target
//! `config`, which includes this file and `text.rs`, check the same promises. A broken promise panics.
#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value};

use super::text::{self, Refused, at, list, read};

/// What the commands do to the file.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Set(Value),
    Remove,
    Add(String),
    Take(String),
}

impl Change {
    fn apply(&self, text: &str, path: &[&str]) -> Result<String, Refused> {
        match self {
            Self::Set(value) => text::set(text, path, value),
            Self::Remove => text::remove(text, path),
            Self::Add(item) => text::add(text, path, item),
            Self::Take(item) => text::take(text, path, item),
        }
    }
}

/// Changes a text and checks the promises. All other values stay, in their order, and so do comments. A second run of the same
/// change does nothing. A change that cannot keep this is refused.
pub(crate) fn changed(text: &str, path: &[&str], change: &Change) -> Result<String, Refused> {
    let after = change.apply(text, path)?;
    if read(text).is_err() {
        // There is nothing to take out of what cannot be read.
        assert_eq!(after, text);
        return Ok(after);
    }
    let (was, is) = (read(text).unwrap(), read(&after).unwrap_or_else(|Refused(why)| panic!("{why} in {after:?}")));
    assert_eq!(without(&was, path), without(&is, path), "{change:?} in {text:?} gives {after:?}");
    let now = at(&is, path);
    match change {
        Change::Set(value) => assert_eq!(now, Some(value), "{after:?}"),
        Change::Remove => assert_eq!(now, None, "{after:?}"),
        Change::Add(item) => {
            let mut wanted = list(text, path);
            if !wanted.iter().any(|known| known == item) {
                wanted.push(item.as_str().into());
            }
            assert_eq!(list(&after, path), wanted, "{after:?}");
        }
        Change::Take(item) => {
            let mut wanted = list(text, path);
            wanted.retain(|known| known != item);
            assert_eq!(list(&after, path), wanted, "{after:?}");
        }
    }
    if after == text {
        return Ok(after);
    }
    // A replaced or removed value takes the comments inside it along.
    let is_new = match change {
        Change::Set(_) => at(&was, path).is_none_or(Value::is_null),
        Change::Add(_) => at(&was, path).is_none_or(|value| value.is_null() || value.is_array()),
        Change::Remove | Change::Take(_) => false,
    };
    if is_new {
        let mut lines = after.lines().map(str::trim);
        for comment in text.lines().map(str::trim).filter(|line| line.starts_with('#')) {
            assert!(lines.any(|line| line == comment), "{comment:?} is lost or moved: {text:?} gives {after:?}");
        }
    }
    assert_eq!(change.apply(&after, path).as_ref(), Ok(&after), "{change:?} again in {after:?}");
    if let Change::Add(item) = change
        && let Ok(back) = text::take(&after, path, item)
    {
        assert_eq!(without(&read(&back).unwrap(), path), without(&was, path), "{back:?}");
        assert_eq!(list(&back, path), list(text, path), "{back:?}");
    }
    Ok(after)
}

/// The values of the file without this key, in their order. Empty sections are left out.
fn without(said: &Value, path: &[&str]) -> String {
    fn cut(section: &mut Map<String, Value>, path: &[&str]) {
        let Some((name, rest)) = path.split_first() else { return };
        let Some(value) = section.get_mut(*name) else { return };
        if let Value::Object(inner) = value
            && !rest.is_empty()
        {
            cut(inner, rest);
        }
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if rest.is_empty() || is_empty {
            section.shift_remove(*name);
        }
    }
    let mut said = said.clone();
    if let Value::Object(section) = &mut said {
        cut(section, path);
    }
    said.to_string()
}

#[cfg(test)]
mod tests;
