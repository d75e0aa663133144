//! The options that choose a session and its model.

use clap::{ArgGroup, Args, ValueEnum};
use hermes_app::AcceptedParts;
use hermes_protocol::Mode;

/// The session and the model to use.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("earlier").args(["resume", "continue"]))]
pub(crate) struct SessionArguments {
    /// Resume a session by its id, the beginning of its id, or its title; without one, choose it from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// Resume the newest session of this folder
    #[arg(short, long = "continue", id = "continue")]
    pub(crate) continue_newest: bool,

    /// Resume in a copy, and leave the original session unchanged
    #[arg(long, requires = "earlier")]
    pub(crate) branch: bool,

    /// Use these parts of a session that was imported from a file [default: ask on a terminal, else `none`]
    #[arg(long, value_name = "PARTS", requires = "resume")]
    pub(crate) imported: Option<Parts>,

    /// Begin in this mode: ask, accept-edits, plan (only read) or auto (ask only about what the sandbox does not cover)
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,

    #[command(flatten)]
    pub(crate) model: ModelArguments,
}

/// The model to use.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(crate) struct ModelArguments {
    /// Use this provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Use this model
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Use the OpenAI-compatible API at this base URL
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Use this context engine
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
}

/// What to use of an imported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Parts {
    /// The folder and the system prompt of the file
    All,
    /// Only the folder
    Folder,
    /// Only the system prompt
    Prompt,
    /// Neither: continue in the current folder, with a new system prompt
    None,
}

impl Parts {
    /// As the application takes it.
    pub(crate) fn accepted(self) -> AcceptedParts {
        AcceptedParts {
            folder: matches!(self, Self::All | Self::Folder),
            prompt: matches!(self, Self::All | Self::Prompt),
        }
    }
}
