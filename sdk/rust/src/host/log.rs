//! The plugin's log. The user sees each warning and error once.
//!
//! A text that is a JSON object becomes the fields of its line. In native tests the lines go to stderr, also without a host.

use std::fmt::Display;

pub use crate::imports::log::Level;

/// Writes a line at a level.
pub fn write(level: Level, text: impl Display) {
    let text = text.to_string();
    #[cfg(not(target_family = "wasm"))]
    if !crate::testing::is_served() {
        return eprintln!("{level:?}: {text}");
    }
    crate::imports::log::write(level, &text);
}

/// For debugging the plugin itself.
pub fn trace(text: impl Display) {
    write(Level::Trace, text);
}

/// Useful when something went wrong.
pub fn debug(text: impl Display) {
    write(Level::Debug, text);
}

/// Worth keeping.
pub fn info(text: impl Display) {
    write(Level::Info, text);
}

/// Something works, but not as the user expects.
pub fn warn(text: impl Display) {
    write(Level::Warn, text);
}

/// Something does not work.
pub fn error(text: impl Display) {
    write(Level::Error, text);
}
