//! Confines this process and everything that it starts.
//!
//! [`enter`] forks: the child is the first process of namespaces of its own (user, process ids, mounts, network, IPC), sees
//! the file system as a [`Plan`] describes it, and is restricted by Landlock and seccomp as far as the kernel offers them. When
//! it ends, the kernel ends everything that it started. [`probe`] finds out what this machine offers.
//!
//! The crate knows neither plugins nor git: which paths are writable, read-only or hidden is its caller's decision.

#[cfg(target_os = "linux")]
mod enter;
mod error;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod loopback;
mod offer;
mod plan;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod view;

#[cfg(target_os = "linux")]
pub use enter::{Outside, Side, enter};
pub use error::SetupError;
#[cfg(target_os = "linux")]
pub use offer::probe;
pub use offer::{Answer, Holds, Offer};
pub use plan::{Plan, Temporary};
