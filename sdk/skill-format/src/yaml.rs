//! The subset of YAML that front matter needs: texts, lists and maps.
//!
//! Numbers and booleans stay texts. An alias yields nothing, so a text cannot expand beyond its own size.

use granit_parser::{Event, Parser, ScalarStyle};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Yaml {
    /// Empty, `~`, `null` or an alias.
    Nothing,
    Text(String),
    List(Vec<Yaml>),
    /// In source order.
    Map(Vec<(Yaml, Yaml)>),
}

/// Deepest nesting. Deeper than anyone writes by hand, and shallow enough for recursion.
const DEPTH: usize = 32;

/// A container that is still being filled.
enum Open {
    List(Vec<Yaml>),
    /// The entries so far, and the key whose value comes next.
    Map(Vec<(Yaml, Yaml)>, Option<Yaml>),
}

/// Parses the first document of a text.
pub(crate) fn parse(text: &str) -> Result<Yaml, String> {
    let mut open: Vec<Open> = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, _) = next.map_err(|error| error.to_string())?;
        if open.len() > DEPTH {
            return Err(format!("it is nested more than {DEPTH} deep"));
        }
        let complete = match event {
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(Vec::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list)) => Yaml::List(list),
                Some(Open::Map(map, _)) => Yaml::Map(map),
                None => Yaml::Nothing,
            },
            Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(&*text, "" | "~" | "null") => Yaml::Nothing,
            Event::Scalar(text, ..) => Yaml::Text(text.into_owned()),
            Event::Alias(_) => Yaml::Nothing,
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(complete),
            Some(Open::List(list)) => list.push(complete),
            Some(Open::Map(map, key)) => match key.take() {
                None => *key = Some(complete),
                Some(key) => map.push((key, complete)),
            },
        }
    }
    Ok(Yaml::Nothing)
}

impl Yaml {
    /// The value of a key, if this is a map that has one. A key in capital letters counts if there is no exact one.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(map) = self else { return None };
        let is_alike = |name: &Self| name.text().is_some_and(|name| name.eq_ignore_ascii_case(key));
        let exact = map.iter().find(|(name, _)| name.text() == Some(key));
        let (_, value) = exact.or_else(|| map.iter().find(|(name, _)| is_alike(name)))?;
        Some(value).filter(|value| **value != Self::Nothing)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Adds all texts, keys included.
    pub(crate) fn collect(&self, texts: &mut Vec<String>) {
        match self {
            Self::Nothing => {}
            Self::Text(text) => texts.push(text.clone()),
            Self::List(items) => items.iter().for_each(|item| item.collect(texts)),
            Self::Map(entries) => entries.iter().for_each(|(key, value)| {
                key.collect(texts);
                value.collect(texts);
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_lists_and_maps_are_parsed() {
        let yaml = parse("a: 'x: y'\nb: [1, true, {c: d}]\ne:\nf: |\n  two\n  lines\n").unwrap();
        assert_eq!(yaml.get("a").and_then(Yaml::text), Some("x: y"));
        let text = |text: &str| Yaml::Text(text.to_owned());
        let inner = Yaml::Map(vec![(text("c"), text("d"))]);
        assert_eq!(yaml.get("b"), Some(&Yaml::List(vec![text("1"), text("true"), inner])));
        assert_eq!(yaml.get("e"), None);
        assert_eq!(yaml.get("f").and_then(Yaml::text), Some("two\nlines\n"));
        assert_eq!(parse(""), Ok(Yaml::Nothing));
    }

    #[test]
    fn invalid_yaml_is_refused_with_the_reason() {
        assert!(parse("description: Use when: a PDF is given").is_err_and(|reason| !reason.is_empty()));
        assert!(parse("a: [b").is_err());
    }

    #[test]
    fn aliases_expand_to_nothing() {
        let yaml = parse("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]").unwrap();
        assert_eq!(yaml.get("c"), Some(&Yaml::List(vec![Yaml::Nothing, Yaml::Nothing])));
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(parse(&format!("{}x{}", "[".repeat(DEPTH), "]".repeat(DEPTH))).is_ok());
        assert!(parse(&format!("{}x{}", "[".repeat(DEPTH + 1), "]".repeat(DEPTH + 1))).is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
