//! YAML as a tree whose every node knows its line: what checks need to point at the place that is wrong.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Spanned, UserMessageFormatter};

/// Line and column, both from 1; 0 where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
    /// Whether it held a `${VARIABLE}`: what it is then depends on the variable's text.
    pub(crate) expanded: bool,
}

/// What a node is.
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
            Content::Text(_) => "a text",
            Content::List(_) => "a list",
            Content::Section(_) => "a section of its own",
        }
    }
}

/// Why a file is no YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) place: Option<Place>,
    pub(crate) why: String,
}

impl Node {
    /// The one document of a file; nothing for an empty file.
    pub(crate) fn parse(text: &str) -> Result<Self, Broken> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_saphyr::from_str::<Option<Spanned<Raw>>>(text) {
            Ok(None) => Ok(Self { place: Place::default(), content: Content::Nothing, expanded: false }),
            Ok(Some(root)) => Ok(node(root)),
            Err(error) => Err(tab(text, broken(&error))),
        }
    }

    /// Replaces `${NAME}` in texts by what `variable` answers; names without an answer stay and are handed back.
    pub(crate) fn expand(&mut self, variable: &dyn Fn(&str) -> Option<String>, unresolved: &mut Vec<(Place, String)>) {
        match &mut self.content {
            Content::Text(text) => {
                let (expanded, changed) = expand(text, variable, |name| unresolved.push((self.place, name.to_owned())));
                if changed {
                    *text = expanded;
                    self.expanded = true;
                }
            }
            Content::List(items) => items.iter_mut().for_each(|item| item.expand(variable, unresolved)),
            Content::Section(entries) => {
                entries.iter_mut().for_each(|(_, _, value)| value.expand(variable, unresolved));
            }
            Content::Nothing | Content::Flag(_) | Content::Number(_) => {}
        }
    }

    /// As [`Node::expand`], but for what stands at a path: somebody else has a say there.
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

    /// Without places.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Nothing => Value::Null,
            Content::Flag(flag) => Value::Bool(*flag),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => items.iter().map(Node::value).collect(),
            Content::Section(entries) => {
                entries.iter().map(|(name, _, node)| (name.clone(), node.value())).collect::<Map<_, _>>().into()
            }
        }
    }
}

fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>, mut unresolved: impl FnMut(&str)) -> (String, bool) {
    let mut expanded = String::new();
    let mut changed = false;
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, opened) = rest.split_at(start);
        expanded.push_str(before);
        let named = opened[2..].split_once('}').filter(|(name, _)| is_name(name));
        let Some((name, after)) = named else {
            expanded.push_str("${");
            rest = &opened[2..];
            continue;
        };
        match variable(name) {
            Some(value) => {
                expanded.push_str(&value);
                changed = true;
            }
            None => {
                expanded.push_str(&opened[..name.len() + 3]);
                unresolved(name);
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    (expanded, changed)
}

fn is_name(name: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|character: char| character.is_ascii_digit())
}

fn broken(error: &serde_saphyr::Error) -> Broken {
    let place = error.location().map(|at| Place { line: at.line(), column: at.column() });
    let text = error.without_snippet().render_with_formatter(&UserMessageFormatter);
    // The place is said once, in front.
    let text = text.split(" at line ").next().unwrap_or(&text);
    let why = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Broken { place, why }
}

/// A tab in an indentation is the commonest slip; the parser reports what it interrupts, which stands above it.
fn tab(text: &str, broken: Broken) -> Broken {
    let from = broken.place.map_or(1, |place| place.line).max(1);
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let found = (1u64..)
        .zip(text.lines())
        .skip_while(|(number, _)| *number < from)
        .find_map(|(line, content)| Some((line, content[..indentation(content)].find('\t')?)));
    match found {
        Some((line, before)) if broken.why.contains("tab") => Broken {
            place: Some(Place { line, column: u64::try_from(before).map_or(1, |before| before + 1) }),
            why: "the line is indented with a tab, and YAML wants blanks".to_owned(),
        },
        _ => broken,
    }
}

fn node(raw: Spanned<Raw>) -> Node {
    let place = Place { line: raw.referenced.line(), column: raw.referenced.column() };
    Node { place, content: raw.value.0, expanded: false }
}

/// What the deserialiser finds, before its place is attached.
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
    fn every_node_knows_its_place() {
        let root = Node::parse("model:\n  default: x\n  context_length: 12000\nplugins: {enabled: [a, b]}\n").unwrap();
        let Content::Section(top) = root.content else { panic!("{root:?}") };
        assert_eq!((top[0].0.as_str(), top[0].1), ("model", Place { line: 1, column: 1 }));
        let Content::Section(model) = &top[0].2.content else { panic!("{top:?}") };
        assert_eq!(model[1].1, Place { line: 3, column: 3 });
        assert_eq!(model[1].2.place, Place { line: 3, column: 19 });
        assert_eq!(model[1].2.content, Content::Number(12_000.into()));
        assert_eq!(top[1].2.value(), serde_json::json!({"enabled": ["a", "b"]}));
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_line() {
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
    fn a_tab_is_found_where_it_stands() {
        for (text, line, column) in [("a:\n  b: c\n\td: e\n", 3, 1), ("a:\n  b: 1\n  \tc: 2\n", 3, 3)] {
            let broken = Node::parse(text).unwrap_err();
            assert_eq!(broken.place, Some(Place { line, column }), "{text:?}: {broken:?}");
            assert!(broken.why.contains("tab"), "{broken:?}");
        }
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_expanded() {
        let mut root = Node::parse("a: {b: {c: '${KEY}'}, d: '${KEY}'}\nb: '${KEY}'\n").unwrap();
        root.expand_outside(&["a", "b"], &|_| Some("value".to_owned()), &mut Vec::new());
        let expected = serde_json::json!({"a": {"b": {"c": "${KEY}"}, "d": "value"}, "b": "value"});
        assert_eq!(root.value(), expected);
    }

    #[test]
    fn variables_are_put_into_texts_and_what_is_unknown_stays() {
        let variable = |name: &str| (name == "KEY").then(|| "value".to_owned());
        for (text, expected, missing) in [
            ("${KEY}", "value", &[][..]),
            ("a ${KEY} b ${KEY}", "a value b value", &[]),
            ("${NONE}/${KEY}", "${NONE}/value", &["NONE"]),
            ("$KEY ${not a name} ${", "$KEY ${not a name} ${", &[]),
        ] {
            let mut unresolved = Vec::new();
            let (expanded, _) = expand(text, &variable, |name| unresolved.push(name.to_owned()));
            assert_eq!(
                (expanded.as_str(), &unresolved[..]),
                (expected, &missing.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()[..])
            );
        }
    }
}
