//! The functions that every plugin has.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, Session};

use crate::bindings::lifecycle::exports::hermes::lifecycle::lifecycle as wit;
pub use wit::{Ending, Start};

/// What an instance of a plugin is created from.
#[derive(Clone, Debug)]
pub struct Setup<C> {
    /// The plugin's configuration section.
    pub config: C,
    /// The session that all calls belong to.
    pub session: Session,
    /// Whether the session is new.
    pub start: Start,
}

/// The type of a plugin without settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NoConfig {}

/// An instance of a plugin, created by [`new`](Instance::new) for a session. The host may drop it at any time.
///
/// ```
/// use hermes_plugin::{Error, Instance, Setup, config, testing};
///
/// #[config]
/// struct Config {
///     /// Number of sides.
///     #[serde(default = "six")]
///     sides: u32,
/// }
///
/// fn six() -> u32 {
///     6
/// }
///
/// struct Dice {
///     sides: u32,
///     session: String,
/// }
///
/// impl Instance for Dice {
///     type Config = Config;
///
///     fn new(setup: Setup<Config>) -> Result<Self, Error> {
///         Ok(Self { sides: setup.config.sides, session: setup.session.id })
///     }
/// }
///
/// let host = testing::Host::new();
/// let dice: Dice = host.start(serde_json::json!({ "sides": 20 }))?;
/// assert_eq!((dice.sides, dice.session.as_str()), (20, "session-1"));
/// let wrong = host.start::<Dice>(serde_json::json!({ "sides": "many" }));
/// assert!(wrong.is_err_and(|error| error.message.contains("`sides`")));
/// # Ok::<(), Error>(())
/// ```
///
/// A session can have several instances, for background work and for parallel tool calls. Keep lasting or shared data in
/// [`documents`](crate::documents).
pub trait Instance: Sized + 'static {
    /// The type of the configuration section: [`config`](crate::config) derives it, and [`NoConfig`] stands for none. An error names
    /// the key.
    type Config: DeserializeOwned;

    /// Checks what the type and the manifest's schema cannot say. The user reads the error. Do not use the network here, because
    /// installing a plugin calls this function too.
    fn check(config: &Self::Config) -> Result<(), Error> {
        let _ = config;
        Ok(())
    }

    /// Creates the instance. The configuration has passed [`check`](Instance::check).
    fn new(setup: Setup<Self::Config>) -> Result<Self, Error>;

    /// The session ends; no further call follows for it.
    fn session_end(&mut self, how: Ending) -> Result<(), Error> {
        let _ = how;
        Ok(())
    }
}

/// An instance of a plugin that is created in two steps: [`configure`](Plugin::configure) creates it, and
/// [`session_start`](Plugin::session_start) names its session. [`Instance`] has one constructor instead, and implements this trait.
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

    /// Configures an instance, or checks the configuration of one that is created later.
    #[doc(hidden)]
    fn prepare_instance(config: &str) -> Result<Prepared<Self>, Error> {
        Self::configure(config).map(Prepared::Instance)
    }

    /// Creates an instance for a session.
    #[doc(hidden)]
    fn create_instance(config: &str, session: Session, how: Start) -> Result<Self, Error> {
        let mut plugin = Self::configure(config)?;
        plugin.session_start(&session, &how)?;
        Ok(plugin)
    }
}

impl<T: Instance> Plugin for T {
    fn configure(_: &str) -> Result<Self, Error> {
        Err(Error::unsupported("an `Instance` is created with its session, by `new`"))
    }

    fn session_end(&mut self, how: Ending) -> Result<(), Error> {
        Instance::session_end(self, how)
    }

    fn prepare_instance(config: &str) -> Result<Prepared<Self>, Error> {
        T::check(&parse(config)?)?;
        Ok(Prepared::Config(config.to_owned()))
    }

    fn create_instance(config: &str, session: Session, how: Start) -> Result<Self, Error> {
        let config = parse(config)?;
        T::check(&config)?;
        T::new(Setup { config, session, start: how })
    }
}

/// What a component holds between two calls.
#[doc(hidden)]
pub enum Prepared<P> {
    /// `configure` was not called yet.
    Nothing,
    /// The configuration of an instance that is created when the session starts.
    Config(String),
    /// The instance.
    Instance(P),
}

/// Reads a configuration section. An error names the key.
///
/// ```
/// use hermes_plugin::{config, lifecycle};
///
/// #[config]
/// #[derive(Debug)]
/// struct Config {
///     hosts: Vec<String>,
/// }
///
/// let error = lifecycle::parse::<Config>(r#"{"hosts": ["a", 5]}"#).unwrap_err();
/// assert_eq!(error.message, "`hosts[1]`: invalid type: integer `5`, expected a string");
/// ```
pub fn parse<C: DeserializeOwned>(config: &str) -> Result<C, Error> {
    let mut reader = serde_json::Deserializer::from_str(section(config));
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let (inner, position) =
            (error.inner().to_string(), format!(" at line {} column {}", error.inner().line(), error.inner().column()));
        // The user wrote YAML, so a position in this JSON would mislead.
        let why = inner.strip_suffix(&position).unwrap_or(&inner);
        let message = if path == "." { format!("the configuration: {why}") } else { format!("`{path}`: {why}") };
        Error::invalid(message).with_code("config")
    })
}

/// A missing or empty configuration section counts as an empty object.
pub(crate) fn section(config: &str) -> &str {
    if matches!(config.trim(), "" | "null") { "{}" } else { config }
}
