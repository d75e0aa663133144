//! From a tree of YAML to the typed settings: a serde deserializer that knows the position, the key and the schema of
//! every node.
//!
//! An unknown key becomes a warning and never reaches the types. A value that does not fit becomes a [`Misfit`] at its
//! position. An empty value leaves the default in force.

use std::cell::RefCell;
use std::fmt;

use hermes_diagnostic::{Action, Fix};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, forward_to_deserialize_any};
use serde_json::{Number, Value};

use crate::keys::{self, KEYS};
use crate::schema;
use crate::settings::Settings;
use crate::tree::{Content, Node, Place};

/// A value that the settings cannot have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Misfit {
    /// Its position. It is missing only while the error travels from a type to the reader.
    pub(crate) place: Option<Place>,
    pub(crate) why: String,
    pub(crate) fix: Fix,
}

/// The moments at which hooks run.
const MOMENTS: [&str; 4] = ["before-tool", "after-tool", "before-model", "after-model"];

/// What the user should know about a line.
pub(crate) type Warning = (Place, String);

/// Reads the root of a file.
pub(crate) fn read(root: &Node) -> Result<(Settings, Vec<Warning>), Misfit> {
    let warnings = RefCell::new(Vec::new());
    let settings = match root.content {
        Content::Nothing => Settings::default(),
        Content::Section(_) => Settings::deserialize(Reader {
            node: root,
            schema: &schema::TYPES,
            path: String::new(),
            is_value: false,
            warnings: &warnings,
        })?,
        ref other => {
            let why = format!("the file is {}; it must have sections such as `model:`", other.describe());
            return Err(Misfit { place: Some(root.place), why, fix: Action::CorrectSetting.into() });
        }
    };
    Ok((settings, warnings.into_inner()))
}

struct Reader<'a> {
    node: &'a Node,
    schema: &'a Value,
    /// The dotted key.
    path: String,
    /// Whether this is the value of a key, whose text is trimmed.
    is_value: bool,
    warnings: &'a RefCell<Vec<Warning>>,
}

impl<'a> Reader<'a> {
    fn item(&self, at: usize, node: &'a Node) -> Self {
        let schema = self.schema.get("items").unwrap_or(&Value::Null);
        Self { node, schema, path: format!("{}[{at}]", self.path), is_value: false, warnings: self.warnings }
    }

    fn member(&self, name: &str, node: &'a Node) -> Self {
        let schema = schema::member(self.schema, name);
        Self { node, schema, path: self.path_of(name), is_value: true, warnings: self.warnings }
    }

    /// Whether this is an argument, a variable or a header of an MCP server. Other agents take numbers and flags as texts there.
    /// A number with a fraction does not count as a text, because its spelling is lost: `1.10` would become `1.1`.
    fn is_text_of_server(&self) -> bool {
        let of_server = self.path.strip_prefix("mcp_servers.").and_then(|path| path.split_once('.'));
        of_server.is_some_and(|(_, key)| ["args[", "env.", "headers."].iter().any(|list| key.starts_with(list)))
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn warn(&self, place: Place, what: String) {
        self.warnings.borrow_mut().push((place, what));
    }

    /// The value is not what the schema wants. The message quotes a text only where a number or a flag is wanted. Elsewhere the
    /// text may be a secret key, and the value of a variable may be one anywhere.
    fn misfit(&self) -> Misfit {
        let (path, wanted) = (&self.path, schema::describe(self.schema));
        let (found, fix) = match &self.node.content {
            Content::Number(number) if schema::is_numeric(self.schema) => {
                (number.to_string(), "correct the number".into())
            }
            Content::Text(text) if !self.node.expanded && is_short(text) && schema::is_scalar(self.schema) => {
                (format!("`{text}`"), fix(&self.node.content, &wanted))
            }
            found => (found.describe().to_owned(), fix(found, &wanted)),
        };
        Misfit { place: Some(self.node.place), why: format!("`{path}` is {found}; it must be {wanted}"), fix }
    }

    /// Adds what a type does not know about its error: the key and the position.
    fn located(&self, error: Misfit) -> Misfit {
        if error.place.is_some() {
            return error;
        }
        if error.why.is_empty() {
            return self.misfit();
        }
        Misfit { place: Some(self.node.place), why: format!("`{}`: {}", self.path, error.why), fix: error.fix }
    }

    fn number(&self) -> Option<Number> {
        match &self.node.content {
            Content::Number(number) => Some(number.clone()),
            // The value of a variable is always a text, also if it looks like a number.
            Content::Text(text) if self.node.expanded => serde_json::from_str(text.trim()).ok(),
            _ => None,
        }
    }

    fn section(self, fields: Option<&'static [&'static str]>) -> Result<Section<'a>, Misfit> {
        match &self.node.content {
            Content::Section(entries) => Ok(Section { fields, entries: entries.iter(), value: None, reader: self }),
            _ => Err(self.misfit()),
        }
    }

    fn list<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.node.content {
            Content::List(items) => visitor.visit_seq(List { reader: self, items: items.iter().enumerate() }),
            _ => Err(self.misfit()),
        }
    }

    /// A plugin names its tasks as it likes, so an unusual name is allowed. One letter beside a known name may be a typo.
    fn check_task(&self, task: &str, place: Place) {
        const SIMILAR: f64 = 0.75;
        if self.path != "auxiliary" || task == "embeddings" || keys::TASKS.contains(&task) {
            return;
        }
        if let Some(known) = keys::TASKS.iter().find(|known| keys::similarity(task, known) >= SIMILAR) {
            let path = self.path_of(task);
            self.warn(
                place,
                format!(
                    "no known task is called `{task}`, so `{path}` probably has no effect; did you mean `auxiliary.{known}`?"
                ),
            );
        }
    }

    /// Whether this is an entry of `hooks` that is refused anyway: at an unknown moment, or without a command. So are hooks that
    /// were written for another agent, and one error says more than that and a warning.
    fn is_refused_hook(&self) -> bool {
        let Some((moment, _)) = self.path.strip_prefix("hooks.").and_then(|path| path.split_once('[')) else {
            return false;
        };
        let Content::Section(entries) = &self.node.content else { return false };
        !MOMENTS.contains(&moment) || !entries.iter().any(|(name, _, _)| name == "command")
    }

    fn warn_of_unknown(&self, name: &str, place: Place) {
        if self.is_refused_hook() {
            return;
        }
        let path = self.path_of(name);
        let known = schema::names(self.schema);
        let in_table = self.path.is_empty() || KEYS.is_section(&self.path);
        let near = match in_table {
            true => keys::nearest(&path),
            false => {
                keys::most_similar(name, known.iter().map(|known| (*known).to_owned())).map(|near| self.path_of(&near))
            }
        };
        let is_server = self.path.strip_prefix("mcp_servers.").is_some_and(|server| !server.contains('.'));
        let near = match name {
            // So it is called in the configuration of some other agents.
            "disabled" if is_server => Some(format!("{}: false", self.path_of("enabled"))),
            _ => near,
        };
        let near = near.map_or_else(
            || format!("the keys here are {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        self.warn(place, format!("the key `{path}` is not known and has no effect; {near}"));
    }
}

/// Whether a text is short enough to be quoted.
fn is_short(text: &str) -> bool {
    text.chars().count() <= 40 && !text.contains(char::is_control)
}

fn fix(found: &Content, wanted: &str) -> Fix {
    match found {
        Content::Number(_) | Content::Flag(_) if wanted.contains("a string") => "put the value into quotes".into(),
        Content::Text(_) if wanted.contains("list") => "write it as a list, such as [one, two]".into(),
        Content::Text(_) if wanted.contains("number") => "write only the number, without quotes or units".into(),
        Content::Text(_) if wanted.contains("true") => "write true or false, without quotes".into(),
        _ => Action::CorrectSetting.into(),
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let result = match &self.node.content {
            Content::Nothing => visitor.visit_unit(),
            Content::Flag(flag) => visitor.visit_bool(*flag),
            Content::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Content::Text(text) => visitor.visit_str(text),
            Content::List(_) => return self.list(visitor),
            Content::Section(_) => return visitor.visit_map(self.section(None)?),
        };
        result.map_err(|error| self.located(error))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.node.content {
            Content::Text(text) => visitor.visit_str(if self.is_value { text.trim() } else { text }),
            Content::Number(number) if self.is_text_of_server() && !number.is_f64() => {
                visitor.visit_string(number.to_string())
            }
            Content::Flag(flag) if self.is_text_of_server() => visitor.visit_string(flag.to_string()),
            _ => Err(self.misfit()),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.node.content {
            Content::Flag(flag) => visitor.visit_bool(*flag),
            Content::Text(text) if self.node.expanded => match text.trim().parse() {
                Ok(flag) => visitor.visit_bool(flag),
                Err(_) => Err(self.misfit()),
            },
            _ => Err(self.misfit()),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.number().and_then(|number| number.as_u64()) {
            Some(number) => visitor.visit_u64(number),
            None => Err(self.misfit()),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.number().and_then(|number| number.as_f64()) {
            Some(number) => visitor.visit_f64(number),
            None => Err(self.misfit()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.node.content {
            Content::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(self.section(None)?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_map(self.section(Some(fields))?)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
        ignored_any
    }
}

/// The entries of a section. With `fields`, unknown names become warnings and empty values are left out.
struct Section<'a> {
    reader: Reader<'a>,
    fields: Option<&'static [&'static str]>,
    entries: std::slice::Iter<'a, (String, Place, Node)>,
    value: Option<Reader<'a>>,
}

impl Section<'_> {
    /// Whether an entry is handed to the type that is being read.
    fn is_read(&self, name: &str, place: Place, member: &Reader<'_>) -> bool {
        if matches!(member.node.content, Content::Section(_)) {
            self.reader.check_task(name, place);
        }
        let Some(fields) = self.fields else { return true };
        if !fields.contains(&name) {
            self.reader.warn_of_unknown(name, place);
            return false;
        }
        let is_empty = match &member.node.content {
            Content::Nothing => true,
            Content::Text(text) => text.trim().is_empty() && schema::is_text(member.schema),
            _ => false,
        };
        if !is_empty && schema::has_no_effect(member.schema) {
            self.reader.warn(place, format!("`{}` has no effect in this version", member.path));
        }
        !is_empty
    }
}

impl<'de> MapAccess<'de> for Section<'_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        while let Some((name, place, node)) = self.entries.next() {
            let member = self.reader.member(name, node);
            if !self.is_read(name, *place, &member) {
                continue;
            }
            let key = seed.deserialize(de::value::StrDeserializer::<Misfit>::new(name)).map_err(|unknown| Misfit {
                place: Some(*place),
                why: format!("`{}` {}", member.path, unknown.why),
                fix: unknown.fix,
            })?;
            self.value = Some(member);
            return Ok(Some(key));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let Some(member) = self.value.take() else { return Err(de::Error::custom("a value without a key")) };
        let again = Reader { path: member.path.clone(), ..member };
        seed.deserialize(member).map_err(|error| again.located(error))
    }
}

struct List<'r, 'a> {
    reader: &'r Reader<'a>,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for List<'_, '_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some((at, node)) = self.items.next() else { return Ok(None) };
        let item = self.reader.item(at, node);
        seed.deserialize(item).map(Some).map_err(|error| self.reader.item(at, node).located(error))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self { place: None, why: why.to_string(), fix: Action::CorrectSetting.into() }
    }

    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        // The reader says what was found and what the schema wants.
        Self::custom("")
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self::custom("")
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        let known: Vec<_> = expected.iter().map(|name| format!("`{name}`")).collect();
        let why = format!("is not a known key; the keys here are {}", known.join(" and "));
        Self { place: None, why, fix: Action::CorrectKey.into() }
    }
}
