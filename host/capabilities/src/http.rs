//! The import `http`: requests to what was granted, with secrets that only the host knows.
//!
//! A request passes four gates: its method and address lie in the grant; the name leads to public addresses, and
//! the connection goes to those very ones; a secret enters it only for its audience; and what comes back is capped
//! in size and time and redacted. A redirect is a request of its own to all four.

mod address;
mod client;
mod error;
mod message;
mod redaction;
mod resolver;
mod secret;
mod site;

pub use address::{is_loopback, is_public};
pub use client::{Grant, Http, Rights, Traffic};
pub use error::HttpError;
pub use message::{Request, Response, Value, is_method};
pub use redaction::Redaction;
pub use resolver::{Resolver, SystemResolver};
pub use secret::Secret;
pub use site::{Site, SiteError};
