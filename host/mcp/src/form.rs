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
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text,
    Whole,
    Number,
    Flag,
    /// Values, each with its words.
    Choice(Vec<(Value, String)>),
}

/// The fields of a schema, in the order of the server; `None` if it is no form that a user can answer.
pub(crate) fn fields(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema["properties"].as_object()?;
    if properties.len() > FIELDS {
        return None;
    }
    properties.iter().map(|(name, property)| field(name, property)).collect()
}

fn field(name: &str, property: &Value) -> Option<Field> {
    let words = [property["title"].as_str().unwrap_or(name), property["description"].as_str().unwrap_or_default()];
    let words = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ");
    let kind = match choices(property) {
        Some(choices) if choices.len() > CHOICES || choices.is_empty() => return None,
        Some(choices) => Kind::Choice(choices),
        None => match property["type"].as_str()? {
            "string" => Kind::Text,
            "integer" => Kind::Whole,
            "number" => Kind::Number,
            "boolean" => Kind::Flag,
            _ => return None,
        },
    };
    Some(Field { name: name.to_owned(), words: one_line_within(&words, WORDS), kind })
}

fn choices(property: &Value) -> Option<Vec<(Value, String)>> {
    if let Some(options) = property["oneOf"].as_array() {
        let choice = |option: &Value| {
            let value = option["const"].as_str()?;
            Some((value.into(), one_line_within(option["title"].as_str().unwrap_or(value), WORDS)))
        };
        return options.iter().map(choice).collect();
    }
    let values = property["enum"].as_array()?.iter().map(Value::as_str);
    values.map(|value| Some((value?.into(), one_line_within(value?, WORDS)))).collect()
}

impl Field {
    /// The words of the answers to choose from.
    pub(crate) fn choices(&self) -> Vec<String> {
        match &self.kind {
            Kind::Choice(choices) => choices.iter().map(|(_, words)| words.clone()).collect(),
            Kind::Flag => vec!["yes".to_owned(), "no".to_owned()],
            Kind::Text | Kind::Whole | Kind::Number => Vec::new(),
        }
    }

    /// The value of an answer; `None` if it does not fit.
    pub(crate) fn read(&self, answer: &str) -> Option<Value> {
        let answer = answer.trim();
        match &self.kind {
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
        }});
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
    fn what_is_no_form_is_refused() {
        let many: Map<String, Value> = (0..17).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
        for schema in [
            json!({}),
            json!({"properties": {"a": {"type": "object"}}}),
            json!({"properties": {"a": {"type": "string", "enum": []}}}),
            json!({"properties": {"a": {"enum": [1]}}}),
            json!({"properties": many}),
        ] {
            assert_eq!(fields(&schema), None, "{schema}");
        }
    }
}
