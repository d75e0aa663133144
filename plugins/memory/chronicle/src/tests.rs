#![allow(clippy::unwrap_used)]

use hermes_plugin::memory_provider::{Query, Turn};
use hermes_plugin::testing::{self, Host, check_manifest};
use hermes_plugin::{Error, MemoryProvider as _, MemoryRewind as _, MemoryUpkeep as _, Progress, Session};
use serde_json::json;

use crate::Chronicle;

/// 12 June 2024, noon.
const NOW: u64 = 1_718_193_600_000;
const DAY: u64 = 86_400_000;

/// A session that is not the one of the turns.
fn host() -> Host {
    Host::new().database().at(NOW).session(Session { id: "now".to_owned(), ..testing::session() })
}

fn chronicle(host: &Host) -> Chronicle {
    host.start(json!({})).unwrap()
}

fn turn(number: u32, days_ago: u64, user: &str, assistant: &str) -> Turn {
    Turn { ended_at: NOW - days_ago * DAY, ..Turn::new(number, user, assistant) }
}

fn recalled(plugin: &mut Chronicle, question: &str) -> Vec<String> {
    let found = plugin.recall(&Query::new(question, 2_000)).unwrap();
    found.into_iter().map(|one| one.text).collect()
}

#[test]
fn the_manifest_describes_the_configuration() {
    check_manifest::<Chronicle>();
}

#[test]
fn a_message_is_found_with_its_time_and_the_messages_beside_it() {
    let host = host();
    let mut plugin = chronicle(&host);
    for one in [
        turn(1, 40, "Where do I keep the keys?", "You did not tell me."),
        turn(2, 40, "In the blue box by the door.", "Noted."),
        turn(3, 39, "Tell me a joke.", "A plugin walks into a bar."),
    ] {
        plugin.sync_turn(&one).unwrap();
        // Delivered again, by another instance.
        chronicle(&host).sync_turn(&one).unwrap();
    }
    let found = recalled(&mut plugin, "where are my keys, in a box?");
    assert_eq!(
        found,
        [
            "[2024-05-03]\nuser: Where do I keep the keys?\nassistant: You did not tell me.\nuser: In the blue box by the door.\n\
          assistant: Noted.\nuser: Tell me a joke."
        ]
    );
    // What is still in view needs no recall.
    drop((plugin, host));
    let host = Host::new().database().at(NOW);
    let mut same = chronicle(&host);
    same.sync_turn(&turn(1, 1, "The ferry leaves at seven.", "Fine.")).unwrap();
    assert_eq!(recalled(&mut same, "When does the ferry leave?"), [""; 0]);
    // Nor does a part of a word of it.
    assert_eq!(recalled(&mut same, "And the erry?"), [""; 0]);
}

#[test]
fn a_message_between_two_that_were_found_is_quoted_once() {
    let host = host();
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 3, "The ferry leaves at seven.", "Noted.")).unwrap();
    plugin.sync_turn(&turn(2, 3, "Tell me a joke.", "A plugin walks into a bar.")).unwrap();
    plugin.sync_turn(&turn(3, 3, "The ferry is blue, says the captain.", "Noted.")).unwrap();
    let found = recalled(&mut plugin, "ferry captain");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found.concat().matches("Tell me a joke.").count(), 1, "{found:?}");
    assert_eq!(found.concat().matches("The ferry ").count(), 2, "{found:?}");
}

#[test]
fn every_text_is_a_safe_question() {
    let host = host();
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 1, "用heaptrack定位内存泄漏, see parser_test.rs", "好的。")).unwrap();
    for question in
        ["\"", "a AND OR (", "*", "NEAR(", "text:", "", " ", "-", "\0", "ab\u{301}", "'); DROP TABLE message; --"]
    {
        plugin.recall(&Query::new(question, 1_000)).unwrap();
    }
    for question in ["内存", "heaptracks", "HEAPTRACK", "parser", "eaptrac"] {
        assert_eq!(recalled(&mut plugin, question).len(), 1, "{question}");
    }
    assert_eq!(recalled(&mut plugin, "硬盘 zebra").len(), 0);
}

#[test]
fn times_count_from_when_something_was_said() {
    let host = host();
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 30, "I went to the dentist yesterday.", "How was it?")).unwrap();
    plugin.sync_turn(&turn(2, 20, "We talk about nothing.", "Indeed.")).unwrap();
    plugin.sync_turn(&turn(3, 10, "More of nothing.", "Indeed.")).unwrap();
    plugin.sync_turn(&turn(4, 1, "The dentist sent a bill.", "How much?")).unwrap();
    // 30 days before 12 June is 13 May, and `yesterday` was 12 May.
    let found = recalled(&mut plugin, "What about the dentist on 12 May?");
    assert!(found[0].contains("I went to the dentist yesterday."), "{found:?}");
    let found = recalled(&mut plugin, "What about the dentist yesterday?");
    assert!(found[0].contains("The dentist sent a bill."), "{found:?}");
    // Without another word, the day decides.
    let found = recalled(&mut plugin, "What was on 23 May?");
    assert!(found[0].contains("We talk about nothing."), "{found:?}");
}

#[test]
fn ten_passages_take_four_kilobytes() {
    let host = host();
    let mut plugin = chronicle(&host);
    for number in 1..=60 {
        let said = format!("The ferry number {number} leaves. {}", "It is a long story about harbours. ".repeat(30));
        plugin.sync_turn(&turn(number, 5, &said, &"A long reply. ".repeat(80))).unwrap();
    }
    let found = recalled(&mut plugin, "When does the ferry leave?");
    assert_eq!(found.len(), 10);
    let bytes: usize = found.iter().map(String::len).sum();
    assert!((2_000..=4_400).contains(&bytes), "{bytes}");
    let few = plugin.recall(&Query::new("When does the ferry leave?", 100)).unwrap();
    assert!(few[0].text.contains("ferry number"), "{few:?}");
}

#[test]
fn a_rewind_forgets_messages_and_the_facts_that_come_from_nothing_else() {
    let host = host().says(
        r#"{"facts": [{"text": "Ada keeps bees.", "sources": [1]}, {"text": "Ada sails.", "sources": [3, 9]},
        {"text": "Nobody said this about bees.", "sources": [77]}]}"#,
    );
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 2, "I keep bees.", "Nice.")).unwrap();
    plugin.sync_turn(&turn(2, 2, "And I sail.", "Nice.")).unwrap();
    assert_eq!(plugin.upkeep().unwrap(), Progress::More);
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    let prompts = host.prompts();
    assert_eq!(prompts.len(), 1);
    let found = recalled(&mut plugin, "bees");
    assert!(found.len() == 2 && found[0] == "[2024-06-10] Ada keeps bees.", "{found:?}");

    plugin.rewound("session-1", 4).unwrap();
    assert_eq!(recalled(&mut plugin, "Who sails?"), [""; 0]);
    let found = recalled(&mut plugin, "bees");
    assert_eq!(found[1], "[2024-06-10]\nuser: I keep bees.\nassistant: Nice.");
    // The turn's name is free again.
    plugin.sync_turn(&turn(2, 1, "And I fly kites.", "Nice.")).unwrap();
    assert!(recalled(&mut plugin, "kites")[0].ends_with("user: And I fly kites.\nassistant: Nice."));
}

#[test]
fn facts_are_collected_behind_a_part_that_the_model_refuses() {
    let host = host()
        .says(Error::invalid("the model refuses this part"))
        .says(r#"{"facts": [{"text": "Ada sails.", "sources": [3]}]}"#);
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 2, "What it refuses.", "Hm.")).unwrap();
    assert_eq!(plugin.upkeep().unwrap(), Progress::More);
    plugin.sync_turn(&turn(2, 2, "I sail.", "Nice.")).unwrap();
    while plugin.upkeep().unwrap() == Progress::More {}
    let found = recalled(&mut plugin, "Who sails?");
    assert!(found[0] == "[2024-06-10] Ada sails.", "{found:?}");
}

#[test]
fn without_a_model_upkeep_is_done() {
    let host = host();
    let mut plugin = chronicle(&host);
    plugin.sync_turn(&turn(1, 2, "I keep bees.", "Nice.")).unwrap();
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
}

#[test]
fn meaning_counts_where_the_host_has_embeddings() {
    let host = host().embeddings(64);
    let mut plugin: Chronicle = host.start(json!({"facts": false})).unwrap();
    plugin.sync_turn(&turn(1, 2, "The kettle is whistling in the kitchen.", "")).unwrap();
    plugin.sync_turn(&turn(2, 2, "Nothing else.", "")).unwrap();
    assert_eq!(plugin.upkeep().unwrap(), Progress::Done);
    // The stand-in's vectors are near for equal texts only; no word is looked for.
    let present = "[]";
    assert_eq!(crate::vectors::nearest("The kettle is whistling in the kitchen.", present), [1]);
    plugin.rewound("session-1", 1).unwrap();
    assert_eq!(crate::vectors::nearest("The kettle is whistling in the kitchen.", present), [0_i64; 0]);
}
