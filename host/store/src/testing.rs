//! Shared fixtures of the tests.
#![allow(clippy::unwrap_used)]

use hermes_conversation::Model;
use tempfile::TempDir;

use crate::{NewSession, Parent, ParentKind, Session, Store};

/// A store in a folder that is removed with the guard.
pub(crate) fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
}

/// A session of the command line.
pub(crate) fn new_session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada/engine".into(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}

/// A session that continues another one.
pub(crate) fn child(store: &Store, parent: &Session, kind: ParentKind, through: Option<u64>) -> Session {
    let through = through.map(hermes_conversation::MessageId);
    let parent = Some(Parent { id: parent.id.clone(), kind, through });
    store.create_session(NewSession { parent, ..new_session() }).unwrap()
}
