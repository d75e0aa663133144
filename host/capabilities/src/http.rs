//! The import `http`: requests to granted addresses, with secrets that only the host knows.
//!
//! A request passes four checks: the grant covers its method and address; its name resolves to public addresses, and the
//! connection uses exactly those; a secret is added only for its audience; the answer is limited in size and time, and
//! redacted. Each redirect passes all four again.

mod address;
mod body;
mod client;
mod connections;
mod error;
mod message;
mod redaction;
mod resolver;
mod secret;
mod site;
mod store;
mod transport;
mod value;

pub use address::{is_local, is_loopback, is_public};
pub use body::Body;
pub use client::{Http, Traffic};
pub use connections::{Connections, Grant, Rights};
pub use error::HttpError;
pub use message::{Request, Response, is_method};
pub use redaction::Redaction;
pub use resolver::{Resolver, SystemResolver};
pub use secret::{ReadAgain, Secret};
pub use site::{Site, SiteError};
pub use store::SecretStore;
pub use transport::{Piece, ScriptedAnswer, SentRequest, Transport};
pub use value::Value;
