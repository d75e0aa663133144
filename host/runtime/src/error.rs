//! What can go wrong between the host and a plugin.

use std::path::PathBuf;
use std::time::Duration;

pub use hermes_capabilities::{Fault, FaultKind};

use crate::limits::Limit;

/// Why a component cannot be used. The plugin's name is added by whoever loads it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no component.
    #[error("it is no WebAssembly component: {why}")]
    NotAComponent {
        /// What was found instead.
        why: String,
    },
    /// The component was built for a contract that this host does not speak.
    #[error(
        "it was built for hermes:plugin {found}, this host speaks {offered}: {}",
        if newer(found, offered) { "update Hermes, or install an older release of the plugin" } else { "update the plugin" }
    )]
    Version {
        /// The version it was built for.
        found: String,
        /// The host's version.
        offered: String,
    },
    /// Neither stamp nor names tell which contract it was built for.
    #[error("it neither imports nor exports anything of hermes:plugin: it is no plugin")]
    NoContract,
    /// The component wants what plugins do not get.
    #[error(
        "it imports `{import}`, which plugins do not get: there are no WASI files and no sockets, only hermes:plugin and \
         what a language's runtime links (wasi:io, wasi:cli, wasi:clocks, wasi:random)"
    )]
    Import {
        /// The import's name.
        import: String,
    },
    /// It exports none of the five kinds.
    #[error("it exports none of context-engine, memory-provider, tools, skills, hooks")]
    NoKind,
    /// An export is there under its name but of another shape, or `lifecycle` is missing.
    #[error("its exports do not fit hermes:plugin {offered}: {why}")]
    Shape {
        /// The host's version.
        offered: String,
        /// The export and what is wrong with it.
        why: String,
    },
    /// The compiler failed, or was ended.
    #[error("it could not be compiled: {why}")]
    Compile {
        /// What happened.
        why: String,
    },
    /// A native library cannot be opened, or is none for this host.
    #[error("its native library cannot be used: {why}")]
    Native {
        /// What is wrong and what to do.
        why: String,
    },
    /// Whoever waited for the compiler stopped it.
    #[error("its compilation was stopped")]
    Cancelled,
    /// The compiled code cannot be stored.
    #[error("its compiled code cannot be kept in {path}: {source}")]
    Cache {
        /// Folder or file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

fn newer(found: &str, offered: &str) -> bool {
    let parts = |text: &str| text.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    parts(found) > parts(offered)
}

/// A call that brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("plugin `{plugin}` {version}, `{call}`: {cause}{}", remedy(plugin, cause))]
pub struct CallError {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// The function of the contract.
    pub call: &'static str,
    /// What happened.
    pub cause: Cause,
}

/// Why a call brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Cause {
    /// The plugin answered with an error.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// It crashed.
    #[error("it crashed: {why}; the next call gets a fresh instance")]
    Trap {
        /// The panic's text where there is one, else the trap.
        why: String,
    },
    /// It could not be made ready: `configure` or `session-start` answered with an error.
    #[error("it does not start: {0}")]
    Start(Box<Fault>),
    /// It did not answer in time.
    #[error(
        "no answer within {} (limit `{}`); it was ended, the next call gets a fresh instance", seconds(*.after), .limit.name()
    )]
    Deadline {
        /// The limit that says how long.
        limit: Limit,
        /// How long that is.
        after: Duration,
    },
    /// It ran into a limit other than a deadline.
    #[error(
        "it wanted more than its limit `{}` of {} ({}); it was ended, the next call gets a fresh instance",
        .limit.name(), .limit.show(*.value), .limit.definition().meaning
    )]
    Limit {
        /// The limit.
        limit: Limit,
        /// Its value for the plugin.
        value: u64,
    },
    /// It was not asked, since the call hands over more than it may.
    #[error("it was not asked: the call hands over {bytes} bytes, and its limit `input` is {}", Limit::Input.show(*.most))]
    Input {
        /// The size of what the call hands over.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// It failed too often in a row and is not asked any more.
    #[error("it is suspended for this session after {failures} failures in a row, the last: {why}")]
    Suspended {
        /// How often it failed in a row.
        failures: u32,
        /// The last failure, without the plugin's name.
        why: String,
    },
    /// It may not run any more.
    #[error("it is not asked any more: its grant was taken back")]
    Revoked,
    /// Nobody waits for the answer any more.
    #[error("cancelled")]
    Cancelled,
    /// It does not export the interface that was called.
    #[error("it does not export `{0}`")]
    NotExported(&'static str),
}

impl Cause {
    /// The limit that it ran into.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Deadline { limit, .. } | Self::Limit { limit, .. } => Some(*limit),
            Self::Input { .. } => Some(Limit::Input),
            _ => None,
        }
    }

    /// Whether the plugin itself failed: it crashed, ran into a limit or does not start. An error that it answers with
    /// is an answer.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Trap { .. } | Self::Deadline { .. } | Self::Limit { .. } | Self::Start(_) => true,
            Self::Fault(_)
            | Self::Input { .. }
            | Self::Suspended { .. }
            | Self::Revoked
            | Self::Cancelled
            | Self::NotExported(_) => false,
        }
    }
}

/// What to do about it, where there is something.
fn remedy(plugin: &str, cause: &Cause) -> String {
    match cause {
        Cause::Revoked => format!("; grant the plugin `{plugin}` its rights again"),
        Cause::Suspended { .. } => format!("; the record of the plugin `{plugin}` shows its failures"),
        cause => cause.limit().map_or_else(String::new, |limit| format!("; `{}` raises it", limit.key(plugin))),
    }
}

fn seconds(duration: Duration) -> String {
    if duration.as_millis().is_multiple_of(1000) {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
