//! What the end-to-end tests stand on: a home and a workspace of their own for the real binary, a model server that
//! follows a script, and an oracle that knows what a provider accepts.
//!
//! Nothing here depends on a crate of the host: what the oracle checks, it checks by rules of its own.

#![forbid(unsafe_code)]

mod home;
pub mod oracle;
mod process;
mod reply;
mod server;
mod warmth;

pub use home::{Home, KEY, Snapshot};
pub use process::{Hermes, Output, Running};
pub use reply::{Call, Reply};
pub use server::{Request, Server, dead_endpoint, is_auxiliary};
