//! Configuration: the typed settings of `config.yaml` with their JSON Schema, edits of the file, `.env`, and redaction.
//!
//! This crate reads, checks and edits files. It starts nothing and prints nothing.

#![forbid(unsafe_code)]

mod auxiliary;
mod config;
mod edit;
mod environment;
mod fallbacks;
mod keys;
mod providers;
mod reader;
mod redaction;
mod schema;
mod servers;
pub mod settings;
mod tree;

pub use auxiliary::{Auxiliary, Candidate, Embeddings, Task};
pub use config::Config;
pub use edit::Edit;
pub use environment::Environment;
pub use fallbacks::{Fallback, Fallbacks};
pub use keys::{most_similar, nearest, similarity};
pub use redaction::{redacted, redacted_text};
pub use schema::schema;
pub use servers::{is_given_to_programs, named_folders};
pub use settings::{ApprovalMode, SandboxChoice, Settings, WhileBusy};

hermes_diagnostic::codes! {
    /// The codes of configuration.
    pub mod codes {
        UNREADABLE = "config.unreadable", Category::Configuration, "`config.yaml` cannot be read";
        SYNTAX = "config.syntax", Category::Configuration, "`config.yaml` is not valid YAML";
        VALUE = "config.value", Category::Configuration, "a value in `config.yaml` has the wrong type or is out of range";
        FOREIGN_HOME = "config.foreign-home", Category::Configuration, "the home folder belongs to another program";
        AUXILIARY = "config.auxiliary", Category::Configuration, "a section below `auxiliary` cannot be used";
        PROVIDER = "config.provider", Category::Configuration, "a row of `custom_providers` cannot be used";
        MCP_SERVER = "config.mcp-server", Category::Configuration, "a section below `mcp_servers` cannot be used";
        NOT_EDITABLE = "config.not-editable", Category::Configuration, "a change of `config.yaml` would alter something else";
        NOT_SAVED = "config.not-saved", Category::Configuration, "`config.yaml` cannot be written";
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_models::{Route, Wanted};

    use super::*;

    /// The crate has no error enum: each code is provoked where it arises.
    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let parse = |text: &str| Config::parse(text, &file, &|_| None);
        let unknown_provider = parse("auxiliary: {compression: {provider: nobody}}\n").unwrap();
        let nameless = parse("custom_providers: [{base_url: 'http://x/v1'}]\n").unwrap();
        let no_server = parse("mcp_servers: {a: {}}\n").unwrap();
        let mut edit = Edit::of(&file).unwrap();
        edit.set("model.default", &"large".into()).unwrap();
        std::fs::create_dir(&file).unwrap();
        let not_saved = edit.save().unwrap_err();
        let other = folder.path().join("other.yaml");
        std::fs::write(&other, "plugins: [a]\n").unwrap();
        let errors = [
            Config::read(&file, &Environment::default()).unwrap_err(),
            Edit::of(&file).unwrap_err(),
            parse("model: [a\n").unwrap_err(),
            parse("model: 5\n").unwrap_err(),
            parse("_config_version: 33\n").unwrap_err(),
            Auxiliary::read(&unknown_provider, &Route::offline(), &Wanted::default(), &|_| None).unwrap_err(),
            nameless.custom_providers().unwrap_err(),
            no_server.mcp_servers(&|_| None).unwrap_err(),
            Edit::of(&other).unwrap().set("plugins.entries.dice", &true.into()).unwrap_err(),
            not_saved,
        ];
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &errors), Vec::<String>::new());
    }
}
