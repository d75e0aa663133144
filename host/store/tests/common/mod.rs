//! Shared fixtures of these tests.

use hermes_conversation::Model;
use hermes_store::NewSession;

/// A session of the command line.
pub(crate) fn new_session() -> NewSession {
    NewSession {
        source: "cli".into(),
        workspace: "/home/ada".into(),
        engine: "compressor".into(),
        model: Model { provider: "offline".into(), name: "offline".into(), context_length: 32_000 },
        title: None,
        frozen: None,
        started_at: 1_795_300_000_000,
        parent: None,
    }
}
