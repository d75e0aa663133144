//! Support for the end-to-end tests: a home and workspace for the real binary, a scripted model server with a prompt cache, and an
//! oracle that checks requests by the providers' rules.
//!
//! This crate depends on no crate of the host: the oracle has its own rules.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

pub mod billing;
mod home;
pub mod oracle;
mod process;
mod reply;
mod request;
mod sdk;
mod server;
#[cfg(unix)]
mod terminal;
mod warmth;
pub mod wire;

pub use billing::{Bill, BreakpointCache, ImplicitCache};
pub use home::{Home, KEY, Snapshot, renamed, staged_guest};
pub use process::{Hermes, Output, Running, binary};
pub use reply::{Call, Reply};
pub use request::{Request, unmarked};
pub use sdk::SdkTypes;
pub use server::{Server, dead_endpoint};
#[cfg(unix)]
pub use terminal::Terminal;
pub use wire::{is_auxiliary, without_fence};
