//! The commands of the offline partner: one a line, each with its tool call or its words.

use std::time::Duration;

use hermes_conversation::tokens;
use serde_json::{Map, Value, json};

/// Command and meaning, as help and documentation list them.
const GRAMMAR: &[(&str, &str)] = &[
    ("remember TEXT", "calls `memory` to add TEXT to the notes"),
    ("forget TEXT", "calls `memory` to remove the note that contains TEXT"),
    ("read PATH", "calls `read_file`"),
    ("write PATH: TEXT", "calls `write_file` with one line of content"),
    ("search PATTERN", "calls `search_files`"),
    ("skills", "calls `skills_list`"),
    ("skill NAME", "calls `skill_view`"),
    ("call TOOL {JSON}", "calls any tool with these arguments"),
    ("fill N", "replies with about N tokens of numbered sentences"),
    ("say TEXT", "replies with TEXT"),
    ("slow MILLISECONDS", "streams its replies to this message with that pause between words"),
    ("help", "says what it is and lists this"),
];

/// How recalled memory begins behind a message.
const MEMORY_BLOCK: &str = "<memory-context";
/// Most tokens of filler in one reply.
const MOST_FILLER: u32 = 200_000;
/// Longest pause between two words.
const LONGEST_PAUSE: u64 = 60_000;

/// A command, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Words to reply with.
    Say(String),
    /// A call to make.
    Call {
        /// The tool.
        name: String,
        /// A JSON object.
        arguments: String,
    },
}

/// A message, understood line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parsed {
    /// In their order.
    pub(super) commands: Vec<Command>,
    /// How many lines are none.
    pub(super) prose: usize,
    /// Between two words.
    pub(super) pause: Option<Duration>,
}

/// Reads what a person said. Recalled memory after it is not part of that.
pub(super) fn parse(message: &str) -> Parsed {
    let mut parsed = Parsed { commands: Vec::new(), prose: 0, pause: None };
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with(MEMORY_BLOCK));
    for line in lines.filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if word == "slow"
            && let Ok(milliseconds) = rest.parse::<u64>()
        {
            parsed.pause = Some(Duration::from_millis(milliseconds.min(LONGEST_PAUSE)));
            continue;
        }
        match command(word, rest) {
            Some(command) => parsed.commands.push(command),
            None => parsed.prose += 1,
        }
    }
    parsed
}

fn command(word: &str, rest: &str) -> Option<Command> {
    let call =
        |name: &str, arguments: Value| Some(Command::Call { name: name.to_owned(), arguments: arguments.to_string() });
    match (word, rest) {
        ("skills", "") => call("skills_list", json!({})),
        ("help", "") => Some(Command::Say(help())),
        (_, "") => None,
        ("remember", text) => call("memory", json!({"action": "add", "target": "memory", "content": text})),
        ("forget", text) => call("memory", json!({"action": "remove", "target": "memory", "old_text": text})),
        ("read", path) => call("read_file", json!({"path": path})),
        ("write", rest) => {
            let (path, content) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
            call("write_file", json!({"path": path.trim(), "content": content.trim()}))
        }
        ("search", pattern) => call("search_files", json!({"pattern": pattern})),
        ("skill", name) => call("skill_view", json!({"name": name})),
        ("call", rest) => Some(any_call(rest)),
        ("fill", count) => count.parse().ok().map(|count: u32| Command::Say(filler(count))),
        ("say", text) => Some(Command::Say(text.to_owned())),
        _ => None,
    }
}

/// `TOOL {JSON}`, the JSON as it is written.
fn any_call(rest: &str) -> Command {
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Command::Call { name: name.to_owned(), arguments: arguments.trim().to_owned() },
        Err(error) => Command::Say(format!("I do not call `{name}`: its arguments are not a JSON object ({error}).")),
    }
}

/// Help: what the partner is, what it understands, and how to configure a model.
pub(super) fn help() -> String {
    let mut text = "I am the offline partner built into Hermes: no model is configured, so I follow commands instead \
                    of thinking. The tools, the memory and the log behind me are the real ones.\n\nEach line of a \
                    message is a command:\n"
        .to_owned();
    for (command, meaning) in GRAMMAR {
        text.push_str(&format!("  {command:<18} {meaning}\n"));
    }
    text.push_str(
        "\nFor a real model, run `hermes setup`: it asks for a provider, its key and a model, and tries them. For a \
         server of your own, run it with the address, such as `hermes setup --base-url http://127.0.0.1:11434/v1`. \
         Without it, set a provider's key, such as OPENROUTER_API_KEY, or `model.provider` and `model.default` in \
         config.yaml.",
    );
    text
}

/// About `count` tokens of numbered sentences: the same ones each time.
pub(super) fn filler(count: u32) -> String {
    const SUBJECTS: &[&str] = &["The harbour", "A quiet mill", "The old road", "One small lamp", "The north wind"];
    const ENDS: &[&str] = &[
        "keeps its own hours through the winter",
        "is older than the town around it",
        "was drawn on no map that we have",
        "belongs to nobody and is used by all",
    ];
    let count = count.min(MOST_FILLER);
    let mut text = String::new();
    let mut spent = 0;
    let mut number = 0usize;
    while spent < count {
        let subject = SUBJECTS[number % SUBJECTS.len()];
        let end = ENDS[(number / SUBJECTS.len()) % ENDS.len()];
        number += 1;
        let sentence = format!("Sentence {number}: {subject} {end}.");
        spent += tokens::of_text(&sentence);
        if number > 1 {
            text.push(' ');
        }
        text.push_str(&sentence);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_the_grammar() {
        let page = include_str!("../../../../docs/use/offline.md");
        for (command, meaning) in GRAMMAR {
            let row = format!("| `{command}` | {meaning} |");
            assert!(page.contains(&row), "docs/use/offline.md lacks the row {row}");
            assert!(help().contains(meaning));
        }
    }

    #[test]
    fn each_line_is_a_command_or_prose() {
        let call =
            |name: &str, arguments: &str| Command::Call { name: name.to_owned(), arguments: arguments.to_owned() };
        let say = |text: &str| Command::Say(text.to_owned());
        for (line, expected) in [
            (
                "remember tea: green",
                Some(call("memory", r#"{"action":"add","target":"memory","content":"tea: green"}"#)),
            ),
            ("forget tea", Some(call("memory", r#"{"action":"remove","target":"memory","old_text":"tea"}"#))),
            ("  read my notes.txt ", Some(call("read_file", r#"{"path":"my notes.txt"}"#))),
            ("write a.txt: one: \"two\"", Some(call("write_file", r#"{"path":"a.txt","content":"one: \"two\""}"#))),
            ("write a.txt:x", Some(call("write_file", r#"{"path":"a.txt","content":"x"}"#))),
            ("write a.txt", None),
            ("search TODO|FIXME", Some(call("search_files", r#"{"pattern":"TODO|FIXME"}"#))),
            ("skills", Some(call("skills_list", "{}"))),
            ("skills please", None),
            ("skill review", Some(call("skill_view", r#"{"name":"review"}"#))),
            ("call t {\"b\": 1, \"a\": 2}", Some(call("t", "{\"b\": 1, \"a\": 2}"))),
            ("call t", Some(call("t", "{}"))),
            ("say hello there", Some(say("hello there"))),
            ("fill many", None),
            ("read", None),
            ("Read a.txt", None),
            ("what can you do?", None),
        ] {
            let parsed = parse(line);
            assert_eq!(parsed.commands.first().cloned(), expected, "{line}");
            assert_eq!(parsed.prose, usize::from(expected.is_none()), "{line}");
        }
        assert!(
            matches!(&parse("call t [1]").commands[..], [Command::Say(text)] if text.contains("not a JSON object"))
        );
    }

    #[test]
    fn recalled_memory_is_not_the_users_words() {
        for tag in ["<memory-context>", "<memory-context mark=\"bcdf\">"] {
            let parsed = parse(&format!("say a\n\nslow 5\n{tag}\nsay b\n</memory-context>"));
            assert_eq!(parsed.commands, [Command::Say("a".to_owned())]);
            assert_eq!(parsed.pause, Some(Duration::from_millis(5)));
        }
    }

    #[test]
    fn filler_has_about_the_tokens_that_were_asked_for() {
        for count in [1, 100, 5_000] {
            let tokens = tokens::of_text(&filler(count));
            assert!(tokens >= count && tokens <= count + count / 10 + 30, "{tokens} for {count}");
        }
        assert!(filler(500).starts_with(&filler(100)));
        assert_eq!(filler(0), "");
    }
}
