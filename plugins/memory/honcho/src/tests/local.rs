//! The mode `local`.

use hermes_plugin::memory_provider::{Query, Turn};
use hermes_plugin::testing::Host;
use hermes_plugin::{Error, MemoryPrefetch as _, MemoryProvider as _, MemoryRewind as _, MemoryUpkeep as _, Progress};
use serde_json::json;

use super::call;
use crate::Honcho;

fn honcho(host: &Host) -> Honcho {
    host.start(json!({"mode": "local", "peerName": "ada"})).unwrap()
}

#[test]
fn cards_conclusions_and_search_need_no_model() {
    let host = Host::new().database();
    let mut plugin = honcho(&host);
    for turn in [Turn::new(1, "My ferry leaves at 07:45.", "Noted."), Turn::new(2, "I prefer tea.", "Fine.")] {
        plugin.sync_turn(&turn).unwrap();
        // Delivered again, by another instance.
        honcho(&host).sync_turn(&turn).unwrap();
    }
    let found = call(&mut plugin, "honcho_search", json!({"query": "when do the ferries leave?"})).unwrap();
    assert_eq!(found["excerpts"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["excerpts"][0]["text"], "My ferry leaves at 07:45.");
    for query in ["\"", "a AND OR (", "*", "茶"] {
        call(&mut plugin, "honcho_search", json!({ "query": query })).unwrap();
    }

    call(&mut plugin, "honcho_profile", json!({"card": ["IDENTITY: Ada", " "]})).unwrap();
    assert_eq!(call(&mut plugin, "honcho_profile", json!({})).unwrap()["card"], json!(["IDENTITY: Ada"]));
    assert_eq!(call(&mut plugin, "honcho_profile", json!({"peer": "ai"})).unwrap()["card"], json!([]));

    let kept = call(&mut plugin, "honcho_conclude", json!({"conclusion": "Ada drinks tea at 4"})).unwrap();
    let again = call(&mut plugin, "honcho_conclude", json!({"conclusion": "ada drinks tea at 4."})).unwrap();
    assert_eq!(kept["id"], again["id"]);
    // Another number is another fact.
    let other = call(&mut plugin, "honcho_conclude", json!({"conclusion": "Ada drinks tea at 5"})).unwrap();
    assert_ne!(kept["id"], other["id"]);
    let recalled = plugin.recall(&Query::new("What about tea?", 1_000)).unwrap();
    let texts: Vec<&str> = recalled.iter().map(|one| one.text.as_str()).collect();
    assert!(
        texts[0].contains("IDENTITY: Ada") && texts.iter().any(|text| text.ends_with("Ada drinks tea at 4")),
        "{texts:?}"
    );
    call(&mut plugin, "honcho_conclude", json!({"delete_id": kept["id"]})).unwrap();
    let listed = call(&mut plugin, "honcho_conclude", json!({"list": true, "query": "tea"})).unwrap();
    assert_eq!(listed["conclusions"].as_array().unwrap().len(), 1, "{listed}");
    assert!(call(&mut plugin, "honcho_conclude", json!({"delete_id": "99"})).is_err());

    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    let error = call(&mut plugin, "honcho_reasoning", json!({"query": "What does Ada drink, tea?"})).unwrap_err();
    assert!(error.message.contains("honcho_search needs none"), "{error}");
    assert_eq!(plugin.prefetch(&Query::new("Is it time for tea?", 1_000)).unwrap().len(), 0);
    plugin.rewound("session-1", 3).unwrap();
    let found = call(&mut plugin, "honcho_search", json!({"query": "tea ferry"})).unwrap();
    assert_eq!(found["excerpts"].as_array().unwrap().len(), 1, "{found}");
}

#[test]
fn a_model_takes_facts_from_what_was_said_and_answers_from_them() {
    let facts = json!({
        "facts": [{"about": "ada", "text": "Ada has a boat named Albatross."}, {"about": "ada", "text": " "}],
        "card": ["ATTRIBUTE: owns a boat", "no label"],
    });
    let host = Host::new().database();
    let mut plugin = honcho(&host);
    plugin.sync_turn(&Turn::new(1, "My boat is the Albatross.", "A fine name.")).unwrap();
    let host = host.says(Error::unavailable("busy"));
    // A failure keeps the place: nothing is skipped.
    assert!(plugin.upkeep().is_err());
    let host = host.says(format!("Here: {facts}").as_str());
    assert_eq!(plugin.upkeep().unwrap(), Progress::More);
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    assert_eq!(call(&mut plugin, "honcho_profile", json!({})).unwrap()["card"], json!(["ATTRIBUTE: owns a boat"]));
    let listed = call(&mut plugin, "honcho_conclude", json!({"list": true})).unwrap();
    assert_eq!(listed["conclusions"].as_array().unwrap().len(), 1, "{listed}");
    let host = host.says("Her boat is the Albatross.");
    let answer = call(&mut plugin, "honcho_reasoning", json!({"query": "What is the boat called?"})).unwrap();
    assert_eq!(answer["answer"], "Her boat is the Albatross.");
    let asked = host.prompts().last().unwrap().messages[1].texts();
    assert!(
        asked.contains("Ada has a boat named Albatross.") && asked.contains("My boat is the Albatross."),
        "{asked}"
    );
}

#[test]
fn a_long_conversation_is_summarised() {
    let host = Host::new().database();
    let mut plugin = honcho(&host);
    for number in 1..=10 {
        plugin.sync_turn(&Turn::new(number, format!("Step {number}?"), "Done.")).unwrap();
    }
    let _host = host.says("no JSON at all").says("They went through ten steps.");
    // What a model answers in another form means that there is nothing to remember.
    assert_eq!((plugin.upkeep().unwrap(), plugin.upkeep().unwrap()), (Progress::More, Progress::More));
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    let snapshot = call(&mut plugin, "honcho_context", json!({})).unwrap();
    assert_eq!(snapshot["summary"], "They went through ten steps.");
    assert_eq!(snapshot["recent_messages"].as_array().unwrap().len(), 10);
}
