//! Stores and exports of commit 4403e97 (`fixtures/commit-4403e97`) are migrated or imported, searched, and continued with the bytes
//! that 4403e97 sent.

use std::fs;

use hermes_tests::oracle::{assert_valid_anthropic_request, assert_valid_request};
use hermes_tests::{Home, Reply, Server, unmarked};
use rusqlite::Connection;
use serde_json::json;

use crate::fixtures::released::{self, Sent};

/// A minute after the last turn of the fixture, so that its prompt cache counts as warm.
fn moment(sent: &Sent) -> &'static str {
    if sent.is_anthropic() { "2026-11-21T08:47:00Z" } else { "2026-11-21T08:17:00Z" }
}

/// The schema version in the header of the database file.
fn schema_version(home: &Home) -> u32 {
    // A process that exits checkpoints its log into the file.
    let file = fs::read(home.state_db()).unwrap();
    u32::from_be_bytes(file[60..64].try_into().unwrap())
}

/// The store of 4403e97 in a new home. Its sessions move to the workspace of the test, because a session is only continued in a folder
/// that exists; their prompts still name the old one.
fn migrated(home: &Home) {
    home.write("state.db", released::store());
    let store = Connection::open(home.state_db()).unwrap();
    store.execute("UPDATE sessions SET workspace = ?1", [home.workspace().to_str().unwrap()]).unwrap();
    store.close().unwrap();
    assert_eq!(schema_version(home), 5);
}

/// The export of 4403e97 in a new home.
fn imported(home: &Home) {
    let export = String::from_utf8(released::export()).unwrap();
    let (old, new) = (r#""workspace":"/srv/harbour""#, format!(r#""workspace":{}"#, json!(home.workspace())));
    assert_eq!(export.matches(old).count(), 4);
    fs::write(home.workspace().join("old.jsonl"), export.replace(old, &new)).unwrap();
    let import = ["sessions", "import", "old.jsonl", "--trust"];
    home.hermes(&import).run().success().says(&["4 sessions with 72 messages imported"]);
}

/// Brings the old sessions into a home, uses the commands that read them, and continues each one.
fn opens_and_goes_on(bring: fn(&Home)) {
    for sent in released::sent() {
        let server = Server::scripted([Reply::text("Noted.")]);
        let home = sent.home(&server);
        bring(&home);
        home.hermes(&["sessions", "check"]).run().success();
        let sessions = home.sessions_json();
        let messages: u64 = sessions.iter().map(|session| session["message_count"].as_u64().unwrap()).sum();
        // 72 in the log, of which two rewinds hide four messages each.
        assert_eq!((sessions.len(), messages), (4, 64));
        let found = home.hermes(&["sessions", "search", "lighthouse keeper"]).run().success();
        assert!(found.stdout.contains("lighthouse"), "{found}");
        // The turn that was taken back is not found.
        let taken_back = home.hermes(&["sessions", "search", "mistake", "--json"]).run().success();
        assert_eq!(taken_back.stdout.trim(), "[]");
        let shown = home.hermes(&["sessions", "show", &sent.session]).run().success();
        assert!(shown.stdout.contains("when does the ferry leave, and who keeps the lighthouse?"), "{shown}");
        assert!(!shown.stdout.contains("this was a mistake"), "{shown}");

        let resumed = ["-z", "Turn 16: and now?", "--resume", &sent.session];
        let output = home.hermes(&resumed).at(moment(&sent)).run().success();
        assert_eq!(output.stdout, "Noted.\n");
        let request = server.last_turn();
        let raw = std::str::from_utf8(&request.raw).unwrap();
        if sent.is_anthropic() {
            assert_valid_anthropic_request(&request.body);
            assert_begins_with_anthropic(raw, &sent.raw);
        } else {
            assert_valid_request(&request.body);
            assert_begins_with(raw, &sent.raw);
        }
        assert_eq!(request.last_user_text(), "Turn 16: and now?");
        assert_eq!(schema_version(&home), hermes_store::SCHEMA_VERSION);
    }
}

/// Compares whole bodies. The messages are the last member, so the old body without its closing brackets has to be the beginning of the
/// new one: model, parameters, tools, system prompt and every old message, byte for byte.
#[track_caller]
fn assert_begins_with(new: &str, old: &str) {
    let old = old.strip_suffix("]}").expect("messages are the last member");
    let same = common(new, old);
    assert!(same == old.len(), "byte {same} of {}: `{}` was sent, now `{}`", old.len(), at(old, same), at(new, same));
}

/// The same, with two differences that belong to the format. Cache marks move to the newest messages with each request: they are
/// removed from both texts, and everything before the first mark on a message is compared with its marks. And `max_tokens` is what the
/// window has left, which differs with the length of the request: its digits are removed.
#[track_caller]
fn assert_begins_with_anthropic(new: &str, old: &str) {
    let (new, old) = (without_max_tokens(new), without_max_tokens(old));
    let messages = old.find(r#""messages":["#).unwrap();
    let first_mark = messages + old[messages..].find(r#","cache_control":"#).unwrap();
    assert!(old[..messages].contains(r#","cache_control":"#), "the system prompt has marks");
    assert!(common(&new, &old) >= first_mark, "differs before the first mark: {}", at(&new, common(&new, &old)));
    assert_begins_with(&unmarked(&new), &unmarked(&old));
}

fn without_max_tokens(body: &str) -> String {
    let (before, rest) = body.split_once(r#""max_tokens":"#).unwrap();
    format!(r#"{before}"max_tokens":{}"#, rest.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

/// The length of the common beginning in bytes.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// Some text around a byte, for messages.
fn at(text: &str, byte: usize) -> String {
    let bytes = &text.as_bytes()[byte.saturating_sub(80)..text.len().min(byte + 80)];
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_store_of_4403e97_is_migrated_and_its_sessions_go_on_with_the_same_bytes() {
    opens_and_goes_on(migrated);
}

#[test]
fn an_export_of_4403e97_is_imported_and_its_sessions_go_on_with_the_same_bytes() {
    opens_and_goes_on(imported);
}

#[test]
fn a_migrated_store_exports_what_4403e97_exported() {
    let home = Home::new();
    home.write("state.db", released::store());
    let exported = home.hermes(&["sessions", "export", "--all"]).run().success().stdout;
    let old = String::from_utf8(released::export()).unwrap();
    let records = |text: &str| {
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    for (new, old) in records(&exported).into_iter().zip(records(&old)) {
        // Newer versions may add members; none of the old ones is lost or changed.
        for (name, value) in old.as_object().unwrap() {
            assert_eq!(&new[name], value, "`{name}` of {old}");
        }
    }
    assert_eq!(exported.lines().count(), old.lines().count());
}
