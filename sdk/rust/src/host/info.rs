//! What the host is and has.

use crate::imports::info as wit;

/// The version of Hermes.
pub fn version() -> String {
    wit::version()
}

/// Whether the host serves a feature and the plugin may use it now: an interface such as `hermes:http/http`, or a function
/// such as `hermes:history/history#parts`.
pub fn has(feature: &str) -> bool {
    wit::has(feature)
}
