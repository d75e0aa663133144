//! The one test of the rule for names and descriptions. Most vectors are those of `skills-ref`, the reference of
//! agentskills.io (commit 69ef37e, Apache-2.0): the key `agentskills` has its verdict, and `hermes` what this crate reads, or a
//! word of the flaw. Hermes accepts more, except for names with combining characters, which a folder may not have everywhere.

#![allow(clippy::unwrap_used)]

use hermes_skill_format::{Flaw, Header};
use serde_json::{Value, json};

#[test]
fn a_skill_is_read_by_the_rule() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    assert!(vectors.len() > 25);
    for vector in &vectors {
        let header = Header::parse(vector["text"].as_str().unwrap(), vector["folder"].as_str());
        let found = match &header {
            Ok(header) => json!({"name": header.name, "description": header.description}),
            Err(Flaw::NoName) => json!("no name"),
            Err(Flaw::LongName) => json!("long name"),
            Err(Flaw::Name(_)) => json!("name"),
            Err(Flaw::NoFrontMatter) => json!("no front matter"),
            Err(Flaw::NoDescription) => json!("no description"),
            Err(Flaw::Guess(_)) => json!("broken"),
        };
        assert_eq!(found, vector["hermes"], "{}", vector["name"]);
        let is_valid = vector["agentskills"] == "valid";
        assert!(!is_valid || header.is_ok() || vector["name"] == "nfkc_normalization", "{}", vector["name"]);
    }
    assert_eq!(Header::parse("text", None), Err(Flaw::NoFrontMatter));
}
