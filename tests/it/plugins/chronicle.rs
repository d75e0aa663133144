//! The bundled memory `chronicle`, which needs no service.

use hermes_tests::{Home, Reply, Server};
use serde_json::{Value, json};

fn home(server: &Server, settings: Value) -> Home {
    let home = Home::with(server);
    home.set("memory.provider", json!("chronicle"));
    home.set("plugins.entries.chronicle", settings);
    home
}

fn say(home: &Home, text: &str, options: &[&str]) {
    home.hermes(&[&["-z", text][..], options].concat()).run().success();
}

#[test]
fn what_was_said_in_one_conversation_is_recalled_in_another() {
    let server = Server::answering(|_, number| Reply::text(format!("Answer {number}.")));
    let home = home(&server, json!({"facts": false}));
    say(&home, "The ferry to Rathlin leaves at 07:45.", &[]);
    let frozen = server.last_turn().system_text();
    // In its own conversation, the model sees it anyway.
    say(&home, "When does the ferry leave?", &["--continue"]);
    let sent = server.last_turn().last_user_text().to_owned();
    assert!(!sent.contains("memory-context"), "{sent}");

    say(&home, "Which ferries did I mention today?", &[]);
    let sent = server.last_turn().last_user_text().to_owned();
    for words in ["memory-context", "user: The ferry to Rathlin leaves at 07:45.", "assistant: Answer 0."] {
        assert!(sent.contains(words), "{words:?} is missing in {sent}");
    }
    assert_eq!(server.last_turn().system_text(), frozen);
    // What was recalled is not stored as something that was said.
    say(&home, "And what about trains?", &[]);
    say(&home, "Rathlin?", &[]);
    let sent = server.last_turn().last_user_text().to_owned();
    assert_eq!(sent.matches("leaves at 07:45").count(), 1, "{sent}");
}
