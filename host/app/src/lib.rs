//! The application below every front end: the home folder, sessions, and what is done with plugins.
//!
//! A front end (a terminal, an editor, a server) calls these functions and shows what they return. Nothing here prints,
//! asks, or reads the current folder: the workspace is a parameter, and progress goes to a [`Reporter`].

#![forbid(unsafe_code)]

mod bundled;
mod diagnosis;
mod ephemeral;
mod error;
mod home;
mod launcher;
mod reporter;
mod setup;

pub use bundled::{BUNDLED, PRECOMPILED, SCAFFOLD, runtime};
pub use error::AppError;
pub use home::Home;
pub use launcher::{Launch, Launcher, SessionChoice};
pub use reporter::{Quiet, Reporter};
pub use setup::{ModelChoice, Setup};

hermes_diagnostic::codes! {
    /// The codes of the application.
    pub mod codes {
        HOME = "app.home", Category::Configuration, "the home folder cannot be used";
        SETTING = "app.setting", Category::Configuration, "a value in `config.yaml` cannot be used";
        CLOCK = "app.clock", Category::Configuration, "`HERMES_CLOCK` is not a moment";
        PREFILL = "app.prefill", Category::Configuration, "the file of prefilled messages cannot be used";
        NO_SESSION_HERE = "app.no-session-here", Category::General, "no session of this folder can be continued";
    }
}
