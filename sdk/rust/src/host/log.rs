//! Lines for the plugin's log; the user sees a warning or an error once.
//!
//! A text that is itself a JSON object becomes the fields of its line. In native tests the lines go to stderr.

use std::fmt::Display;

pub use crate::imports::log::Level;

/// One line at a level.
pub fn write(level: Level, text: impl Display) {
    #[cfg(any(target_family = "wasm", feature = "native"))]
    crate::imports::log::write(level, &text.to_string());
    #[cfg(not(any(target_family = "wasm", feature = "native")))]
    eprintln!("{level:?}: {text}");
}

/// Of use only when looking for a mistake in the plugin.
pub fn trace(text: impl Display) {
    write(Level::Trace, text);
}

/// Of use when something went wrong.
pub fn debug(text: impl Display) {
    write(Level::Debug, text);
}

/// Worth keeping.
pub fn info(text: impl Display) {
    write(Level::Info, text);
}

/// It works, but not as the user expects.
pub fn warn(text: impl Display) {
    write(Level::Warn, text);
}

/// It does not work.
pub fn error(text: impl Display) {
    write(Level::Error, text);
}
