//! What a server asks the user during a call: a form of a few plain fields, which become questions.

use hermes_conversation::one_line_within;
use serde_json::{Map, Number, Value};

/// The most fields of a form.
const FIELDS: usize = 16;
/// The most choices of a field.
const CHOICES: usize = 32;
/// The most bytes of the words of a field.
const WORDS: usize = 400;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// What the user reads.
    pub(crate) words: String,
    kind: Kind,
    /// The value that the server proposes.
    default: Option<Value>,
    /// Whether the form is complete without it.
    is_optional: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text,
    Whole,
    Number,
    Flag,
    /// One of these values, each with its words.
    Choice(Vec<(Value, String)>),
    /// Any of these values, but at least and at most so many.
    Choices {
        of: Vec<(Value, String)>,
        least: usize,
        most: usize,
    },
}

/// The answer that leaves an optional field without a value.
const LEAVE_OUT: &str = "leave it out";

/// The fields of a schema, in the order of the server; `None` if it is no form that a user can answer.
pub(crate) fn fields(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema["properties"].as_object()?;
    if properties.len() > FIELDS {
        return None;
    }
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    properties.iter().map(|(name, property)| field(name, property, !is_required(name))).collect()
}

fn field(name: &str, property: &Value, is_optional: bool) -> Option<Field> {
    let words = [property["title"].as_str().unwrap_or(name), property["description"].as_str().unwrap_or_default()];
    let words = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ");
    let is_list = property["type"] == "array";
    let kind = match choices(if is_list { &property["items"] } else { property }) {
        Some(choices) if choices.len() > CHOICES || choices.is_empty() => return None,
        Some(of) if is_list => {
            let count = |name| property[name].as_u64().and_then(|count| usize::try_from(count).ok());
            Kind::Choices { least: count("minItems").unwrap_or(0), most: count("maxItems").unwrap_or(of.len()), of }
        }
        Some(choices) => Kind::Choice(choices),
        None => match property["type"].as_str()? {
            "string" => Kind::Text,
            "integer" => Kind::Whole,
            "number" => Kind::Number,
            "boolean" => Kind::Flag,
            _ => return None,
        },
    };
    let mut field =
        Field { name: name.to_owned(), words: one_line_within(&words, WORDS), kind, default: None, is_optional };
    // A default of another type is none.
    field.default = property.get("default").filter(|value| field.admits(value)).cloned();
    Some(field)
}

/// The values of a form to which the server proposes all that it needs; `None` if one is missing.
pub(crate) fn defaults(fields: &[Field]) -> Option<Values> {
    let mut values = Values::new();
    for field in fields {
        match &field.default {
            Some(value) => drop(values.insert(field.name.clone(), value.clone())),
            None if field.is_optional => {}
            None => return None,
        }
    }
    Some(values)
}

fn choices(property: &Value) -> Option<Vec<(Value, String)>> {
    if let Some(options) = property["oneOf"].as_array().or(property["anyOf"].as_array()) {
        let choice = |option: &Value| {
            let value = option["const"].as_str()?;
            Some((value.into(), one_line_within(option["title"].as_str().unwrap_or(value), WORDS)))
        };
        return options.iter().map(choice).collect();
    }
    let values = property["enum"].as_array()?.iter().map(Value::as_str).enumerate();
    let title = |at: usize| property["enumNames"].get(at).and_then(Value::as_str);
    let choice = |(at, value): (usize, Option<&str>)| {
        let value = value?;
        Some((value.into(), one_line_within(title(at).unwrap_or(value), WORDS)))
    };
    values.map(choice).collect()
}

impl Field {
    /// The words of the answers to choose from. The proposed one comes first.
    pub(crate) fn choices(&self) -> Vec<String> {
        let mut choices = match &self.kind {
            Kind::Choice(choices) | Kind::Choices { of: choices, .. } => {
                choices.iter().map(|(_, words)| words.clone()).collect()
            }
            Kind::Flag => vec!["yes".to_owned(), "no".to_owned()],
            Kind::Text | Kind::Whole | Kind::Number => Vec::new(),
        };
        if let Some(proposed) = self.default.as_ref().map(|value| self.said(value)).filter(|said| !said.is_empty()) {
            choices.retain(|choice| *choice != proposed);
            choices.insert(0, proposed);
        }
        if self.is_optional {
            choices.push(LEAVE_OUT.to_owned());
        }
        choices
    }

    /// Whether a typed answer is the value itself, and no choice.
    pub(crate) fn takes_values(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Whole | Kind::Number)
    }

    /// How a value is said.
    fn said(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (Kind::Choice(choices) | Kind::Choices { of: choices, .. }, Value::String(_)) => {
                choices.iter().find(|(known, _)| known == value).map(|(_, words)| words.clone()).unwrap_or_default()
            }
            (Kind::Choices { .. }, Value::Array(values)) => {
                values.iter().map(|value| self.said(value)).collect::<Vec<_>>().join(", ")
            }
            (_, Value::Bool(is_set)) => if *is_set { "yes" } else { "no" }.to_owned(),
            (_, Value::String(text)) => one_line_within(text, WORDS),
            (_, other) => other.to_string(),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match (&self.kind, value) {
            (Kind::Text, Value::String(_)) | (Kind::Number, Value::Number(_)) | (Kind::Flag, Value::Bool(_)) => true,
            (Kind::Whole, Value::Number(number)) => number.is_i64(),
            (Kind::Choice(choices), value) => choices.iter().any(|(known, _)| known == value),
            (Kind::Choices { of, least, most }, Value::Array(values)) => {
                let known = |value: &Value| of.iter().any(|(known, _)| known == value);
                (*least..=*most).contains(&values.len()) && values.iter().all(known)
            }
            _ => false,
        }
    }

    /// Whether an answer leaves the field out.
    pub(crate) fn is_left_out(&self, answer: &str) -> bool {
        self.is_optional && matches!(answer.trim(), "" | LEAVE_OUT)
    }

    /// The value of an answer; `None` if it does not fit.
    pub(crate) fn read(&self, answer: &str) -> Option<Value> {
        let answer = answer.trim();
        if let Some(value) = self.default.as_ref().filter(|value| answer.is_empty() || self.said(value) == answer) {
            return Some(value.clone());
        }
        match &self.kind {
            Kind::Choices { of, .. } => {
                let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
                let value = |part: &str| of.iter().find(|(value, words)| words == part || value == part);
                let values: Option<Vec<Value>> = parts.map(|part| Some(value(part)?.0.clone())).collect();
                values.map(Value::from).filter(|value| self.admits(value))
            }
            Kind::Text => Some(answer.into()),
            Kind::Whole => answer.parse::<i64>().ok().map(Value::from),
            Kind::Number => answer.parse::<f64>().ok().and_then(Number::from_f64).map(Value::from),
            Kind::Flag => match answer.to_lowercase().as_str() {
                "yes" | "y" | "true" => Some(true.into()),
                "no" | "n" | "false" => Some(false.into()),
                _ => None,
            },
            Kind::Choice(choices) => {
                choices.iter().find(|(value, words)| words == answer || value == answer).map(|(value, _)| value.clone())
            }
        }
    }

    /// What an answer must be, for a question that is asked again.
    pub(crate) fn wanted(&self) -> &'static str {
        match self.kind {
            Kind::Text => "a text",
            Kind::Whole => "a whole number",
            Kind::Number => "a number",
            Kind::Flag => "yes or no",
            Kind::Choice(_) => "one of the choices",
            Kind::Choices { .. } => "some of the choices, with commas between them",
        }
    }
}

/// The values of a form.
pub(crate) type Values = Map<String, Value>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_become_values_of_the_right_type() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "title": "Name", "description": "Of the branch."},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        }, "required": ["name", "count", "share", "sure", "colour", "size"]});
        let fields = fields(&schema).expect("it is a form");
        assert_eq!(fields[0].words, "Name: Of the branch.");
        assert_eq!(
            (fields[3].choices(), fields[5].choices()),
            (vec!["yes".to_owned(), "no".to_owned()], vec!["Small".to_owned(), "Large".to_owned()])
        );
        let read: Vec<_> = fields
            .iter()
            .zip([" main ", "7", "0.5", "Yes", "blue", "Large"])
            .map(|(field, answer)| field.read(answer).unwrap_or_default())
            .collect();
        assert_eq!(read, [json!("main"), json!(7), json!(0.5), json!(true), json!("blue"), json!("l")]);
        for (field, answer) in fields[1..].iter().zip(["7.5", "much", "perhaps", "green", "Medium"]) {
            assert_eq!(field.read(answer), None, "{answer}");
        }
    }

    #[test]
    fn a_proposed_value_comes_first_and_an_optional_field_can_be_left_out() {
        let schema = json!({"type": "object", "required": ["line"], "properties": {
            "line": {"type": "string", "default": "It was dark."},
            "count": {"type": "integer", "default": 42},
            "hero": {"type": "string", "enum": ["m", "s"], "enumNames": ["Mario", "Sonic"], "default": "s"},
            "tools": {"type": "array", "items": {"anyOf": [
                {"const": "a", "title": "Axe"}, {"const": "b", "title": "Bow"}, {"const": "c", "title": "Cup"}]},
                "minItems": 1, "maxItems": 2, "default": ["a", "c"]},
            "odd": {"type": "integer", "default": "many"},
        }});
        let fields = fields(&schema).expect("it is a form");
        let by_name = |name: &str| fields.iter().find(|field| field.name == name).expect("it is a field");
        let (line, count, hero, tools, odd) =
            (by_name("line"), by_name("count"), by_name("hero"), by_name("tools"), by_name("odd"));
        assert_eq!(line.choices(), ["It was dark."]);
        assert_eq!(count.choices(), ["42", LEAVE_OUT]);
        assert_eq!(hero.choices(), ["Sonic", "Mario", LEAVE_OUT]);
        assert_eq!(tools.choices(), ["Axe, Cup", "Axe", "Bow", "Cup", LEAVE_OUT]);
        assert_eq!(odd.choices(), [LEAVE_OUT]);
        assert!(line.takes_values() && count.takes_values() && !hero.takes_values() && !tools.takes_values());
        assert!(count.is_left_out(LEAVE_OUT) && !line.is_left_out(""));
        assert_eq!(
            (line.read(""), count.read("42"), hero.read("Mario")),
            (Some(json!("It was dark.")), Some(json!(42)), Some(json!("m")))
        );
        assert_eq!((tools.read("Axe, Cup"), tools.read("b,Cup")), (Some(json!(["a", "c"])), Some(json!(["b", "c"]))));
        assert_eq!((tools.read("Axe, Bow, Cup"), tools.read("Sword")), (None, None));
        let proposed = json!({"line": "It was dark.", "count": 42, "hero": "s", "tools": ["a", "c"]});
        assert_eq!(defaults(&fields).map(Value::from), Some(proposed));
        let needs = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(super::fields(&needs).and_then(|fields| defaults(&fields)), None);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let many: Map<String, Value> = (0..17).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
        for schema in [
            json!({}),
            json!({"properties": {"a": {"type": "object"}}}),
            json!({"properties": {"a": {"type": "string", "enum": []}}}),
            json!({"properties": {"a": {"enum": [1]}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
            json!({"properties": many}),
        ] {
            assert_eq!(fields(&schema), None, "{schema}");
        }
    }
}
