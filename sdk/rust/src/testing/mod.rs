//! A host for `cargo test`: it answers the imports of a plugin in the same thread, without WebAssembly.
//!
//! ```
//! use hermes_plugin::{Error, http, testing};
//! use serde_json::json;
//!
//! fn weather(place: &str) -> Result<String, Error> {
//!     let request = http::Request::get("https://api.example.org/weather").query("place", place);
//!     let weather: serde_json::Value = request.bearer_secret("api_key").send()?.ok()?.json()?;
//!     Ok(weather["text"].as_str().unwrap_or_default().to_owned())
//! }
//!
//! let host = testing::Host::new().secret("api_key", "k-1").reply(json!({ "text": "rain" })).reply(503);
//! assert_eq!(weather("Cork").as_deref(), Ok("rain"));
//! assert!(weather("Cork").is_err_and(|error| error.code == "status-503"));
//! assert_eq!(host.requests()[0].url, "https://api.example.org/weather?place=Cork");
//! assert_eq!(host.requests()[0].header("authorization"), Some("Bearer k-1"));
//! ```
//!
//! A [`Host`] serves its thread until it is dropped, and each test has a thread of its own. Every permission is granted. What a
//! test has to script (answers of servers, models and programs) is used once and in order; if the plugin asks for more, the test panics
//! and says what is missing. Documents, files, history, clock and random numbers work without a script.
//!
//! The real host checks more: grants, limits, deadlines. `hermes plugins test` runs the built component in it.

mod basics;
mod conversation;
mod files;
mod models;
mod programs;
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
mod storage;
mod web;

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::{Error, Model, Plugin, Session, Start};

pub use models::Says;
pub use programs::Outcome;
pub use settings::check_manifest;
pub use web::{Answer, Sent};

thread_local! {
    static HOST: RefCell<Option<Rc<State>>> = const { RefCell::new(None) };
}

/// What answers the imports, by interface. Each has a cell of its own, so that a closure of the test can use the others.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) info: RefCell<basics::Info>,
    pub(crate) log: RefCell<basics::Log>,
    pub(crate) task: RefCell<basics::Task>,
    pub(crate) clock: RefCell<basics::Clock>,
    pub(crate) random: RefCell<basics::Random>,
    pub(crate) llm: RefCell<models::Models>,
    pub(crate) embeddings: RefCell<models::Vectors>,
    pub(crate) history: RefCell<conversation::Conversation>,
    pub(crate) sql: RefCell<storage::Database>,
    pub(crate) documents: RefCell<storage::Documents>,
    pub(crate) files: RefCell<files::Files>,
    pub(crate) http: RefCell<web::Web>,
    pub(crate) process: RefCell<programs::Programs>,
    session: RefCell<Option<Session>>,
}

/// The host of this thread, for an import.
pub(crate) fn current(import: &str) -> Rc<State> {
    let host = HOST.with_borrow(Clone::clone);
    host.unwrap_or_else(|| {
        panic!(
            "`{import}` was called without a host. In a test, begin with `let _host = \
             hermes_plugin::testing::Host::new();`; other threads than the test's have no host"
        )
    })
}

/// Whether this thread has a host: of a test, or of a native library.
pub(crate) fn is_served() -> bool {
    #[cfg(feature = "native")]
    if crate::native::host::in_host() {
        return true;
    }
    HOST.with_borrow(Option::is_some)
}

/// The host of a test, see the [module](self).
///
/// Methods that take `self` prepare it, also in the middle of a test (`let host = host.reply(200);`). The others change it or
/// say what the plugin did.
#[must_use = "the host serves until it is dropped: keep it in a variable"]
pub struct Host {
    state: Rc<State>,
}

impl Host {
    /// A host that has nothing yet but the time. It serves this thread until it is dropped.
    ///
    /// # Panics
    ///
    /// If the thread has a host already.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let state = Rc::new(State::default());
        HOST.with_borrow_mut(|host| {
            assert!(host.is_none(), "this thread has a host already: drop it first");
            *host = Some(state.clone());
        });
        Self { state }
    }

    /// Sets the session of [`start`](Self::start) instead of [`session()`].
    pub fn session(self, session: Session) -> Self {
        *self.state.session.borrow_mut() = Some(session);
        self
    }

    /// Configures a plugin and starts it in a new session, as the host does.
    ///
    /// ```
    /// use hermes_plugin::{Error, Instance, Setup, config, testing};
    ///
    /// #[config]
    /// struct Lamp {
    ///     colour: String,
    /// }
    ///
    /// impl Instance for Lamp {
    ///     type Config = Lamp;
    ///
    ///     fn new(setup: Setup<Lamp>) -> Result<Self, Error> {
    ///         Ok(setup.config)
    ///     }
    /// }
    ///
    /// let host = testing::Host::new();
    /// let lamp: Lamp = host.start(serde_json::json!({ "colour": "red" }))?;
    /// assert_eq!(lamp.colour, "red");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn start<P: Plugin>(&self, config: Value) -> Result<P, Error> {
        self.start_as(config, Start::Fresh)
    }

    /// Like [`start`](Self::start), for a session that is resumed or continues another one.
    pub fn start_as<P: Plugin>(&self, config: Value, how: Start) -> Result<P, Error> {
        let session = self.state.session.borrow().clone().unwrap_or_else(session);
        P::create_instance(&config.to_string(), session, how)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The thread may be ending already.
        let _ = HOST.try_with(|host| host.take());
    }
}

/// A session for tests: `session-1`, in a terminal, with [`model()`].
pub fn session() -> Session {
    Session {
        id: "session-1".to_owned(),
        parent_id: None,
        title: None,
        platform: "cli".to_owned(),
        purpose: "primary".to_owned(),
        profile: "default".to_owned(),
        user: None,
        channel: None,
        workspace: None,
        model: model(),
        extra: Vec::new(),
    }
}

/// A model for tests, with a window of 200,000 tokens.
pub fn model() -> Model {
    Model { provider: "test".to_owned(), name: "test-model".to_owned(), context_length: 200_000, extra: Vec::new() }
}

#[cfg(test)]
mod tests;
