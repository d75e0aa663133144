//! The engine of `tests/guests/planner`: it does what its configuration says.

use hermes_tests::{Home, Output, Reply, Request, Server, is_auxiliary};
use serde_json::{Value, json};

use crate::journal::long_text;

/// Answers every message with its number, shortly.
pub(crate) fn server() -> Server {
    Server::answering(|body, number| match is_auxiliary(body) {
        true => Reply::text("The user and the assistant talked; nothing is open."),
        false => Reply::text(format!("Answer {number}.")),
    })
}

/// A home in which the planner is the engine.
pub(crate) fn home(server: &Server, config: Value) -> Home {
    let home = Home::with(server);
    install(&home, "planner", config);
    home.set("context.engine", json!("planner"));
    home
}

/// Puts a planner there under a name of its own.
pub(crate) fn install(home: &Home, name: &str, mut config: Value) {
    config["name"] = json!(name);
    home.install_guest("planner", name, config);
}

/// A conversation in one process: each line is a message or a command.
pub(crate) fn chat(home: &Home, lines: &[&str]) -> Output {
    chat_with(home, &[], lines)
}

pub(crate) fn chat_with(home: &Home, arguments: &[&str], lines: &[&str]) -> Output {
    home.hermes(arguments).stdin(&format!("{}\n", lines.join("\n"))).run()
}

/// A long message.
pub(crate) fn said(number: usize) -> String {
    long_text("turn", number)
}

/// `hermes context --json` of the newest session.
#[track_caller]
pub(crate) fn context(home: &Home) -> Value {
    let shown = home.hermes(&["context", "--json"]).run().success();
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("no JSON: {error}\n{shown}"))
}

/// What became of its plans, in order.
pub(crate) fn outcomes(home: &Home) -> Vec<String> {
    let path = home.path().join("data/planner/documents/outcomes.txt");
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Whether a request shows a summary instead of what the first turn said.
pub(crate) fn is_compacted(request: &Request) -> bool {
    request.conversation().iter().any(|said| said.text.contains(" folded the messages up to "))
}

/// The lines of standard error that hold a text.
pub(crate) fn lines<'a>(output: &'a Output, text: &str) -> Vec<&'a str> {
    output.stderr.lines().filter(|line| line.contains(text)).collect()
}
