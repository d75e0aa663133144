//! Ephemeral layers are sent with every request, stored in no conversation, and accounted for.

use hermes_tests::oracle::assert_valid_marked_request;
use hermes_tests::{BreakpointCache, Home, Server};
use serde_json::{Value, json};

use crate::fixtures::journal::texts;
use crate::fixtures::ledger::Ledger;
use crate::fixtures::workday;

#[test]
fn prefill_messages_precede_every_conversation_but_are_not_stored() {
    let server = Server::answering(workday::partner).with_cache(BreakpointCache::new());
    let home = workday::home(Home::with(&server));
    // A model with a known price.
    home.set("model.provider", json!("openrouter"));
    home.set("model.default", json!("anthropic/claude-sonnet-4.5"));
    home.set("prompt.prefill_messages_file", json!("asides/prefill.json"));
    let aside = [("user", "Ahoy"), ("assistant", "Aye")];
    let file: Vec<Value> = aside.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    home.write("asides/prefill.json", Value::from(file).to_string());
    // A file of the same name in the workspace must be ignored.
    home.write_workspace(
        "asides/prefill.json",
        r#"[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]"#,
    );
    for number in [0, 2] {
        workday::turn(&home, number, &[]).run().success();
    }

    let turns = server.turns();
    assert_eq!(turns.len(), 4);
    for request in &turns {
        assert_valid_marked_request(&request.body);
        let said = request.conversation();
        for (said, (role, text)) in said.iter().zip(aside) {
            assert_eq!((said.role.as_str(), said.text.as_str()), (role, text));
        }
        assert_eq!(said[2].text, "Turn 0: go on.");
    }
    let log = home.messages();
    assert_eq!(texts(&log, "user"), ["Turn 0: go on.", "Turn 2: go on."]);
    assert!(log.iter().all(|message| !message.to_string().contains("Ahoy")), "{log:?}");

    let ledger = Ledger::of(&home);
    assert_eq!(ledger.causes(), [Some("first-request"), None, None, None]);
    let costs: Vec<f64> = ledger
        .requests
        .iter()
        .map(|request| {
            // One word each: the rest of the file is not sent.
            assert_eq!(request["ephemeral"]["tokens"], 2, "{request}");
            request["ephemeral"]["cost"].as_f64().unwrap_or_else(|| panic!("no cost: {request}"))
        })
        .collect();
    assert!(costs[0] > costs[1] && costs[1] > 0.0, "a prefix that stayed costs less: {costs:?}");
    assert_eq!(costs[1..], [costs[1]; 3]);
}
