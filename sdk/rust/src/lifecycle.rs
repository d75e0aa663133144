//! What every plugin is.

use crate::{Error, Session};

use crate::bindings::lifecycle::exports::hermes::plugin::lifecycle as wit;
pub use wit::{Ending, Start};

/// An instance of a plugin: made by [`configure`](Plugin::configure), told of its session, and dropped at any time.
///
/// A session may have several instances, for background work and for tool calls that run in parallel. What must last
/// or pass from one to another belongs in [`documents`](crate::documents).
pub trait Plugin: Sized + 'static {
    /// Before anything else. `config` is the plugin's section of the user's configuration, a JSON object. An error
    /// says why it could not serve.
    fn configure(config: &str) -> Result<Self, Error>;

    /// The session that the following calls are about.
    fn session_start(&mut self, session: &Session, how: &Start) -> Result<(), Error> {
        let _ = (session, how);
        Ok(())
    }

    /// No call follows for this session.
    fn session_end(&mut self, how: Ending) -> Result<(), Error> {
        let _ = how;
        Ok(())
    }
}

impl<S: crate::export::Slot> wit::Guest for S {
    fn configure(config: String) -> Result<(), Error> {
        #[cfg(target_family = "wasm")]
        crate::export::log_panics();
        // A section that the user left out or left empty is one without keys.
        let config = if matches!(config.trim(), "" | "null") { "{}" } else { &config };
        let plugin = S::Plugin::configure(config)?;
        S::with(|slot| *slot = Some(plugin));
        Ok(())
    }

    fn session_start(session: Session, how: Start) -> Result<(), Error> {
        S::call("session-start", |plugin| plugin.session_start(&session, &how))
    }

    fn session_end(how: Ending) -> Result<(), Error> {
        S::call("session-end", |plugin| plugin.session_end(how))
    }
}
