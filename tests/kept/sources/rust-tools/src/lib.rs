//! A tool that counts lines, words or characters of a text, or of a file of the workspace, and what it costs as tokens.
//!
//! The SDK derives the schema that the model sees from the type of the arguments; doc comments become descriptions.

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::process::Command;
use hermes_plugin::{Error, Instance, NoConfig, Setup, Toolbox, Tools, arguments, files, llm};

struct Counter;

impl Instance for Counter {
    type Config = NoConfig;

    fn new(_: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// Counts the lines, words or characters of a text. Use it instead of counting yourself.
#[arguments]
struct Count {
    /// The text.
    text: String,
    /// A file of the workspace to count instead of the text.
    file: Option<String>,
    /// A program of which to count the output.
    program: Option<String>,
    /// What to count; words by default.
    unit: Option<Unit>,
}

#[arguments]
#[serde(rename_all = "lowercase")]
enum Unit {
    Lines,
    Words,
    Characters,
    Tokens,
}

impl Counter {
    fn tools() -> Toolbox<Self> {
        // To add a tool, add a line. This one has no side effects, so it may run in parallel with others.
        Toolbox::new("text").tool("count", Self::count).effect(Effect::Reads).parallel(true)
    }

    fn count(&mut self, arguments: Count) -> Result<String, Error> {
        let text = match (&arguments.file, &arguments.program) {
            (Some(file), _) => String::from_utf8_lossy(&files::read_all("workspace", file, 1 << 20)?).into_owned(),
            (None, Some(program)) => {
                let mut command = Command::new(program);
                command.extra.push(("merge-errors".to_owned(), "true".to_owned()));
                command.run()?.output_text().into_owned()
            }
            (None, None) => arguments.text,
        };
        if text.is_empty() {
            // The model sees this message, so it suggests a fix.
            return Err(Error::invalid("text is empty: give the text itself, not a file's name"));
        }
        let (number, unit) = match arguments.unit.unwrap_or(Unit::Words) {
            Unit::Lines => (text.lines().count(), "lines"),
            Unit::Words => (text.split_whitespace().count(), "words"),
            Unit::Characters => (text.chars().count(), "characters"),
            Unit::Tokens => (llm::count_tokens(&text) as usize, "tokens"),
        };
        Ok(format!("{number} {unit}"))
    }
}

impl Tools for Counter {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let mut catalog = Self::tools().catalog();
        for tool in &mut catalog {
            tool.extra.push(("time-limit-ms".to_owned(), "90000".to_owned()));
        }
        Ok(catalog)
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        Self::tools().call(self, invocation)
    }
}

hermes_plugin::export!(Counter: Tools);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> Result<String, Error> {
        Counter.call(&Invocation::new("count", arguments)).map(|output| output.texts())
    }

    #[test]
    fn each_unit_is_counted() {
        assert_eq!(call(r#"{"text":"two lamps\nünlit"}"#), Ok("3 words".to_owned()));
        assert_eq!(call(r#"{"text":"two lamps\nünlit","unit":"lines"}"#), Ok("2 lines".to_owned()));
        assert_eq!(call(r#"{"text":"ünlit","unit":"characters"}"#), Ok("5 characters".to_owned()));
    }

    #[test]
    fn invalid_arguments_are_reported_to_the_model() {
        for (arguments, part) in
            [("{}", "text"), (r#"{"text":""}"#, "empty"), (r#"{"text":"x","unit":"feet"}"#, "feet")]
        {
            assert!(call(arguments).is_err_and(|error| error.message.contains(part)), "{arguments}");
        }
    }
}
