//! Arguments as the schema of the tool describes them, where a model wrote a value of another type whose meaning is plain: `"true"`
//! for a flag, a list inside a text, the whole object encoded twice. Other mistakes stay, and the tool reports them.

use std::borrow::Cow;

use hermes_conversation::ToolCall;
use serde_json::{Map, Number, Value};

/// Deeper values stay as they are.
const DEEPEST: usize = 16;
/// The longest text that is read as a number or a flag.
const LONGEST_WORD: usize = 40;

/// The call with fitting arguments. `parameters` is the schema of its tool.
pub(super) fn fitted<'c>(call: &'c ToolCall, parameters: &str) -> Cow<'c, ToolCall> {
    match fitting(&call.arguments, parameters) {
        Some(arguments) => Cow::Owned(ToolCall { arguments, ..call.clone() }),
        None => Cow::Borrowed(call),
    }
}

/// Other arguments that fit better; none if nothing would change.
fn fitting(written: &str, parameters: &str) -> Option<String> {
    let read: Value = serde_json::from_str(written).ok()?;
    let mut value = read.clone();
    if let Value::String(inner) = &value {
        value = serde_json::from_str::<Value>(inner).ok().filter(Value::is_object)?;
    }
    let schema: Value = serde_json::from_str(parameters).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        object(members, &schema, 0);
    }
    (value != read).then(|| value.to_string())
}

fn object(members: &mut Map<String, Value>, schema: &Value, depth: usize) {
    let properties = schema["properties"].as_object();
    let required = schema["required"].as_array();
    members.retain(|name, value| {
        let Some(property) = properties.and_then(|properties| properties.get(name)) else { return true };
        let types = Types::of(property);
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name.as_str()));
        if value.is_null() && !is_required && types.is_known() && !types.null {
            return false;
        }
        fit(value, property, &types, depth + 1);
        true
    });
}

/// The types that a schema allows.
#[derive(Debug, Default)]
struct Types {
    text: bool,
    integer: bool,
    number: bool,
    flag: bool,
    object: bool,
    list: bool,
    null: bool,
    /// Whether it allows what cannot be told from it.
    any: bool,
}

impl Types {
    fn of(schema: &Value) -> Self {
        let mut types = Self::default();
        types.add(schema);
        types
    }

    fn add(&mut self, schema: &Value) {
        let branches = ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        let mut has_branches = false;
        for branch in branches {
            has_branches = true;
            self.add(branch);
        }
        match &schema["type"] {
            Value::String(name) => self.name(name),
            Value::Array(names) => names.iter().filter_map(Value::as_str).for_each(|name| self.name(name)),
            _ => self.any |= !has_branches,
        }
    }

    fn name(&mut self, name: &str) {
        match name {
            "string" => self.text = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "boolean" => self.flag = true,
            "object" => self.object = true,
            "array" => self.list = true,
            "null" => self.null = true,
            _ => self.any = true,
        }
    }

    fn is_known(&self) -> bool {
        !self.any
    }
}

fn fit(value: &mut Value, schema: &Value, types: &Types, depth: usize) {
    if depth > DEEPEST || !types.is_known() {
        return;
    }
    match value {
        Value::String(text) if !types.text => {
            if let Some(meant) = meant(text, types) {
                *value = meant;
            }
        }
        Value::Number(number) if types.integer && !types.number && number.is_f64() => {
            if let Some(whole) = whole(number) {
                *value = whole.into();
            }
        }
        Value::Number(number) if types.text && !types.integer && !types.number => *value = number.to_string().into(),
        Value::Bool(flag) if types.text && !types.flag => *value = flag.to_string().into(),
        _ => {}
    }
    match value {
        Value::Object(members) => object(members, schema, depth),
        Value::Array(items) => {
            let types = Types::of(&schema["items"]);
            items.iter_mut().for_each(|item| fit(item, &schema["items"], &types, depth + 1));
        }
        _ => {}
    }
}

/// A number without a fraction as an integer.
fn whole(number: &Number) -> Option<i64> {
    let number = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
    Some(number as i64)
}

/// What a text means where no text is allowed.
fn meant(text: &str, types: &Types) -> Option<Value> {
    let word = text.trim();
    if types.flag && word.eq_ignore_ascii_case("true") {
        return Some(true.into());
    }
    if types.flag && word.eq_ignore_ascii_case("false") {
        return Some(false.into());
    }
    if (types.integer || types.number)
        && word.len() <= LONGEST_WORD
        && let Ok(number) = word.parse::<Number>()
    {
        return match number.is_f64() && !types.number {
            true => whole(&number).map(Value::from),
            false => Some(number.into()),
        };
    }
    let read = serde_json::from_str::<Value>(word).ok()?;
    ((types.object && read.is_object()) || (types.list && read.is_array())).then_some(read)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod recorded;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "inner": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "array"}]}, "maybe": {"type": ["integer", "null"]}, "any": {},
        }})
    }

    #[test]
    fn values_of_another_type_are_read_as_what_they_mean() {
        for (written, fits) in [
            (json!({"flag": "true"}), json!({"flag": true})),
            (json!({"flag": " False"}), json!({"flag": false})),
            (json!({"count": "5"}), json!({"count": 5})),
            (json!({"count": "5.0"}), json!({"count": 5})),
            (json!({"count": 2.0}), json!({"count": 2})),
            (json!({"ratio": "0.5"}), json!({"ratio": 0.5})),
            (json!({"ratio": "2"}), json!({"ratio": 2})),
            (json!({"list": r#"[{"n": "1"}]"#}), json!({"list": [{"n": 1}]})),
            (json!({"inner": r#"{"flag": "true"}"#}), json!({"inner": {"flag": true}})),
            (json!({"text": 42}), json!({"text": "42"})),
            (json!({"text": true}), json!({"text": "true"})),
            (json!({"maybe": "7"}), json!({"maybe": 7})),
            (json!({"text": "a", "count": null}), json!({"text": "a"})),
        ] {
            let fitted = fitting(&written.to_string(), &schema().to_string()).unwrap_or_else(|| panic!("{written}"));
            assert_eq!(serde_json::from_str::<Value>(&fitted).unwrap(), fits, "{written}");
        }
        let twice = Value::from(json!({"text": "a", "flag": "true"}).to_string()).to_string();
        assert_eq!(fitting(&twice, &schema().to_string()).unwrap(), r#"{"text":"a","flag":true}"#);
        assert_eq!(fitting("\"{}\"", "nonsense").unwrap(), "{}");
    }

    #[test]
    fn what_fits_or_is_not_plain_stays_as_it_was_written() {
        for written in [
            r#"{ "text" : "true", "count":1 }"#,
            r#"{"text":{"a":1}}"#,
            r#"{"text":null}"#,
            r#"{"flag":"yes"}"#,
            r#"{"flag":1}"#,
            r#"{"count":"many"}"#,
            r#"{"count":2.5}"#,
            r#"{"count":"2.5"}"#,
            r#"{"list":"a, b"}"#,
            r#"{"list":"{}"}"#,
            r#"{"either":"[1]"}"#,
            r#"{"maybe":null}"#,
            r#"{"any":"true"}"#,
            r#"{"unknown":"true"}"#,
            r#"[{"flag":"true"}]"#,
            r#""text""#,
            "garbage",
        ] {
            assert_eq!(fitting(written, &schema().to_string()), None, "{written}");
        }
    }

    proptest! {
        #[test]
        fn fitted_arguments_are_an_object_and_fit_at_once(written in "[{}\\[\\]\",:a-z0-9 .]{0,60}", parameters in "[{}\\[\\]\",:a-z]{0,60}") {
            if let Some(fitted) = fitting(&written, &parameters) {
                prop_assert!(serde_json::from_str::<Value>(&fitted).is_ok_and(|value| value.is_object()), "{}", fitted);
                prop_assert_eq!(fitting(&fitted, &parameters), None);
            }
        }
    }
}
