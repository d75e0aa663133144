//! Translates between the arguments of a call and those of the tool: names of properties, for an API that takes only some names,
//! and `null` for a missing optional property.
//!
//! Other names are sent with the numbers of their characters, as `_x24_filter` for `$filter`, and read back from the arguments of calls,
//! so that the tool gets its own names. Names that the API takes are sent unchanged. Only the tool's schema decides what a name
//! means: a key that merely looks renamed means itself. A name that is too long for the API is mentioned in the description, and
//! the model can still write it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, value::RawValue};

use super::Keys;
use super::dialects::NameRule;
use super::keywords::{Shape, shape};
use crate::wire::quote;

/// Names of a tool's properties that are sent in another form, by that form.
pub(crate) type Names = BTreeMap<String, String>;

/// How the arguments of a tool are read back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Back {
    pub(super) names: Names,
    /// Properties whose `null` means that they are missing. No dialect needs other names, too.
    pub(super) absent: BTreeSet<String>,
}

/// How the arguments of the tools in a list are read back, for the tools that need it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Renamed(BTreeMap<String, Back>);

impl Renamed {
    pub(in crate::wire) fn insert(&mut self, tool: &str, back: Back) {
        if back != Back::default() {
            self.0.insert(tool.to_owned(), back);
        }
    }

    /// The arguments of a call as the tool knows them; none where nothing has to change.
    pub(crate) fn read(&self, tool: &str, arguments: &str) -> Option<String> {
        let back = self.0.get(tool)?;
        let present = without_null(arguments, &back.absent);
        read(present.as_deref().unwrap_or(arguments), &back.names).or(present)
    }
}

impl NameRule {
    /// Whether a character is sent as it is.
    fn takes(self, character: char) -> bool {
        match self {
            Self::Any => true,
            Self::Word => character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-'),
            Self::Identifier => character.is_ascii_alphanumeric() || character == '_',
            Self::NoKeyword => character != '$',
        }
    }

    /// The longest name.
    fn longest(self) -> usize {
        match self {
            Self::Any | Self::NoKeyword => usize::MAX,
            Self::Word | Self::Identifier => 64,
        }
    }

    /// Whether a name is sent as it is.
    pub(super) fn fits(self, name: &str) -> bool {
        let has_fitting_start = self != Self::Identifier || !name.starts_with(|first: char| first.is_ascii_digit());
        match self {
            Self::Any => true,
            Self::NoKeyword => !["$ref", "$defs"].contains(&name),
            Self::Word | Self::Identifier => {
                let is_of_characters = !name.is_empty() && name.chars().all(|character| self.takes(character));
                is_of_characters && has_fitting_start && name.len() <= self.longest()
            }
        }
    }
}

/// A name with the numbers of characters that are not taken.
fn in_numbers(name: &str, rule: NameRule) -> String {
    if name.is_empty() {
        return "_x_".to_owned();
    }
    let mut out = String::new();
    for (at, character) in name.chars().enumerate() {
        let is_first_digit = at == 0 && rule == NameRule::Identifier && character.is_ascii_digit();
        match character {
            taken if rule.takes(taken) && !is_first_digit => out.push(taken),
            other => out.push_str(&format!("_x{:X}_", u32::from(other))),
        }
    }
    out
}

/// The forms in which names of one schema are sent, no two of them in the same form.
fn renamed(declared: &BTreeSet<String>, rule: NameRule) -> Names {
    let mut names = Names::new();
    for name in declared.iter().filter(|name| !rule.fits(name)) {
        let mut sent = in_numbers(name, rule);
        while declared.contains(&sent) || names.contains_key(&sent) {
            sent.push('_');
        }
        names.insert(sent, name.clone());
    }
    names.retain(|sent, _| sent.len() <= rule.longest());
    names
}

/// The schema with names that the API takes, and the map from these names to the tool's own; none if nothing has to change.
pub(super) fn written(schema: &str, rule: NameRule) -> Option<(String, Names)> {
    if rule == NameRule::Any {
        return None;
    }
    let mut value: Value = serde_json::from_str(schema).ok()?;
    let mut declared = BTreeSet::new();
    each_object(&mut value, &mut |members| {
        let properties = members.get("properties").and_then(Value::as_object);
        declared.extend(properties.into_iter().flat_map(Map::keys).cloned());
    });
    let names = renamed(&declared, rule);
    let sent: BTreeMap<&str, &str> = names.iter().map(|(sent, name)| (name.as_str(), sent.as_str())).collect();
    let mut changed = false;
    each_object(&mut value, &mut |members| changed |= rename(members, &sent, rule));
    changed.then(|| (value.to_string(), names))
}

/// Visits a schema and those in it, the inner ones first.
fn each_object(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Some(members) = schema.as_object_mut() else { return };
    for (keyword, value) in members.iter_mut() {
        match shape(keyword) {
            Some(Shape::Schema | Shape::SchemaOrBool) => each_object(value, visit),
            Some(Shape::Schemas) => {
                let schemas = value.as_object_mut().into_iter().flat_map(Map::values_mut);
                schemas.for_each(|schema| each_object(schema, visit));
            }
            Some(Shape::SchemaList) => {
                value.as_array_mut().into_iter().flatten().for_each(|schema| each_object(schema, visit));
            }
            _ => {}
        }
    }
    visit(members);
}

/// Renames the properties of one schema. Whether there were any to rename.
fn rename(members: &mut Map<String, Value>, sent: &BTreeMap<&str, &str>, rule: NameRule) -> bool {
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return false };
    if properties.keys().all(|name| rule.fits(name)) {
        return false;
    }
    let mut long = Vec::new();
    let mut renamed = Map::new();
    for (name, property) in std::mem::take(properties) {
        match sent.get(name.as_str()) {
            Some(sent) => drop(renamed.insert((*sent).to_owned(), property)),
            None if rule.fits(&name) => drop(renamed.insert(name, property)),
            None => long.push((name, property)),
        }
    }
    *properties = renamed;
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| !long.iter().any(|(long, _)| name == long));
        for name in required.iter_mut() {
            if let Some(sent) = name.as_str().and_then(|name| sent.get(name)) {
                *name = (*sent).into();
            }
        }
    }
    if !long.is_empty() {
        // Else the model would take them for forbidden.
        members.shift_remove("additionalProperties");
        let described = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let further: Vec<String> = long.iter().map(|(name, schema)| format!("`{name}`: {schema}")).collect();
        let described = format!("{described}\n\nFurther arguments, with their schemas: {}", further.join(", "));
        members.insert("description".to_owned(), described.trim_start().into());
    }
    true
}

/// The arguments of a call with the names that the tool knows; none where nothing has to change. Everything else stays as written.
fn read(arguments: &str, names: &Names) -> Option<String> {
    if serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err() {
        return None;
    }
    let bytes = arguments.as_bytes();
    let (mut out, mut kept, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'"' {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        at = (at + 1).min(bytes.len());
        let is_name = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        let name = || serde_json::from_str::<String>(arguments.get(start..at)?).ok();
        if let Some(name) = is_name.then(name).flatten()
            && let Some(known) = names.get(&name)
        {
            out.extend_from_slice(&bytes[kept..start]);
            quote(&mut out, known);
            kept = at;
        }
    }
    if kept == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[kept..]);
    String::from_utf8(out).ok()
}

/// The arguments of a call without the members of these names that are `null`; none where nothing has to change. Everything else stays
/// as written.
fn without_null(arguments: &str, absent: &BTreeSet<String>) -> Option<String> {
    let arguments = serde_json::from_str::<&RawValue>(arguments).ok().filter(|_| !absent.is_empty())?;
    let mut out = Vec::new();
    let changed = leave_null(&mut out, arguments, absent);
    changed.then(|| String::from_utf8(out).expect("it consists of texts"))
}

/// Appends a value without these members. Whether there were any.
fn leave_null(out: &mut Vec<u8>, value: &RawValue, absent: &BTreeSet<String>) -> bool {
    let begin = out.len();
    let mut changed = false;
    if let Ok(Keys(members)) = serde_json::from_str::<Keys<'_>>(value.get()) {
        let before = members.len();
        let is_absent = |name: &str, value: &RawValue| value.get() == "null" && absent.contains(name);
        let members: Vec<_> = members.into_iter().filter(|(name, value)| !is_absent(name, value)).collect();
        changed = members.len() < before;
        out.push(b'{');
        for (at, (name, value)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            quote(out, &name);
            out.push(b':');
            changed |= leave_null(out, value, absent);
        }
        out.push(b'}');
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        out.push(b'[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            changed |= leave_null(out, item, absent);
        }
        out.push(b']');
    }
    if !changed {
        out.truncate(begin);
        out.extend_from_slice(value.get().as_bytes());
    }
    changed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names(declared: &[&str]) -> Names {
        renamed(&declared.iter().map(|name| (*name).to_owned()).collect(), NameRule::Word)
    }

    #[test]
    fn names_that_are_not_taken_are_sent_in_numbers_and_all_others_as_they_are() {
        for (name, sent) in [
            ("$filter", "_x24_filter"),
            ("filter[id]", "filter_x5B_id_x5D_"),
            ("größe", "gr_xF6__xDF_e"),
            ("🚀", "_x1F680_"),
            ("", "_x_"),
            ("a b", "a_x20_b"),
            ("_x$", "_x_x24_"),
        ] {
            assert_eq!(names(&[name]), Names::from([(sent.to_owned(), name.to_owned())]));
        }
        for name in ["path", "a.b-c_d", "_x24_filter", "_x_", "pos_x_offset", "grid_x5F_min", "_xyz_1", "max_x"] {
            assert_eq!(names(&[name]), Names::new(), "{name}");
        }
        // Two names never share a form.
        let both = names(&["$a", "_x24_a", "_x24_a_", "$$", "_x24_$", "$".repeat(40).as_str()]);
        let known: Vec<(&str, &str)> = both.iter().map(|(sent, name)| (sent.as_str(), name.as_str())).collect();
        assert_eq!(known, [("_x24__x24_", "$$"), ("_x24__x24__", "_x24_$"), ("_x24_a__", "$a")]);
    }

    #[test]
    fn a_schema_has_fitting_names_at_every_depth_and_describes_long_ones() {
        let long = "settings__".repeat(8);
        let schema = json!({"type": "object", "required": ["$top", "pos_x_offset", "b", long], "additionalProperties": false,
            "properties": {"$top": {"type": "integer"}, "pos_x_offset": {}, "b": {"items": {"properties": {"@type": {"enum": ["$x"]}}}}, long.as_str(): {"type": "string"}}});
        let (sent, names) = written(&schema.to_string(), NameRule::Word).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&sent).unwrap(),
            json!({"type": "object", "required": ["_x24_top", "pos_x_offset", "b"],
                "properties": {"_x24_top": {"type": "integer"}, "pos_x_offset": {}, "b": {"items": {"properties": {"_x40_type": {"enum": ["$x"]}}}}},
                "description": format!("Further arguments, with their schemas: `{long}`: {{\"type\":\"string\"}}")})
        );
        let known: Vec<&String> = names.values().collect();
        assert_eq!(known, ["$top", "@type"]);
        for schema in [
            r#"{"type":"object","properties":{"a":{"default":{"$b":1}}}}"#,
            r#"{"type":"object","properties":{"pos_x_offset":{},"_x24_":{}}}"#,
        ] {
            assert_eq!(written(schema, NameRule::Word), None);
        }
    }

    #[test]
    fn arguments_get_the_names_of_the_tool_and_keep_every_other_byte() {
        let names = names(&["$top", "@type", "\"", ""]);
        for (given, read_back) in [
            (
                r#"{"_x24_top" : 1.0, "a":[{"_x40_type":"_x24_top"}]}"#,
                Some(r#"{"$top" : 1.0, "a":[{"@type":"_x24_top"}]}"#),
            ),
            (r#"{"_x22_":12345678901234567890}"#, Some(r#"{"\"":12345678901234567890}"#)),
            (r#"{"_x_":1}"#, Some(r#"{"":1}"#)),
            // Keys that no name of this tool was written as.
            (r#"{"row":{"grid_x_min":1,"pos_x_offset":2,"a_x_":3,"_x24_":4}}"#, None),
            (r#"{"a\"_x24_top":1}"#, None),
            (r#"{"a":"_x24_top"}"#, None),
            (r#"{"_x24_top":"#, None),
            (r#"{"$top":1,"_xyz_":2}"#, None),
            ("", None),
        ] {
            assert_eq!(read(given, &names).as_deref(), read_back, "{given}");
        }
    }

    #[test]
    fn identifiers_and_keywords_have_rules_of_their_own() {
        let one = |name: &str, rule| renamed(&BTreeSet::from([name.to_owned()]), rule).into_keys().next();
        for (name, rule, sent) in [
            ("a-b", NameRule::Identifier, Some("a_x2D_b")),
            ("9.5", NameRule::Identifier, Some("_x39__x2E_5")),
            ("a_9", NameRule::Identifier, None),
            ("$ref", NameRule::NoKeyword, Some("_x24_ref")),
            ("$filter", NameRule::NoKeyword, None),
            ("$ref", NameRule::Any, None),
        ] {
            assert_eq!(one(name, rule).as_deref(), sent, "{name}");
        }
    }

    #[test]
    fn null_in_place_of_what_is_missing_is_left_out_and_other_bytes_stay() {
        let absent = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        for (given, read) in [
            (r#"{"a":null,"c":null}"#, Some(r#"{"c":null}"#)),
            (
                r#"{"c": [ {"b": null, "n": 1.0} , 12345678901234567890], "b":0}"#,
                Some(r#"{"c":[{"n":1.0},12345678901234567890],"b":0}"#),
            ),
            (r#"{ "a": 1 }"#, None),
            (r#"{"c":null}"#, None),
            (r#"["a", null]"#, None),
            (r#"{"a":null"#, None),
            ("", None),
        ] {
            assert_eq!(without_null(given, &absent).as_deref(), read, "{given}");
        }
        assert_eq!(without_null(r#"{"a":null}"#, &BTreeSet::new()), None);
    }

    proptest! {
        #[test]
        fn every_name_comes_back_and_no_other_key_changes(
            declared in proptest::collection::btree_set(
                prop_oneof![".{0,12}", "[_x24$]{0,8}", "[_xA-F0-9]{0,12}", "(_x[0-9A-F]{0,3}_){1,3}"], 0..6),
            free in prop_oneof!["[_xa-f0-9$]{0,12}", "[a-z]{1,4}_x_[a-z]{1,4}", "(_x[0-9A-F]{0,3}_){1,3}"],
        ) {
            let properties: Map<String, Value> = declared.iter().map(|name| (name.clone(), json!({}))).collect();
            let schema = json!({"type": "object", "properties": properties}).to_string();
            let (sent, names) = written(&schema, NameRule::Word).unwrap_or((schema, Names::new()));
            let sent: Value = serde_json::from_str(&sent).unwrap();
            let back: Vec<String> = sent["properties"].as_object().into_iter().flat_map(Map::keys).map(|sent| {
                assert!(NameRule::Word.fits(sent), "{sent}");
                names.get(sent).unwrap_or(sent).clone()
            }).collect();
            let long = declared.iter().filter(|name| !NameRule::Word.fits(name) && !names.values().any(|known| known == *name));
            prop_assert_eq!(back.iter().chain(long).cloned().collect::<BTreeSet<_>>(), declared);
            let names_of_key = names.get(&free).unwrap_or(&free).clone();
            for (key, name) in names.iter().chain([(&free, &names_of_key)]) {
                let arguments = json!({ key.as_str(): { "n": 1 } }).to_string();
                let given: Value = serde_json::from_str(&read(&arguments, &names).unwrap_or(arguments)).unwrap();
                // U+0000 is refused by some servers.
                prop_assert_eq!(given, json!({ name.replace('\0', "\u{fffd}"): { "n": 1 } }));
            }
        }
    }
}
