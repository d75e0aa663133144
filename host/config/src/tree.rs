//! YAML as a tree in which every node has its position, so that an error can point at it.

use std::fmt;

use hermes_plugin_host::expand;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{Spanned, UserMessageFormatter};

/// Line and column, both from 1; 0 where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
    /// Whether a `${VARIABLE}` was replaced in it. The text may then be a number, or true or false.
    pub(crate) expanded: bool,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Nothing,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Section(Vec<(String, Place, Node)>),
}

impl Content {
    /// For messages: `a list`.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Content::Nothing => "empty",
            Content::Flag(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "a string",
            Content::List(_) => "a list",
            Content::Section(_) => "a section",
        }
    }
}

/// Why a file is not valid YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) place: Option<Place>,
    pub(crate) why: String,
    pub(crate) fix: &'static str,
}

impl Node {
    /// Parses the only document of a file. An empty file is [`Content::Nothing`].
    pub(crate) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_saphyr::from_str::<Option<Spanned<Raw>>>(text) {
            Ok(None) => Ok(Self { place: Place::default(), content: Content::Nothing, expanded: false }),
            Ok(Some(root)) => Ok(node(root)),
            Err(error) => Err(tab(text, broken(&error))),
        }
    }

    /// Replaces `${NAME}` in texts by what `variable` returns. Names without a value stay and are added to `unresolved`.
    pub(crate) fn expand(&mut self, variable: &dyn Fn(&str) -> Option<String>, unresolved: &mut Vec<(Place, String)>) {
        match &mut self.content {
            Content::Text(text) => {
                *text = expand(text, |name| {
                    let value = variable(name);
                    match value {
                        Some(_) => self.expanded = true,
                        None => unresolved.push((self.place, name.to_owned())),
                    }
                    value
                });
            }
            Content::List(items) => items.iter_mut().for_each(|item| item.expand(variable, unresolved)),
            Content::Section(entries) => {
                entries.iter_mut().for_each(|(_, _, value)| value.expand(variable, unresolved));
            }
            Content::Nothing | Content::Flag(_) | Content::Number(_) => {}
        }
    }

    /// Like [`Node::expand`], but leaves the node at `path` as it is.
    pub(crate) fn expand_outside(
        &mut self,
        path: &[&str],
        variable: &dyn Fn(&str) -> Option<String>,
        unresolved: &mut Vec<(Place, String)>,
    ) {
        let [first, rest @ ..] = path else { return };
        let Content::Section(entries) = &mut self.content else { return self.expand(variable, unresolved) };
        for (name, _, value) in entries {
            if name == first {
                value.expand_outside(rest, variable, unresolved);
            } else {
                value.expand(variable, unresolved);
            }
        }
    }
}

fn broken(error: &serde_saphyr::Error) -> SyntaxError {
    let place = error.location().map(|at| Place { line: at.line(), column: at.column() });
    let text = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    // The diagnostic already names the position.
    let text = text.split(" at line ").next().unwrap_or(&text);
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The library words it as `duplicate mapping key `model` is not allowed here`.
    let key = why.strip_prefix("duplicate mapping key `").and_then(|rest| rest.split_once('`'));
    match key {
        Some((key, _)) => {
            SyntaxError { place, why: format!("the key `{key}` appears twice"), fix: "merge the two entries into one" }
        }
        None => SyntaxError { place, why, fix: "correct the line" },
    }
}

/// Points at a tab in an indentation, the most common mistake: the parser reports the line above it.
fn tab(text: &str, broken: SyntaxError) -> SyntaxError {
    let from = broken.place.map_or(1, |place| place.line).max(1);
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let found = (1u64..)
        .zip(text.lines())
        .skip_while(|(number, _)| *number < from)
        .find_map(|(line, content)| Some((line, content[..indentation(content)].find('\t')?)));
    match found {
        Some((line, before)) if broken.why.contains("tab") => SyntaxError {
            place: Some(Place { line, column: u64::try_from(before).map_or(1, |before| before + 1) }),
            why: "the line is indented with a tab; YAML wants spaces".to_owned(),
            fix: "indent it with spaces",
        },
        _ => broken,
    }
}

fn node(raw: Spanned<Raw>) -> Node {
    let place = Place { line: raw.referenced.line(), column: raw.referenced.column() };
    Node { place, content: raw.value.0, expanded: false }
}

/// A value before its position is attached.
struct Raw(Content);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyContent;

        impl<'de> Visitor<'de> for AnyContent {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::Nothing)
            }

            fn visit_none<E>(self) -> Result<Content, E> {
                Ok(Content::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
                Raw::deserialize(deserializer).map(|raw| raw.0)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Content, E> {
                Ok(Content::Flag(flag))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
                Ok(Content::Number(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
                Ok(Content::Number(number.into()))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Content, E> {
                let number = Number::from_f64(number).ok_or_else(|| E::custom("a number must be finite"))?;
                Ok(Content::Number(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element::<Spanned<Raw>>()? {
                    list.push(node(item));
                }
                Ok(Content::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
                let mut section = Vec::new();
                while let Some((name, value)) = entries.next_entry::<Spanned<String>, Spanned<Raw>>()? {
                    let place = Place { line: name.referenced.line(), column: name.referenced.column() };
                    section.push((name.value, place, node(value)));
                }
                Ok(Content::Section(section))
            }
        }

        deserializer.deserialize_any(AnyContent).map(Raw)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_position() {
        let root = Node::parse("model:\n  default: x\n  context_length: 12000\nplugins: {enabled: [a, b]}\n").unwrap();
        let Content::Section(top) = root.content else { panic!("{root:?}") };
        assert_eq!((top[0].0.as_str(), top[0].1), ("model", Place { line: 1, column: 1 }));
        let Content::Section(model) = &top[0].2.content else { panic!("{top:?}") };
        assert_eq!(model[1].1, Place { line: 3, column: 3 });
        assert_eq!(model[1].2.place, Place { line: 3, column: 19 });
        assert_eq!(model[1].2.content, Content::Number(12_000.into()));
        let Content::Section(plugins) = &top[1].2.content else { panic!("{top:?}") };
        let Content::List(enabled) = &plugins[0].2.content else { panic!("{plugins:?}") };
        assert_eq!(enabled[1].content, Content::Text("b".to_owned()));
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        for (text, line) in [
            ("model: [a\n", 2),
            ("model:\n  default: a\n bad: b\n", 3),
            ("a: 1\na: 2\n", 2),
            ("a: \"b\n", 2),
            ("a: b: c\n", 1),
            ("a:\n\t- b\n", 2),
        ] {
            let broken = Node::parse(text).unwrap_err();
            let place = broken.place.unwrap_or_else(|| panic!("{text:?} gives no place: {broken:?}"));
            assert!(place.line.abs_diff(line) <= 1 && place.line > 0, "{text:?}: {broken:?}");
            assert!(!broken.why.is_empty() && !broken.why.contains('\n'), "{broken:?}");
        }
        assert_eq!(Node::parse("# nothing\n").unwrap().content, Content::Nothing);
    }

    #[test]
    fn a_tab_in_an_indentation_is_found() {
        for (text, line, column) in [("a:\n  b: c\n\td: e\n", 3, 1), ("a:\n  b: 1\n  \tc: 2\n", 3, 3)] {
            let broken = Node::parse(text).unwrap_err();
            assert_eq!(broken.place, Some(Place { line, column }), "{text:?}: {broken:?}");
            assert!(broken.why.contains("tab"), "{broken:?}");
        }
    }
}
