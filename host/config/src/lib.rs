//! Configuration: the typed settings of `config.yaml` with their JSON Schema, edits of the file, `.env`, and redaction.
//!
//! This crate reads, checks and edits files. It starts nothing and prints nothing.

#![forbid(unsafe_code)]

mod auxiliary;
mod config;
mod edit;
mod environment;
mod keys;
mod reader;
mod redaction;
mod schema;
pub mod settings;
mod tree;

pub use auxiliary::{Auxiliary, Candidate, Task};
pub use config::Config;
pub use edit::Edit;
pub use environment::Environment;
pub use keys::{most_similar, nearest, similarity};
pub use redaction::{redacted, redacted_text};
pub use schema::schema;
pub use settings::Settings;

hermes_diagnostic::codes! {
    /// The codes of configuration.
    pub mod codes {
        UNREADABLE = "config.unreadable", Category::Configuration, "`config.yaml` cannot be read";
        SYNTAX = "config.syntax", Category::Configuration, "`config.yaml` is not valid YAML";
        VALUE = "config.value", Category::Configuration, "a value in `config.yaml` has the wrong type or is out of range";
        FOREIGN_HOME = "config.foreign-home", Category::Configuration, "the home folder belongs to another program";
        AUXILIARY = "config.auxiliary", Category::Configuration, "a section below `auxiliary` cannot be used";
        NOT_EDITABLE = "config.not-editable", Category::Configuration, "a change of `config.yaml` would alter something else";
        NOT_SAVED = "config.not-saved", Category::Configuration, "`config.yaml` cannot be written";
    }
}
