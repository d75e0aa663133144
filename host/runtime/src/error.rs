//! Errors of loading a plugin and of calling it.

use std::path::PathBuf;
use std::time::Duration;

pub use hermes_capabilities::{Fault, FaultKind};

use crate::contract;
use crate::crash::Crash;
use crate::limits::Limit;

/// How the reason begins when a component has async functions.
pub(crate) const ASYNCHRONOUS: &str = "it has async functions";

/// Why a component cannot be used. The caller adds the plugin's name.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not a component.
    #[error("{}", not_a_component(why))]
    NotAComponent {
        /// What is wrong with the bytes.
        why: String,
    },
    /// The component was built for a version of the contract that this host does not serve.
    #[error("{}", other_version(package, found, served))]
    Version {
        /// The package of the contract.
        package: String,
        /// The version it was built for.
        found: String,
        /// The host's version.
        served: String,
    },
    /// The component imports an interface in two versions, and the host serves both under one name.
    #[error(
        "it imports `{interface}` in the versions {versions}, and this version of Hermes can serve only one of them: build it again \
         with one version of the contract"
    )]
    TwoVersions {
        /// The interface without its version.
        interface: String,
        /// The two versions, as a person reads them.
        versions: String,
    },
    /// Without a clock, no deadline of the plugin would hold.
    #[error(
        "the system started no thread for the clock of its deadlines: end other programs, or raise the limits of threads and memory"
    )]
    NoClock,
    /// Neither a stamp nor the names of its imports and exports say which contract it was built for.
    #[error("it neither imports nor exports an interface of the contract, so it is not a plugin")]
    NoContract,
    /// The component imports something that plugins do not get.
    #[error(
        "it imports `{import}`, which is not available to plugins: they can import the packages of the contract (hermes:…) and, of WASI 0.2, io, cli, clocks, random, \
         filesystem and sockets (the last two are empty)"
    )]
    Import {
        /// The import's name.
        import: String,
    },
    /// It exports no plugin kind.
    #[error("it exports none of context-engine, memory-provider, tools, skills, hooks, embedder")]
    NoKind,
    /// An export has the right name but another shape, or `lifecycle` is missing.
    #[error("it does not fit the contract {offered}: {why}")]
    Shape {
        /// The host's version.
        offered: String,
        /// The export and what is wrong with it.
        why: String,
    },
    /// The compiler failed, or was killed.
    #[error("it could not be compiled: {why}")]
    Compile {
        /// What happened.
        why: String,
    },
    /// A native library cannot be opened, or was not built for this host.
    #[error("its native library cannot be used: {why}")]
    Native {
        /// What is wrong and what to do.
        why: String,
    },
    /// The caller cancelled the compilation.
    #[error("its compilation was stopped")]
    Cancelled,
    /// The compiled code cannot be stored.
    #[error("its compiled code cannot be stored in {path}: {source}")]
    Cache {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Why a version of the contract does not fit, and what to do.
fn other_version(package: &str, found: &str, served: &str) -> String {
    let supports = format!("but this version of Hermes supports {served}");
    if contract::is_newer(found, served) {
        return format!(
            "it was built for {package} {found}, {supports}: update Hermes, or install an older release of the plugin"
        );
    }
    match contract::release_of(found, served) {
        Some(release) => format!(
            "it was built for {package} {found}, which was never final, {supports}: update the plugin, or build it again for {release}"
        ),
        None => format!("it was built for {package} {found}, {supports}: update the plugin"),
    }
}

/// A call that failed.
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

impl CallError {
    /// The failure in a sentence for a model that used `what`, such as a tool. Where the plugin crashed is for its author, who finds it in
    /// the log: a model can do nothing with it.
    pub fn for_model(&self, what: &str) -> String {
        match &self.cause {
            Cause::Fault(fault) => fault.message.clone(),
            Cause::Trap(_) => {
                let plugin = &self.plugin;
                format!(
                    "`{what}` of the plugin `{plugin}` crashed and gave no answer; `hermes plugins logs {plugin}` shows the user why"
                )
            }
            _ => self.to_string(),
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Cause {
    /// The plugin returned an error.
    #[error("{0}")]
    Fault(Box<Fault>),
    /// The plugin crashed.
    #[error("it crashed: {0}")]
    Trap(Box<Crash>),
    /// The plugin could not be started: `configure` or `session-start` returned an error.
    #[error("it does not start: {0}")]
    Start(Box<Fault>),
    /// The plugin did not answer in time.
    #[error("it did not answer within {} (limit `{}`)", seconds(*.after), .limit.name())]
    Deadline {
        /// The limit that sets the deadline.
        limit: Limit,
        /// The value of that limit.
        after: Duration,
    },
    /// The plugin exceeded a limit other than a deadline.
    #[error(
        "it exceeded its limit `{}` of {} ({})",
        .limit.name(), .limit.show(*.value), .limit.definition().meaning
    )]
    Limit {
        /// The limit.
        limit: Limit,
        /// Its value for the plugin.
        value: u64,
    },
    /// The call was not made, because its input exceeds the plugin's limit.
    #[error("the call was not made: it passes {bytes} bytes, and the limit `input` is {}", Limit::Input.show(*.most))]
    Input {
        /// The size of the input in bytes.
        bytes: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The plugin failed too often in a row and is not called any more.
    #[error("it failed {failures} times in a row and is disabled for this session; last failure, in {why}")]
    Suspended {
        /// The number of failures in a row.
        failures: u32,
        /// The last failure, without the plugin's name.
        why: String,
    },
    /// The user revoked the plugin's grant.
    #[error("it is no longer called: its grant was revoked")]
    Revoked,
    /// The caller no longer waits for the answer.
    #[error("cancelled")]
    Cancelled,
    /// The plugin does not export the interface that was called.
    #[error("it does not export `{0}`")]
    NotExported(&'static str),
}

impl Cause {
    /// The limit that the call exceeded.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Deadline { limit, .. } | Self::Limit { limit, .. } => Some(*limit),
            Self::Input { .. } => Some(Limit::Input),
            _ => None,
        }
    }

    /// Whether the plugin itself failed: it crashed, exceeded a limit or does not start. An error that the plugin
    /// returns is a regular answer, not a failure.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Trap(_) | Self::Deadline { .. } | Self::Limit { .. } | Self::Start(_) => true,
            Self::Fault(_)
            | Self::Input { .. }
            | Self::Suspended { .. }
            | Self::Revoked
            | Self::Cancelled
            | Self::NotExported(_) => false,
        }
    }
}

/// What the user can do about it, if anything.
fn remedy(plugin: &str, cause: &Cause) -> String {
    match cause {
        Cause::Revoked => format!("; grant the plugin `{plugin}` its permissions again"),
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

/// A component whose functions are async is one all the same.
fn not_a_component(why: &str) -> String {
    if why.starts_with(ASYNCHRONOUS) { why.to_owned() } else { format!("it is not a WebAssembly component: {why}") }
}
