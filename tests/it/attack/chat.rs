//! A model that calls one tool, and a conversation at a terminal.

use hermes_tests::{Call, Home, Reply, Server, Terminal};
use serde_json::Value;

pub(super) const PROMPT: &str = "> ";

/// A model that answers each message with this call, and the result with "Done.".
pub(super) fn model_that_calls(tool: &'static str, arguments: Value) -> Server {
    Server::answering(move |body, number| {
        let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
        match last["role"] == "user" {
            true => Reply::calls([Call::new(&format!("call_{number}"), tool, &arguments)]),
            false => Reply::text("Done."),
        }
    })
}

/// Starts Hermes at a terminal and sends a message.
#[track_caller]
pub(super) fn chat(home: &Home) -> Terminal {
    let mut terminal = home.hermes(&[]).at_terminal();
    terminal.wait_for(PROMPT, 1);
    terminal.press("Go.\r");
    terminal
}

/// Waits for the end of the turn, leaves, and returns all that was shown.
#[track_caller]
pub(super) fn leave(mut terminal: Terminal) -> String {
    terminal.wait_for("Done.", 1);
    terminal.wait_for(PROMPT, 2);
    terminal.press("/exit\r");
    assert!(terminal.wait().success(), "{}", terminal.shown());
    terminal.shown()
}
