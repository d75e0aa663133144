//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};
use hermes_config::most_similar;
use hermes_console::children::ChildCommand;

use crate::failure::{Failure, Kind};
use crate::import::ImportCommand;
use crate::mcp::McpCommand;
use crate::memory::MemoryCommand;
use crate::plugins::command::PluginsCommand;
use crate::session_arguments::{ModelArguments, SessionArguments};
use crate::sessions::command::SessionsCommand;
use crate::settings::ConfigCommand;
use crate::skills::SkillsCommand;
use crate::spending::UsageArguments;

/// Run a language-model agent whose tools, memory, skills and context engine are WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "hermes", version, disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,

    /// Print the answer to TEXT and exit; piped input is appended to TEXT, or replaces it if TEXT is missing
    #[arg(short = 'z', long = "oneshot", value_name = "TEXT", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) oneshot: Option<String>,

    /// Send an image (PNG, JPEG, WebP or GIF) with the message of `-z`; repeat for more images
    #[arg(long, value_name = "FILE", requires = "oneshot")]
    pub(crate) image: Vec<PathBuf>,

    /// Print one JSON object with the answer of `-z`, its tokens and the session
    #[arg(long, requires = "oneshot", conflicts_with = "stream_json")]
    pub(crate) json: bool,

    /// Print the events of the session during `-z`, a JSON object per line
    #[arg(long, requires = "oneshot")]
    pub(crate) stream_json: bool,

    /// Log more on standard error; repeat for more detail
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const AFTER: &str =
    "Without a command, Hermes starts a chat; `hermes \"MESSAGE\"` begins it with a message of several words. `hermes \
                     config schema` describes all settings.

Exit codes: 0 success, 1 not found or another failure, 2 usage, 3 configuration, 4 model, 5 plugin, 6 store, \
                     7 session in use, 8 no answer, 9 answer not complete, 129 hang-up, 130 interrupted, 143 terminated";

/// A command other than a chat.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Chat with the model
    Chat {
        /// Begin with this message
        #[arg(value_name = "MESSAGE", conflicts_with = "query")]
        message: Vec<String>,

        /// Send TEXT, show the whole turn with its tool calls, and exit (`-z` prints only the answer)
        #[arg(short, long, value_name = "TEXT")]
        query: Option<String>,

        #[command(flatten)]
        session: SessionArguments,
    },
    /// List, show, search, export and change stored sessions
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Show the system prompt by layer
    Prompt(PromptArguments),
    /// Show how much of each request came from the provider's prompt cache
    Cache {
        /// The session's id, the beginning of its id, or its title [default: the newest session of this folder]
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show tokens and cost by day, session, model and plugin
    Usage(UsageArguments),
    /// Compare context engines on recorded conversations, without a model
    #[command(disable_help_flag = true)]
    Lab {
        /// A command of the laboratory and its arguments; `hermes lab --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Show what fills the context window, and every compaction so far
    Context {
        /// The session's id, the beginning of its id, or its title [default: the newest session of this folder]
        id: Option<String>,
        /// Show what the summaries say that stand for earlier messages, or only the one with this number
        #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0", conflicts_with = "json")]
        summary: Option<usize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install, configure and inspect plugins
    ///
    /// Without a command, a terminal shows a menu to select the context engine, the memory provider and the enabled plugins.
    Plugins {
        #[command(subcommand)]
        command: Option<PluginsCommand>,
    },
    /// Find, install, update and remove skills
    Skills {
        #[command(subcommand)]
        command: SkillsCommand,
    },
    /// Add, list, test and remove servers of the Model Context Protocol (MCP)
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
    /// Show, search, change and move what the agent remembers
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Move in: take over sessions, memory, skills and settings from another program
    Import {
        #[command(subcommand)]
        command: ImportCommand,
    },
    /// Log in to a provider that gives tokens instead of a key
    Login(crate::login::LoginArguments),
    /// Log out: revoke the tokens of a login and remove it
    Logout(crate::login::LogoutArguments),
    /// Show and change the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    #[command(flatten)]
    Child(ChildCommand),
    /// Choose a provider and a model, store the key, and send a test request
    Setup(crate::setup::SetupArguments),
    /// Show, search and switch the model of new sessions
    ///
    /// Without a command, a terminal lets you choose one.
    Model {
        #[command(subcommand)]
        command: Option<crate::model::ModelCommand>,
    },
    /// Check the installation and suggest fixes; send one small request to the model
    Doctor {
        #[command(flatten)]
        model: ModelArguments,
        /// Send no request to the model
        #[arg(long)]
        no_request: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The message with which a chat begins, and whatever follows it; or a word that is no command
    #[command(external_subcommand)]
    Message(Vec<String>),
}

/// The prompt to show, and the form to show it in.
#[derive(Debug, Clone, Args)]
pub(crate) struct PromptArguments {
    /// Show the prompt of this session [default: the prompt of a new session]
    pub(crate) id: Option<String>,
    /// Show what changed since the prompt of this session was built
    #[arg(long, value_name = "ID", conflicts_with_all = ["id", "rebuild"])]
    pub(crate) diff: Option<String>,
    /// Rebuild the prompt of this session from the current files and plugins
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    pub(crate) rebuild: Option<String>,
    /// Print JSON, including the prompt text
    #[arg(long, conflicts_with_all = ["diff", "rebuild"])]
    pub(crate) json: bool,
    /// Print the prompt text instead of the table of layers
    #[arg(long, conflicts_with_all = ["json", "diff", "rebuild"])]
    pub(crate) text: bool,
}

impl SessionArguments {
    /// Merges the options before the command with those after it, which take precedence.
    pub(crate) fn or(self, before: Self) -> Self {
        let earlier = self.resume.is_some() || self.continue_newest;
        let (resume, continue_newest) = match earlier {
            true => (self.resume, self.continue_newest),
            false => (before.resume, before.continue_newest),
        };
        Self {
            resume,
            continue_newest,
            branch: self.branch || before.branch,
            imported: self.imported.or(before.imported),
            mode: self.mode.or(before.mode),
            model: self.model.or(before.model),
        }
    }
}

impl ModelArguments {
    /// Merges two sets of options like [`SessionArguments::or`].
    pub(crate) fn or(self, before: Self) -> Self {
        Self {
            provider: self.provider.or(before.provider),
            model: self.model.or(before.model),
            base_url: self.base_url.or(before.base_url),
            engine: self.engine.or(before.engine),
        }
    }

    /// The names of the given options.
    fn given(&self) -> Vec<&'static str> {
        let Self { provider, model, base_url, engine } = self;
        let options = [("--provider", provider), ("--model", model), ("--base-url", base_url), ("--engine", engine)];
        options.into_iter().filter(|(_, value)| value.is_some()).map(|(option, _)| option).collect()
    }
}

impl Arguments {
    /// Refuses options before a command that ignores them.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        if let Command::Message(words) = command {
            message(words)?;
        }
        let name = command.name();
        let refused = |option: &str, remedy: String| {
            let why = format!("`hermes {name}` does not use {option}");
            Err(Failure::new(Kind::Usage, "the command line is invalid", why, remedy))
        };
        if let Some(text) = &self.oneshot {
            // Without a text, its value is `-`.
            let text = if text == "-" { "" } else { " and its text" };
            return refused("-z", format!("remove `-z`{text}; to send a message, leave the command out"));
        }
        let SessionArguments { resume, continue_newest, branch, imported, mode, model } = &self.session;
        if !matches!(command, Command::Chat { .. } | Command::Message(_)) {
            let sessions = [
                ("--resume", resume.is_some()),
                ("--continue", *continue_newest),
                ("--branch", *branch),
                ("--imported", imported.is_some()),
                ("--mode", mode.is_some()),
            ];
            let takes_model = matches!(command, Command::Doctor { .. } | Command::Prompt(_));
            let models = if takes_model { Vec::new() } else { model.given() };
            let given = sessions.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option);
            let unused: Vec<&str> = given.chain(models).collect();
            if !unused.is_empty() {
                let unused = unused.join(" and ");
                return refused(&unused, format!("remove {unused}"));
            }
        }
        Ok(())
    }
}

/// Refuses what is not one message of several words: a single word is a misspelt command more often than a message.
fn message(words: &[String]) -> Result<(), Failure> {
    let (first, rest) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
    let refused = |why: String, fix: String| Err(Failure::new(Kind::Usage, "the command line is invalid", why, fix));
    let is_message = first.split_whitespace().nth(1).is_some();
    match rest.first() {
        None if is_message => Ok(()),
        Some(next) if is_message => {
            refused(format!("`{next}` comes after the message"), "put the options in front of the message".to_owned())
        }
        _ => {
            let command = Arguments::command();
            let known = command.get_subcommands().filter(|known| !known.is_hide_set());
            let known = known.flat_map(|known| known.get_all_aliases().chain([known.get_name()]).map(str::to_owned));
            let near = most_similar(first, known.collect::<Vec<_>>().into_iter());
            let near = near.map_or_else(
                || "`hermes --help` lists the commands".to_owned(),
                |near| format!("did you mean `{near}`? see `hermes --help`"),
            );
            refused(
                format!("there is no command `{first}`"),
                format!("{near}; to send it as a message, run `hermes chat {first}`"),
            )
        }
    }
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Chat { .. } | Self::Message(_) => "chat",
            Self::Sessions { .. } => "sessions",
            Self::Prompt(_) => "prompt",
            Self::Cache { .. } => "cache",
            Self::Usage(_) => "usage",
            Self::Lab { .. } => "lab",
            Self::Context { .. } => "context",
            Self::Plugins { .. } => "plugins",
            Self::Mcp { .. } => "mcp",
            Self::Skills { .. } => "skills",
            Self::Memory { .. } => "memory",
            Self::Import { .. } => "import",
            Self::Login(_) => "login",
            Self::Logout(_) => "logout",
            Self::Config { .. } => "config",
            Self::Child(child) => child.name(),
            Self::Setup(_) => "setup",
            Self::Model { .. } => "model",
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

    /// Every page of `--help`, also those of subcommands that are not listed.
    fn pages(command: &mut clap::Command, name: &str, pages: &mut String) {
        let help = command.clone().bin_name(name).term_width(120).render_long_help();
        pages.push_str(&format!("$ {name} --help\n{help}\n"));
        for subcommand in command.get_subcommands_mut() {
            let name = format!("{name} {}", subcommand.get_name());
            self::pages(subcommand, &name, pages);
        }
    }

    #[test]
    fn help_pages() {
        let mut command = Arguments::command();
        command.build();
        let mut text = String::new();
        pages(&mut command, "hermes", &mut text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_one_shot_accepts_session_options_in_any_order() {
        for line in ["-z hi --continue", "--continue -z hi", "-c -z hi", "--oneshot hi -c"] {
            let arguments = parse(line).unwrap();
            assert_eq!(arguments.oneshot.as_deref(), Some("hi"), "{line}");
            assert!(arguments.session.continue_newest, "{line}");
        }
    }

    #[test]
    fn a_one_shot_without_text_reads_standard_input() {
        for line in ["-z", "-z -", "-z --continue", "--continue -z"] {
            assert_eq!(parse(line).unwrap().oneshot.as_deref(), Some("-"), "{line}");
        }
    }

    #[test]
    fn options_after_the_command_win() {
        let arguments = parse("--model a --provider p chat -q hi --model b --resume x -vv").unwrap();
        assert_eq!(arguments.verbose, 2);
        let Some(Command::Chat { query, session, .. }) = arguments.command else { panic!("no chat") };
        let session = session.or(arguments.session);
        assert_eq!((query.as_deref(), session.resume.as_deref()), (Some("hi"), Some("x")));
        assert_eq!((session.model.model.as_deref(), session.model.provider.as_deref()), (Some("b"), Some("p")));
    }

    #[test]
    fn a_message_of_several_words_is_no_misspelt_command() {
        let check = |words: &[&str]| {
            let arguments = Arguments::try_parse_from(std::iter::once(&"hermes").chain(words)).unwrap();
            arguments.check().map_err(|failure| format!("{}; {}", failure.why, failure.fix))
        };
        check(&["fix the bug"]).unwrap();
        check(&["-c", "--model", "m", "fix the bug"]).unwrap();
        for (words, says) in [
            (&["sesions", "list", "--json"][..], "no command `sesions`; did you mean `sessions`?"),
            (&["hello"], "no command `hello`; `hermes --help` lists the commands; to send it as a message"),
            (&["hello", "there"], "no command `hello`"),
            (&["  "], "no command `  `"),
            (&["fix the bug", "--model", "m"], "`--model` comes after the message; put the options in front"),
            (&["-z", "hi", "fix the bug"], "does not use -z"),
        ] {
            let refused = check(words).unwrap_err();
            assert!(refused.contains(says), "{words:?}: {refused}");
        }
    }

    #[test]
    fn conflicting_options_are_refused() {
        for line in [
            "--resume a --continue",
            "--branch",
            "--no-such-option",
            "sessions",
            "chat a -q b",
            "-q hi",
            "--json",
            "-z a --json --stream-json",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        for line in ["-z hi chat", "--continue sessions list", "--model m plugins list", "--resume a doctor"] {
            assert_eq!(parse(line).unwrap().check().unwrap_err().kind, Kind::Usage, "{line}");
        }
        for (line, fix) in [("-z hi plugins list", "remove `-z` and its text"), ("-z -c chat", "remove `-z`;")] {
            let refused = parse(line).unwrap().check().unwrap_err();
            assert!(refused.fix.starts_with(fix), "{line}: {}", refused.fix);
        }
        for line in
            ["--model m doctor", "--model m chat", "chat fix the bug -m m", "-v sessions list", "--resume a --branch"]
        {
            parse(line).unwrap().check().unwrap();
        }
    }
}
