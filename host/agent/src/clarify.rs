//! The host's tool `clarify`: the model asks the user a question, with a few choices or without.
//!
//! The question is an event of the session like a question for approval, and a command answers it. Where nobody can answer, the
//! model gets the instruction to decide by itself at once.

use hermes_conversation::ToolSchema;
use serde_json::{Value, json};

use crate::approval::Gate;

/// The tool's name.
pub(crate) const NAME: &str = "clarify";
/// The most choices that are offered. The user can always answer in other words.
const MOST_CHOICES: usize = 4;
/// The most characters of a question.
const LONGEST_QUESTION: usize = 4_000;
/// The most characters of a choice.
const LONGEST_CHOICE: usize = 400;
/// The fields that may contain the words of a choice that a model writes as an object.
const LABELS: [&str; 4] = ["label", "description", "text", "title"];
const NOBODY: &str = "Nobody can answer in this session. Do not ask again: choose what is most sensible and easiest to undo, go on, \
                      and say in your answer what you assumed.";

/// A question that can be asked.
#[derive(Debug, PartialEq, Eq)]
struct Clarification {
    question: String,
    choices: Vec<String>,
}

/// The tool's schema. It never changes.
pub(crate) fn schema() -> ToolSchema {
    let parameters = json!({"type": "object", "properties": {
        "question": {"type": "string", "description": "Without the choices."},
        "choices": {
            "type": "array", "items": {"type": "string"}, "maxItems": MOST_CHOICES,
            "description": "Up to 4 answers. The user can also use other words.",
        },
    }, "required": ["question"]});
    ToolSchema {
        name: NAME.to_owned(),
        description:
            "Ask the user, if the task can be understood in several ways or a decision has consequences that the user \
                      should weigh. Decide small things yourself. Hermes itself asks for approvals."
                .to_owned(),
        parameters: parameters.to_string(),
    }
}

/// Asks the question of a call and waits for the answer, which the model gets as JSON.
///
/// # Errors
///
/// The text for the model, when the arguments contain no question.
pub(crate) async fn call(gate: &Gate, arguments: &str) -> Result<String, String> {
    let clarification = Clarification::read(arguments)?;
    let Clarification { question, choices } = &clarification;
    let response = gate.clarify(None, question.clone(), choices.clone(), false).await;
    Ok(clarification.answer(response.as_deref()))
}

impl Clarification {
    fn read(arguments: &str) -> Result<Self, String> {
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let question = arguments["question"].as_str().map(|question| within(question.trim(), LONGEST_QUESTION));
        let question = question.filter(|question| !question.is_empty());
        let question = question.ok_or("nothing was asked: `question` must contain the question")?;
        let parsed;
        let choices = match &arguments["choices"] {
            // Some models write a list as a text.
            Value::String(text) if text.trim_start().starts_with('[') => {
                parsed = serde_json::from_str(text).unwrap_or_default();
                &parsed
            }
            choices => choices,
        };
        let mut offered: Vec<String> = Vec::new();
        match choices {
            Value::Null => {}
            Value::Array(choices) => {
                for words in choices.iter().map(words).filter(|words| !words.is_empty()) {
                    if !offered.contains(&words) {
                        offered.push(words);
                    }
                }
            }
            _ => return Err("nothing was asked: `choices` must be a list of texts".to_owned()),
        }
        offered.truncate(MOST_CHOICES);
        Ok(Self { question, choices: offered })
    }

    fn answer(&self, response: Option<&str>) -> String {
        let Self { question, choices } = self;
        let offered = (!choices.is_empty()).then_some(choices);
        let answer = match response {
            Some(response) => {
                json!({"question": question, "choices_offered": offered, "user_response": response.trim()})
            }
            None => json!({"question": question, "choices_offered": offered, "user_response": null, "note": NOBODY}),
        };
        answer.to_string()
    }
}

/// The words of a choice in one line; empty if there are none.
fn words(choice: &Value) -> String {
    let words = match choice {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Object(fields) => {
            let texts = LABELS.iter().filter_map(|label| fields.get(*label)?.as_str());
            texts.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default().to_owned()
        }
        Value::Array(_) | Value::Null => String::new(),
    };
    within(&words.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_CHOICE)
}

fn within(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(arguments: Value) -> (String, Vec<String>) {
        let Clarification { question, choices } = Clarification::read(&arguments.to_string()).unwrap();
        (question, choices)
    }

    #[test]
    fn choices_are_read_as_models_write_them() {
        let none: [&str; 0] = [];
        for (choices, offered) in [
            (json!(null), &none[..]),
            (json!([]), &none),
            (json!([" a ", "", null, "b\nc"]), &["a", "b c"]),
            (json!("[\"a\", \"b\"]"), &["a", "b"]),
            (json!([{"label": " ", "description": "a"}, {"title": "b", "text": "c"}, {"name": "d"}]), &["a", "c"]),
            (json!([1, true, ["a"]]), &["1", "true"]),
            (json!(["a", "b", "a", "c", "d", "e"]), &["a", "b", "c", "d"]),
        ] {
            assert_eq!(read(json!({"question": " which? ", "choices": choices})).1, offered, "{choices}");
        }
        let long = read(json!({"question": "é".repeat(5_000), "choices": ["é".repeat(500)]}));
        assert_eq!((long.0.chars().count(), long.1[0].chars().count()), (4_001, 401));
    }

    #[test]
    fn without_a_question_nothing_is_asked() {
        for (arguments, why) in [
            (json!({}), "`question`"),
            (json!({"question": " \n"}), "`question`"),
            (json!({"question": 7}), "`question`"),
            (json!({"question": "which?", "choices": "a or b"}), "`choices`"),
            (json!({"question": "which?", "choices": {"a": "b"}}), "`choices`"),
        ] {
            assert!(Clarification::read(&arguments.to_string()).unwrap_err().contains(why), "{arguments}");
        }
    }

    #[test]
    fn the_answer_says_what_was_asked_and_what_the_user_said() {
        let open = Clarification { question: "which?".to_owned(), choices: Vec::new() };
        assert_eq!(
            open.answer(Some(" this ")),
            r#"{"question":"which?","choices_offered":null,"user_response":"this"}"#
        );
        let closed = Clarification { choices: vec!["a".to_owned()], ..open };
        let nobody: Value = serde_json::from_str(&closed.answer(None)).unwrap();
        assert_eq!((&nobody["choices_offered"], &nobody["user_response"]), (&json!(["a"]), &json!(null)));
        assert!(nobody["note"].as_str().unwrap().contains("Nobody can answer"));
    }
}
