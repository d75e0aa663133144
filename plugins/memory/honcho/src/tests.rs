#![allow(clippy::unwrap_used)]

mod local;
mod server;

use hermes_plugin::testing::{self, Host, check_manifest};
use hermes_plugin::tools::Invocation;
use hermes_plugin::{Error, Peer, Session, Tools as _};
use serde_json::{Value, json};

use crate::Honcho;
use crate::config::{Config, Level};
use crate::names::{Place, identity};

fn session(workspace: &str) -> Session {
    Session { workspace: Some(workspace.to_owned()), ..testing::session() }
}

fn config(config: Value) -> Config {
    serde_json::from_value(config).unwrap()
}

fn call(honcho: &mut Honcho, tool: &str, arguments: Value) -> Result<Value, Error> {
    let output = honcho.call(&Invocation::new(tool, arguments))?;
    Ok(serde_json::from_str(&output.texts()).unwrap())
}

#[test]
fn the_manifest_describes_the_configuration() {
    check_manifest::<Honcho>();
}

#[test]
fn conversations_share_a_session_by_the_strategy() {
    let place = |settings: Value, folder: &str| Place::of(&config(settings), &session(folder)).session;
    assert_eq!(place(json!({}), "/home/ada/my app/"), "my-app");
    assert_eq!(place(json!({"sessionStrategy": "per-session"}), "/home/ada/app"), "session-1");
    assert_eq!(place(json!({"sessionStrategy": "global"}), "/home/ada/app"), "hermes");
    let in_repository = Session {
        extra: vec![("repository".to_owned(), "/home/ada/app".to_owned())],
        ..session("/home/ada/app/src/deep")
    };
    let per = |strategy: &str| Place::of(&config(json!({"sessionStrategy": strategy})), &in_repository).session;
    assert_eq!((per("per-repo").as_str(), per("per-directory").as_str()), ("app", "deep"));
    assert_eq!(place(json!({"sessionStrategy": "per-repo"}), "/home/ada/notes"), "notes");
    assert_eq!(place(json!({"sessions": {"/home/ada/app": "main"}}), "/home/ada/app/"), "main");
    assert_eq!(place(json!({"sessionPeerPrefix": true, "peerName": "ada"}), "/home/ada/app"), "ada-app");
    // Letters that a server does not take must not make two folders one.
    assert_ne!(place(json!({}), "/文档"), place(json!({}), "/图片"));
    let chat = Session { channel: Some("42".to_owned()), platform: "telegram".to_owned(), ..session("/app") };
    assert_eq!(Place::of(&config(json!({})), &chat).session, "telegram-42");
}

#[test]
fn people_are_told_apart() {
    let person = |id: &str| Some(Peer { id: id.to_owned(), name: None, extra: Vec::new() });
    let user = |settings: Value, id: &str| {
        let session = Session { user: person(id), ..testing::session() };
        Place::of(&config(settings), &session).user
    };
    assert_eq!(user(json!({"runtimePeerPrefix": "telegram_"}), "7"), "telegram_7");
    assert_eq!(user(json!({"userPeerAliases": {"7": "ada"}}), "7"), "ada");
    assert_eq!(user(json!({"pinUserPeer": true, "peerName": "ada"}), "8"), "ada");
    assert_ne!(user(json!({}), "a.b"), user(json!({}), "a-b"));
    for id in ["", "@ada:example.org", "é", &"x".repeat(2_000)] {
        let name = identity(id);
        assert!((1..=512).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{name}");
    }
}

#[test]
fn long_messages_raise_the_level_up_to_the_cap() {
    let level = |settings: Value, length: usize| config(settings).level(0, &"x".repeat(length));
    assert_eq!(level(json!({}), 119), Level::Low);
    assert_eq!(level(json!({}), 120), Level::Medium);
    assert_eq!(level(json!({}), 4_000), Level::High);
    assert_eq!(level(json!({"reasoningLevelCap": "medium"}), 4_000), Level::Medium);
    assert_eq!(level(json!({"reasoningHeuristic": false}), 4_000), Level::Low);
    assert_eq!(level(json!({"dialecticReasoningLevel": "max"}), 10), Level::Max);
    assert_eq!(level(json!({"dialecticDepth": 2}), 10), Level::Minimal);
    assert_eq!(level(json!({"dialecticDepthLevels": ["high"]}), 10), Level::High);
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let host = Host::new().database();
    for (settings, words) in [
        (json!({"baseUrl": "honcho.lan"}), "`baseUrl`"),
        (json!({"baseUrl": "http://honcho.lan/v3"}), "leave it out"),
        (json!({"recallMode": "auto"}), "`recallMode`"),
        (json!({"mode": "cloud"}), "`mode`"),
    ] {
        let error = host.start::<Honcho>(settings).err().unwrap();
        assert!(error.message.contains(words), "{error}");
    }
}
