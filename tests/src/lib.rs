//! What the end-to-end tests stand on: a home and a workspace of their own for the real binary, a model server that
//! follows a script and keeps a prompt cache, and an oracle that knows what a provider accepts.
//!
//! Nothing here depends on a crate of the host: what the oracle checks, it checks by rules of its own.

#![forbid(unsafe_code)]

pub mod billing;
mod home;
pub mod oracle;
mod process;
mod reply;
mod request;
mod server;
#[cfg(unix)]
mod terminal;
mod warmth;
pub mod wire;

pub use billing::{Bill, BreakpointCache, ImplicitCache};
pub use home::{Home, KEY, Snapshot, renamed, staged_guest};
pub use process::{Hermes, Output, Running};
pub use reply::{Call, Reply};
pub use request::{Request, unmarked};
pub use server::{Server, dead_endpoint};
#[cfg(unix)]
pub use terminal::Terminal;
pub use wire::is_auxiliary;
