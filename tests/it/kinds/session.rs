//! A session with each plugin of the pages, and a model that follows a script.

use hermes_tests::{Call, Home, Reply, Server};
use serde_json::{Value, json};

/// A home with a scripted model, and what a reader of the page sees of its session.
pub(super) struct Stage {
    pub(super) home: Home,
    server: Server,
    seen: String,
}

/// What the model does: it calls a tool that fits the kind after the user's message, and then answers.
fn model(kind: &str, body: &Value) -> Reply {
    let messages = body["messages"].as_array().expect("there are messages");
    let last = &messages[messages.len() - 1];
    let said = last["content"].to_string();
    let call = |name: &str, arguments: Value| Reply::calls([Call::new("call_1", name, &arguments)]);
    if last["role"] == "tool" {
        return match kind {
            "tools" => {
                let days = last["content"].as_str().and_then(|text| text.split(" days").next()).unwrap_or_default();
                Reply::text(format!("It is {days} days."))
            }
            "skills" => Reply::text("First I run the tests."),
            "hooks" if said.contains("is private") => Reply::text("The file is private, so I did not read it."),
            "hooks" => Reply::text("I may not write the file without you."),
            _ => Reply::text("The sentence about the ferry is closer."),
        };
    }
    match kind {
        "tools" => call("days_between", json!({ "from": "2026-12-01", "to": "2026-12-24" })),
        "skills" => call("skill_view", json!({ "name": "release" })),
        "hooks" if said.contains("password") => call("read_file", json!({ "path": ".env" })),
        "hooks" => call("write_file", json!({ "path": "notes.md", "content": "ferry: 07:45\n" })),
        "embedder" => {
            let texts = ["When does the ferry leave?", "The ferry leaves at 07:45.", "Tea needs hot water."];
            call("vectors", json!({ "texts": texts }))
        }
        "memory-provider" if said.contains("<memory-context ") => Reply::text("It leaves at 07:45."),
        "memory-provider" => Reply::text("Noted."),
        _ => Reply::text("I read it.\n".to_owned() + &"The chapter is long, and says much. ".repeat(40)),
    }
}

/// The text with the page's mark in its fences, because real marks differ each time.
fn with_one_mark(text: &str) -> String {
    let mut parts = text.split(" mark=\"");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let behind = part.split_once('"').map_or(part, |(_, behind)| behind);
        shown.push_str(&format!(" mark=\"kqhrdmvtbcgs\"{behind}"));
    }
    shown
}

impl Stage {
    pub(super) fn new(kind: &str) -> Self {
        let owned = kind.to_owned();
        let server = Server::answering(move |body, _| model(&owned, body));
        Self { home: Home::with(&server), server, seen: String::new() }
    }

    /// Uses the plugin, and returns the session.
    pub(super) fn play(mut self, kind: &str, name: &str) -> String {
        match kind {
            "context-engine" => {
                self.home.set("context.engine", json!(name));
                self.home.set("model.context_length", json!(12_000));
                self.read_a_book();
            }
            "memory-provider" => {
                self.home.set("memory.provider", json!(name));
                self.say("The ferry Albatross leaves at 07:45.");
                self.say("When does the ferry Albatross leave?");
            }
            "embedder" => {
                self.home.install_guest("inquirer", "inquirer", json!({}));
                self.home.set("plugins.enabled", json!(["inquirer"]));
                self.home.set("auxiliary.embeddings.plugin", json!(name));
                self.say("Which of these is closer to the question?");
            }
            "hooks" => {
                self.home.write_workspace(".env", "PASSWORD=secret\n");
                self.home.set("plugins.enabled", json!([name]));
                self.say("What is the password?");
                self.say("Write down when the ferry leaves.");
            }
            _ => {
                self.home.set("plugins.enabled", json!([name]));
                let question = "How many days are there from 1 December 2026 to Christmas Eve?";
                self.say(if kind == "tools" { question } else { "Make a release." });
            }
        }
        self.seen
    }

    /// A turn, as the user and the model see it.
    fn say(&mut self, text: &str) {
        let output = self.home.hermes(&["-z", text]).run().success();
        self.seen.push_str(&format!("$ hermes -z \"{text}\"\n"));
        let request = self.server.last_turn();
        let said = request.last_user_text();
        if said != text {
            let added = with_one_mark(said.strip_prefix(text).unwrap_or(said).trim());
            self.seen.push_str(&indented("the model reads, after these words:", &added));
        }
        for message in request.messages() {
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
                let [name, arguments] = [name, arguments].map(|text| text.as_str().unwrap_or_default());
                self.seen.push_str(&format!("  the model calls {name} {arguments}\n"));
            }
            if message["role"] == "tool" {
                self.seen.push_str(&indented("and reads:", message["content"].as_str().unwrap_or_default()));
            }
        }
        self.seen.push_str(&output.stdout);
    }

    /// Turns that fill a small window, and what the model then reads of the first ones.
    fn read_a_book(&mut self) {
        for chapter in 1..=10 {
            let text = format!("Here is chapter {chapter}.\n{}", "It was a calm day at the harbour. ".repeat(60));
            let more: &[&str] = if chapter == 1 { &[] } else { &["--continue"] };
            let output = self.home.hermes(&[&["-z", text.as_str()], more].concat()).run().success();
            assert!(!output.stderr.contains("invalid compaction"), "{output}");
        }
        let request = self.server.last_turn();
        let mut texts = request.messages().iter().filter_map(|message| message["content"].as_str());
        let digest = texts.find(|text| text.contains("#1 Here is chapter 1.")).expect("messages were folded");
        self.seen
            .push_str("$ hermes -z \"Here is chapter 1. …\"\n$ hermes -z \"Here is chapter 2. …\" --continue\n…\n");
        self.seen.push_str("$ hermes -z \"Here is chapter 10. …\" --continue\n");
        self.seen.push_str(&indented("the model reads, instead of the first chapters:", digest));
    }
}

/// A title, and a text below it.
fn indented(title: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
    format!("  {title}\n{lines}")
}
