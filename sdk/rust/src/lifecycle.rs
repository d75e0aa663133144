//! The functions that every plugin has.

use crate::{Error, Session};

use crate::bindings::lifecycle::exports::hermes::lifecycle::lifecycle as wit;
pub use wit::{Ending, Start};

/// An instance of a plugin. [`configure`](Plugin::configure) creates it, [`session_start`](Plugin::session_start) names its
/// session, and the host may drop it at any time.
///
/// A session can have several instances, for background work and for parallel tool calls. Keep lasting or shared data in
/// [`documents`](crate::documents).
pub trait Plugin: Sized + 'static {
    /// Called first. `config` is the plugin's configuration section, a JSON object. Return an error if the plugin cannot work
    /// with it.
    fn configure(config: &str) -> Result<Self, Error>;

    /// The session that all following calls belong to.
    fn session_start(&mut self, session: &Session, how: &Start) -> Result<(), Error> {
        let _ = (session, how);
        Ok(())
    }

    /// The session ends; no further call follows for it.
    fn session_end(&mut self, how: Ending) -> Result<(), Error> {
        let _ = how;
        Ok(())
    }
}

impl<S: crate::export::Slot> wit::Guest for S {
    fn configure(config: String) -> Result<(), Error> {
        #[cfg(target_family = "wasm")]
        crate::export::log_panics();
        // A missing or empty configuration section counts as an empty object.
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
