//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand};

use crate::failure::{Failure, Kind};
use crate::lab::LabCommand;
use crate::plugins::grant::GrantArguments;
use crate::plugins::install::InstallArguments;
use crate::plugins::new::NewArguments;
use crate::plugins::remove::RemoveArguments;
use crate::plugins::test::TestArguments;
use crate::plugins::update::UpdateArguments;
use crate::sessions::changes::{Consent, PruneArguments};
use crate::sessions::listing::ListArguments;
use crate::sessions::search::SearchArguments;
use crate::sessions::transfer::ExportArguments;

/// A host for language-model agents whose tools, memories, skills and context engines are WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "hermes", version, disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,

    /// Answer TEXT on standard output and end; piped input is appended, and without TEXT it is the message
    #[arg(short = 'z', long = "oneshot", value_name = "TEXT", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) oneshot: Option<String>,

    /// Send a picture (PNG, JPEG, WebP or GIF) with the message of `-z`; may be given several times
    #[arg(long, value_name = "FILE", requires = "oneshot")]
    pub(crate) image: Vec<PathBuf>,

    /// Say more on standard error; twice for still more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const AFTER: &str =
    "Without a command, a chat begins. Exit codes: docs/exit-codes.md; settings: docs/configuration.md.";

/// Which conversation, and who answers.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("earlier").args(["resume", "continue"]))]
pub(crate) struct SessionArguments {
    /// Go on with a session; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Go on with the newest conversation of this folder
    #[arg(short, long = "continue", id = "continue")]
    pub(crate) continue_newest: bool,

    /// Go on in a copy and leave the session as it is
    #[arg(long, requires = "earlier")]
    pub(crate) branch: bool,

    #[command(flatten)]
    pub(crate) model: ModelArguments,
}

/// Who answers.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub(crate) struct ModelArguments {
    /// The model's provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The model
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Where an OpenAI-compatible API begins
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// The context engine
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
}

/// What to do instead of a chat.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with the model
    Chat {
        /// Ask TEXT, show the turn, and end
        #[arg(short, long, value_name = "TEXT")]
        query: Option<String>,

        #[command(flatten)]
        session: SessionArguments,
    },
    /// Stored conversations
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// What the requests of a session begin with
    Prompt(PromptArguments),
    /// What was read from the provider's prompt cache, request by request
    Cache {
        /// The session's id or the beginning of it; without one, the newest of this folder
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Compare context engines on recorded conversations, without a model
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// What fills the model's window, and what became of the rest
    Context {
        /// The session's id or the beginning of it; without one, the newest of this folder
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Plugins: install, choose, look into them
    ///
    /// Without a command, on a terminal: choose the context engine, the memory provider and the plugins that are on.
    Plugins {
        #[command(subcommand)]
        command: Option<PluginsCommand>,
    },
    /// The configuration in force
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Compile a component: what other processes of this program start
    #[command(hide = true)]
    CompilePlugin {
        /// Most memory that it may take, in bytes
        #[arg(long, value_name = "BYTES", default_value_t = crate::compile::MEMORY)]
        memory: u64,
    },
    /// Look for what is wrong
    Doctor {
        #[command(flatten)]
        model: ModelArguments,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which prompt, and how it is shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct PromptArguments {
    /// A session, as it is stored; without one, what a new session would begin with
    pub(crate) id: Option<String>,
    /// What has changed since the prompt of a session was built
    #[arg(long, value_name = "ID", conflicts_with_all = ["id", "rebuild"])]
    pub(crate) diff: Option<String>,
    /// Build the prompt of a session anew
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    pub(crate) rebuild: Option<String>,
    /// As JSON, with the texts
    #[arg(long, conflicts_with_all = ["diff", "rebuild"])]
    pub(crate) json: bool,
    /// The prompt itself
    #[arg(long, conflicts_with_all = ["json", "diff", "rebuild"])]
    pub(crate) text: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Conversations, the one that spoke last first
    #[command(visible_alias = "ls")]
    List(ListArguments),
    /// One of them with every message
    Show {
        /// Its id, the beginning of it, or its title
        id: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Messages by what they say
    Search(SearchArguments),
    /// Give one a title
    Rename {
        /// Its id, the beginning of it, or its title
        id: String,
        /// The new title; an empty one removes the old
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Make a copy that goes its own way, and print its id
    Branch {
        /// Its id, the beginning of it, or its title
        id: String,
        /// The last message of the copy, by its number in `show`
        #[arg(long, value_name = "MESSAGE")]
        at: Option<u64>,
        /// The copy's title; without one it gets the next number of its parent's
        #[arg(long, value_name = "TITLE")]
        title: Option<String>,
    },
    /// Write sessions to a file that `import` reads
    Export(ExportArguments),
    /// Take in sessions of a file that `export` wrote
    Import {
        /// The file; `-` reads standard input
        file: PathBuf,
        /// Only tell what would be taken in
        #[arg(long)]
        dry_run: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions for good, with the tasks that they handed out
    Delete {
        /// Their ids, the beginnings of them, or their titles
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Also delete those that go on from them
        #[arg(long)]
        with_children: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete sessions in which nothing was said for a long time
    Prune(PruneArguments),
    /// What is stored, in numbers
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Look for damage
    Check {
        /// Leave out what takes long
        #[arg(long)]
        quick: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Repair what `check` finds; a copy is made first
    Repair {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// Build a plugin's project at every change and let running sessions take it over, until ctrl-c
    Dev(crate::plugins::dev::DevArguments),
    /// All of them, with what they are and whether they are on
    #[command(visible_alias = "ls")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Bring one in: fetched, checked, shown, and put in its place when you agree
    Install(InstallArguments),
    /// Fetch what is installed again from where it came from
    Update(UpdateArguments),
    /// Go back to the version before
    Rollback {
        /// Its name
        name: String,
    },
    /// Take one away, with what config.yaml says of it
    #[command(visible_aliases = ["rm", "uninstall"])]
    Remove(RemoveArguments),
    /// Let one run as it is on disk, with all that it asks for or with some rights
    Grant(GrantArguments),
    /// Take rights back; without any, it may not run until it is granted again
    Revoke {
        /// Its name
        name: String,
        /// Such as http or process
        #[arg(value_name = "RIGHT")]
        rights: Vec<String>,
    },
    /// What they may do for good, since you answered `always`
    Approvals {
        /// Ask again about what this plugin does
        #[arg(long, value_name = "PLUGIN")]
        forget: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Hold what is on disk against what was installed
    Verify {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin one: a small Rust project that works
    New(NewArguments),
    /// Put one through the contract of its kind, in the real runtime
    Test(TestArguments),
    /// What one is, what it may do and how it fared
    Info {
        /// Its name
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Which of them and of their tools are not there or would not run, why, and what to do
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// How all of them fared: calls, time, memory, what they used
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Turn one on: an engine and a memory provider take the place of the one before
    Enable {
        /// Its name
        name: String,
    },
    /// Turn one off
    Disable {
        /// Its name
        name: String,
    },
    /// What one said about itself
    Logs {
        /// Its name
        name: String,
        /// How many lines, the newest ones
        #[arg(long, short = 'n', default_value_t = 40)]
        lines: usize,
        /// Wait for more
        #[arg(long, short)]
        follow: bool,
        /// The lines as they stand in the file, a JSON object each
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the path of the file
    Path,
    /// Print the JSON Schema of the file, for editors
    Schema,
    /// Print all values in force, with keys redacted
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one value or section
    Get {
        /// Its dotted key, such as model.default
        key: String,
    },
}

impl SessionArguments {
    /// What stands before the command and what stands behind it, the latter first.
    pub(crate) fn or(self, before: Self) -> Self {
        let earlier = self.resume.is_some() || self.continue_newest;
        let (resume, continue_newest) = match earlier {
            true => (self.resume, self.continue_newest),
            false => (before.resume, before.continue_newest),
        };
        Self { resume, continue_newest, branch: self.branch || before.branch, model: self.model.or(before.model) }
    }
}

impl ModelArguments {
    /// As [`SessionArguments::or`].
    pub(crate) fn or(self, before: Self) -> Self {
        Self {
            provider: self.provider.or(before.provider),
            model: self.model.or(before.model),
            base_url: self.base_url.or(before.base_url),
            engine: self.engine.or(before.engine),
        }
    }
}

impl Arguments {
    /// Refuses options that mean nothing to the command behind them.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let name = command.name();
        let refused = |option: &str| {
            let why = format!("{option} means nothing to `hermes {name}`");
            Err(Failure::new(Kind::Usage, "the command line cannot be understood", why, format!("leave out {option}")))
        };
        if self.oneshot.is_some() {
            return refused("-z");
        }
        let SessionArguments { resume, continue_newest, branch, model } = &self.session;
        if !matches!(command, Command::Chat { .. }) {
            if resume.is_some() || *continue_newest || *branch {
                return refused("--resume, --continue or --branch");
            }
            if !matches!(command, Command::Doctor { .. } | Command::Prompt(_)) && *model != ModelArguments::default() {
                return refused("an option for the model or the engine");
            }
        }
        Ok(())
    }
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Chat { .. } => "chat",
            Self::Sessions { .. } => "sessions",
            Self::Prompt(_) => "prompt",
            Self::Cache { .. } => "cache",
            Self::Lab { .. } => "lab",
            Self::Context { .. } => "context",
            Self::Plugins { .. } => "plugins",
            Self::Config { .. } => "config",
            Self::CompilePlugin { .. } => "compile-plugin",
            Self::Doctor { .. } => "doctor",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("hermes").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_one_shot_goes_with_the_choice_of_a_session_in_any_order() {
        for line in ["-z hi --continue", "--continue -z hi", "-c -z hi", "--oneshot hi -c"] {
            let arguments = parse(line).unwrap();
            assert_eq!(arguments.oneshot.as_deref(), Some("hi"), "{line}");
            assert!(arguments.session.continue_newest, "{line}");
        }
    }

    #[test]
    fn a_one_shot_without_a_text_takes_what_is_piped_in() {
        for line in ["-z", "-z -", "-z --continue", "--continue -z"] {
            assert_eq!(parse(line).unwrap().oneshot.as_deref(), Some("-"), "{line}");
        }
    }

    #[test]
    fn what_stands_behind_the_command_goes_first() {
        let arguments = parse("--model a --provider p chat -q hi --model b --resume x -vv").unwrap();
        assert_eq!(arguments.verbose, 2);
        let Some(Command::Chat { query, session }) = arguments.command else { panic!("no chat") };
        let session = session.or(arguments.session);
        assert_eq!((query.as_deref(), session.resume.as_deref()), (Some("hi"), Some("x")));
        assert_eq!((session.model.model.as_deref(), session.model.provider.as_deref()), (Some("b"), Some("p")));
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        for line in ["--resume a --continue", "--branch", "--no-such-option", "sessions", "chat hello", "-q hi"] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        for line in ["-z hi chat", "--continue sessions list", "--model m plugins list", "--resume a doctor"] {
            assert_eq!(parse(line).unwrap().check().unwrap_err().kind, Kind::Usage, "{line}");
        }
        for line in ["--model m doctor", "--model m chat", "-v sessions list", "--resume a --branch"] {
            parse(line).unwrap().check().unwrap();
        }
    }
}
