//! The import `http`: requests to what was granted, with secrets that only the host knows.

mod address;
mod site;

pub use address::{is_loopback, is_public};
pub use site::{Site, SiteError};

/// Whether a text is a method that plugins may use: capitals, and neither `CONNECT`, which opens a tunnel, nor
/// `TRACE`, which hands back what was sent.
pub fn is_method(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_uppercase())
        && !["CONNECT", "TRACE"].contains(&text)
}
