//! Names of properties for an API that takes only some: letters, digits, `_`, `.` and `-`, at most 64.
//!
//! Each other character is written as its number, as in `_x24_filter` for `$filter`, and read back from the arguments of calls, so that
//! the tool gets its own names. A name that is too long for that is described in words; the model can write it nevertheless.

use serde_json::{Map, Value};

use super::keywords::{Shape, shape};
use crate::wire::quote;

/// The longest name that is taken.
const LONGEST: usize = 64;
/// Before the number of a character, and before no number for the empty name.
const MARK: &str = "_x";

fn is_taken(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

/// A name in the characters that are taken.
fn encoded(name: &str) -> String {
    if name.is_empty() {
        return format!("{MARK}_");
    }
    let mut out = String::new();
    for character in name.chars().rev() {
        out.insert(0, character);
        // What would be read as the number of a character is told from one by what follows.
        if !is_taken(character) || escape(&out).is_some() {
            out.replace_range(..character.len_utf8(), &format!("{MARK}{:X}_", u32::from(character)));
        }
    }
    out
}

/// The character that the beginning of a text is the number of, and the length of that number.
fn escape(text: &str) -> Option<(Option<char>, usize)> {
    let behind = text.strip_prefix(MARK)?;
    let digits = behind.find('_').filter(|digits| *digits <= 6)?;
    let number = &behind[..digits];
    let length = MARK.len() + digits + 1;
    if number.is_empty() {
        return Some((None, length));
    }
    let is_written = number.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
    let character = u32::from_str_radix(number, 16).ok().and_then(char::from_u32)?;
    is_written.then_some((Some(character), length))
}

/// A name as the tool knows it.
fn decoded(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        match escape(rest) {
            Some((character, length)) => {
                out.extend(character);
                rest = &rest[length..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// A schema whose properties have names that are taken; none where nothing has to change.
pub(super) fn written(schema: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(schema).ok()?;
    rename(&mut value).then(|| value.to_string())
}

/// Renames the properties of a schema and of those in it. Whether there were any to rename.
fn rename(schema: &mut Value) -> bool {
    let Some(members) = schema.as_object_mut() else { return false };
    let mut changed = false;
    for (keyword, value) in members.iter_mut() {
        match shape(keyword) {
            Some(Shape::Schema | Shape::SchemaOrBool) => changed |= rename(value),
            Some(Shape::Schemas) => {
                for schema in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    changed |= rename(schema);
                }
            }
            Some(Shape::SchemaList) => {
                for schema in value.as_array_mut().into_iter().flatten() {
                    changed |= rename(schema);
                }
            }
            _ => {}
        }
    }
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return changed };
    if properties.keys().all(|name| encoded(name) == *name && name.len() <= LONGEST) {
        return changed;
    }
    let mut long = Vec::new();
    let mut renamed = Map::new();
    for (name, property) in std::mem::take(properties) {
        match encoded(&name) {
            fitting if fitting.len() <= LONGEST => drop(renamed.insert(fitting, property)),
            _ => long.push((name, property)),
        }
    }
    *properties = renamed;
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| !long.iter().any(|(long, _)| name == long));
        for name in required.iter_mut() {
            *name = name.as_str().map(encoded).unwrap_or_default().into();
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
pub(crate) fn read(arguments: &str) -> Option<String> {
    if !arguments.contains(MARK) || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err() {
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
            && decoded(&name) != name
        {
            out.extend_from_slice(&bytes[kept..start]);
            quote(&mut out, &decoded(&name));
            kept = at;
        }
    }
    if kept == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[kept..]);
    String::from_utf8(out).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_are_not_taken_are_written_in_numbers_and_read_back() {
        for (name, sent) in [
            ("path", "path"),
            ("a.b-c_d", "a.b-c_d"),
            ("$filter", "_x24_filter"),
            ("filter[id]", "filter_x5B_id_x5D_"),
            ("größe", "gr_xF6__xDF_e"),
            ("🚀", "_x1F680_"),
            ("", "_x_"),
            ("a b", "a_x20_b"),
            ("_x24_filter", "_x5F_x24_filter"),
            ("_x_", "_x5F_x_"),
            ("_xyz_1", "_xyz_1"),
            ("_x$", "_x5F_x_x24_"),
            ("max_x", "max_x"),
        ] {
            assert_eq!((&*encoded(name), &*decoded(sent)), (sent, name));
        }
    }

    #[test]
    fn a_schema_has_fitting_names_at_every_depth_and_describes_long_ones() {
        let long = "settings__".repeat(8);
        let schema = json!({"type": "object", "required": ["$top", "b", long], "additionalProperties": false,
            "properties": {"$top": {"type": "integer"}, "b": {"items": {"properties": {"@type": {"enum": ["$x"]}}}}, long.as_str(): {"type": "string"}}});
        let sent: Value = serde_json::from_str(&written(&schema.to_string()).unwrap()).unwrap();
        assert_eq!(
            sent,
            json!({"type": "object", "required": ["_x24_top", "b"],
                "properties": {"_x24_top": {"type": "integer"}, "b": {"items": {"properties": {"_x40_type": {"enum": ["$x"]}}}}},
                "description": format!("Further arguments, with their schemas: `{long}`: {{\"type\":\"string\"}}")})
        );
        assert_eq!(written(r#"{"type":"object","properties":{"a":{"default":{"$b":1}}}}"#), None);
    }

    #[test]
    fn arguments_get_the_names_of_the_tool_and_keep_every_other_byte() {
        for (given, read_back) in [
            (r#"{"_x24_top" : 1.0, "a":[{"_x40_type":"_x24_"}]}"#, Some(r#"{"$top" : 1.0, "a":[{"@type":"_x24_"}]}"#)),
            (r#"{"_x22_":12345678901234567890}"#, Some(r#"{"\"":12345678901234567890}"#)),
            (r#"{"a\"_x24_":1}"#, Some(r#"{"a\"$":1}"#)),
            (r#"{"a":"_x24_"}"#, None),
            (r#"{"_x24_":"#, None),
            (r#"{"$top":1,"_xyz_":2}"#, None),
            ("", None),
        ] {
            assert_eq!(read(given).as_deref(), read_back, "{given}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in prop_oneof![".{0,12}", "[_xA-F0-9]{0,12}", "(_x[0-9A-F]{0,3}_){1,3}"]) {
            let sent = encoded(&name);
            prop_assert!(!sent.is_empty() && sent.chars().all(is_taken));
            prop_assert_eq!(decoded(&sent), name.as_str());
            let arguments = json!({ sent: { "n": 1 } }).to_string();
            let given: Value = serde_json::from_str(&read(&arguments).unwrap_or(arguments)).unwrap();
            // U+0000 is refused by some servers.
            prop_assert_eq!(given, json!({ name.replace('\0', "\u{fffd}"): { "n": 1 } }));
        }
    }
}
