//! The entries below `hooks` in `config.yaml`, checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_diagnostic::{Diagnose, Fix, Parts};
use regex::Regex;

use crate::codes;

/// An entry as it is configured.
#[derive(Debug, Clone, Copy)]
pub struct HookEntry<'a> {
    /// The name of the moment.
    pub moment: &'a str,
    /// Its place among the entries of the moment, from 0.
    pub at: usize,
    /// The tools that it is about: a regular expression for whole names.
    pub matcher: Option<&'a str>,
    /// The program with its arguments.
    pub command: &'a str,
    /// How long the program may take.
    pub timeout: Duration,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookMoment {
    BeforeTool,
    AfterTool,
    BeforeModel,
    AfterModel,
}

impl HookMoment {
    const ALL: [Self; 4] = [Self::BeforeTool, Self::AfterTool, Self::BeforeModel, Self::AfterModel];

    /// The name that hook plugins know.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::BeforeTool => "before-tool",
            Self::AfterTool => "after-tool",
            Self::BeforeModel => "before-model",
            Self::AfterModel => "after-model",
        }
    }

    /// The moment that users of other agents mean.
    fn meant(name: &str) -> Option<Self> {
        let same = name.to_lowercase().replace('_', "-");
        let known = |moment: &Self| moment.name() == same;
        Self::ALL.into_iter().find(known).or(match same.as_str() {
            "pre-tool-call" | "pretooluse" => Some(Self::BeforeTool),
            "post-tool-call" | "posttooluse" => Some(Self::AfterTool),
            "pre-api-request" | "pre-llm-call" => Some(Self::BeforeModel),
            "post-api-request" | "post-llm-call" => Some(Self::AfterModel),
            _ => None,
        })
    }

    fn is_about_a_tool(self) -> bool {
        matches!(self, Self::BeforeTool | Self::AfterTool)
    }
}

/// The tools that a hook is about.
#[derive(Debug, Clone)]
struct Matcher {
    written: String,
    whole: Regex,
}

/// A program that runs at a moment of the agent loop.
#[derive(Debug, Clone)]
pub struct ShellHook {
    /// Its key in the configuration, such as `hooks.before-tool[0]`.
    pub(super) key: String,
    pub(super) moment: HookMoment,
    matcher: Option<Matcher>,
    /// The command as it is configured.
    pub(super) written: String,
    /// A name that is looked up in `PATH`, or an absolute path.
    program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) timeout: Duration,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {flaw}")]
pub struct HookError {
    /// The key of the entry.
    pub key: String,
    /// What is wrong with it.
    pub flaw: HookFlaw,
}

impl HookError {
    /// Whether a tool has a name that is similar to the one which no tool has.
    pub fn has_nearest(&self) -> bool {
        matches!(self.flaw, HookFlaw::MatchesNothing { nearest: Some(_), .. })
    }
}

/// What is wrong with an entry below `hooks`. `Display` continues a sentence that begins with the entry's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookFlaw {
    /// Hooks are not called at such a moment.
    #[error("is no moment at which hooks run")]
    NoMoment {
        /// The moment that is probably meant.
        meant: Option<&'static str>,
    },
    /// The command is empty.
    #[error("has no `command`")]
    NoCommand,
    /// A quotation mark is not closed, or there is a NUL character.
    #[error("has a `command` that cannot be read: a quotation mark is missing, or it has a NUL character")]
    Unreadable,
    /// The path of the program depends on the workspace.
    #[error("starts `{program}`, which is a path below the workspace of each session")]
    Relative {
        /// The program.
        program: String,
    },
    /// The matcher is no regular expression.
    #[error("has the matcher `{matcher}`, which is no regular expression: {why}")]
    Matcher {
        /// The matcher.
        matcher: String,
        /// Why.
        why: String,
    },
    /// The moment has no tool that could be matched.
    #[error("has a matcher, and `{moment}` is about no tool")]
    NoTool {
        /// The moment.
        moment: &'static str,
    },
    /// No tool has such a name.
    #[error("has the matcher `{matcher}`, and no tool has such a name")]
    MatchesNothing {
        /// The matcher, or the part of it.
        matcher: String,
        /// The most similar name.
        nearest: Option<String>,
    },
}

impl ShellHook {
    /// Checks the entries. `environment` is what the programs get.
    ///
    /// # Errors
    ///
    /// With the first entry that cannot be used.
    pub fn read_all<'a>(
        entries: impl Iterator<Item = HookEntry<'a>>,
        environment: &[(OsString, OsString)],
    ) -> Result<Vec<Self>, HookError> {
        entries.map(|entry| Self::read(entry, environment)).collect()
    }

    fn read(entry: HookEntry<'_>, environment: &[(OsString, OsString)]) -> Result<Self, HookError> {
        let known = HookMoment::ALL.into_iter().find(|moment| moment.name() == entry.moment);
        let Some(moment) = known else {
            let meant = HookMoment::meant(entry.moment).map(HookMoment::name);
            return Err(HookError { key: format!("hooks.{}", entry.moment), flaw: HookFlaw::NoMoment { meant } });
        };
        let key = format!("hooks.{}[{}]", entry.moment, entry.at);
        let wrong = |flaw| HookError { key: key.clone(), flaw };
        let matcher = match entry.matcher.map(str::trim).filter(|matcher| !matcher.is_empty() && *matcher != "*") {
            None => None,
            Some(_) if !moment.is_about_a_tool() => return Err(wrong(HookFlaw::NoTool { moment: moment.name() })),
            Some(matcher) => Some(Matcher::read(matcher).map_err(wrong)?),
        };
        let written = entry.command.trim();
        let words = shlex::split(written).filter(|_| !written.contains('\0'));
        let mut words = words.ok_or_else(|| wrong(HookFlaw::Unreadable))?.into_iter();
        let program = words.next().filter(|program| !program.is_empty()).ok_or_else(|| wrong(HookFlaw::NoCommand))?;
        let program = in_home(&program, environment);
        if program.contains('/') && !Path::new(&program).is_absolute() {
            return Err(wrong(HookFlaw::Relative { program }));
        }
        Ok(Self {
            moment,
            matcher,
            written: written.to_owned(),
            program,
            arguments: words.map(|word| in_home(&word, environment)).collect(),
            environment: environment.to_vec(),
            timeout: entry.timeout,
            key,
        })
    }

    /// Its key in the configuration.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What it does, for people.
    pub fn described(&self) -> String {
        let tools = self.matcher.as_ref().map_or_else(String::new, |matcher| format!(" of `{}`", matcher.written));
        format!("{}{tools}: `{}`, at most {}", self.moment.name(), self.written, super::seconds(self.timeout))
    }

    /// The name or the path of its program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The file of its program; `None` if there is none.
    pub fn find(&self) -> Option<PathBuf> {
        self.find_in(&self.environment)
    }

    /// The same for other variables.
    pub(super) fn find_in(&self, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
        if self.program.contains('/') {
            return Some(PathBuf::from(&self.program)).filter(|path| path.is_file());
        }
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        std::env::split_paths(&path.unwrap_or_default())
            .map(|folder| folder.join(&self.program))
            .find(|file| is_program(file))
    }

    pub(super) fn matches(&self, tool: &str) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher.whole.is_match(tool))
    }

    /// The error if its matcher, or a name in it, matches none of these tools.
    pub fn useless_matcher(&self, tools: &[String]) -> Option<HookError> {
        /// Below this a suggestion confuses more than it helps.
        const SIMILAR: f64 = 0.6;
        let matcher = self.matcher.as_ref()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let names: Vec<&str> = matcher.written.split('|').collect();
        let useless = match names.iter().all(|name| !name.is_empty() && name.chars().all(is_name)) {
            true => names.into_iter().find(|name| !tools.iter().any(|tool| tool == name)),
            false if tools.iter().any(|tool| matcher.whole.is_match(tool)) => None,
            false => Some(matcher.written.as_str()),
        }?;
        let alike = tools.iter().map(|tool| (strsim::normalized_damerau_levenshtein(useless, tool), tool));
        let nearest = alike.filter(|(alike, _)| *alike >= SIMILAR).max_by(|(one, _), (other, _)| one.total_cmp(other));
        let nearest = nearest.map(|(_, tool)| tool.clone());
        let flaw = HookFlaw::MatchesNothing { matcher: useless.to_owned(), nearest };
        Some(HookError { key: self.key.clone(), flaw })
    }
}

impl Matcher {
    fn read(written: &str) -> Result<Self, HookFlaw> {
        let whole = Regex::new(&format!("^(?:{written})$")).map_err(|error| HookFlaw::Matcher {
            matcher: written.to_owned(),
            why: error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        })?;
        Ok(Self { written: written.to_owned(), whole })
    }
}

/// The path, with the user's home in place of `~/`.
fn in_home(path: &str, environment: &[(OsString, OsString)]) -> String {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

impl Diagnose for HookError {
    fn parts(&self) -> Parts {
        let fix = match &self.flaw {
            HookFlaw::NoMoment { meant: Some(meant) } => Fix::words(format!("write `{meant}`")),
            HookFlaw::NoMoment { meant: None } => {
                let names = HookMoment::ALL.map(HookMoment::name).join("`, `");
                Fix::words(format!("write one of `{names}`"))
            }
            HookFlaw::NoCommand => Fix::words("write the program and its arguments"),
            HookFlaw::Unreadable => Fix::words("correct the command"),
            HookFlaw::Relative { .. } => {
                Fix::words("write an absolute path, one that begins with `~/`, or a name that is found in PATH")
            }
            HookFlaw::Matcher { .. } => Fix::words("write names of tools, such as `write_file|patch`"),
            HookFlaw::NoTool { .. } => Fix::words("remove the matcher"),
            HookFlaw::MatchesNothing { nearest: Some(nearest), .. } => Fix::words(format!("correct it to `{nearest}`")),
            HookFlaw::MatchesNothing { nearest: None, .. } => {
                Fix::words("correct the name").or("enable the plugin that has the tool")
            }
        };
        (codes::HOOK, "a hook cannot be used".into(), fix)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry<'a>(moment: &'a str, matcher: Option<&'a str>, command: &'a str) -> HookEntry<'a> {
        HookEntry { moment, at: 0, matcher, command, timeout: Duration::from_secs(60) }
    }

    fn read(entry: HookEntry<'_>) -> Result<ShellHook, HookError> {
        ShellHook::read(entry, &[("HOME".into(), "/home/me".into()), ("PATH".into(), "/nowhere:/bin".into())])
    }

    #[test]
    fn a_command_is_split_as_a_shell_splits_it_and_a_path_is_absolute() {
        let hook = read(entry("before-tool", None, "~/bin/check 'two words' ~/list")).unwrap();
        assert_eq!(
            (hook.program.as_str(), hook.arguments.as_slice()),
            ("/home/me/bin/check", &["two words".to_owned(), "/home/me/list".to_owned()][..])
        );
        assert_eq!(read(entry("after-model", None, "sh")).unwrap().find().as_deref(), Some(Path::new("/bin/sh")));
        for (command, flaw) in [
            ("", HookFlaw::NoCommand),
            ("check 'this", HookFlaw::Unreadable),
            ("./check", HookFlaw::Relative { program: "./check".to_owned() }),
            ("bin/check", HookFlaw::Relative { program: "bin/check".to_owned() }),
        ] {
            let error = read(entry("before-tool", None, command)).unwrap_err();
            assert_eq!((error.key.as_str(), error.flaw), ("hooks.before-tool[0]", flaw));
        }
    }

    #[test]
    fn a_matcher_is_for_whole_names_of_tools() {
        let matches = |matcher: &'static str, tool: &str| {
            read(entry("before-tool", Some(matcher), "true")).unwrap().matches(tool)
        };
        for (matcher, tool, expected) in [
            ("write_file|patch", "patch", true),
            ("write_file|patch", "patch_all", false),
            ("mcp_.*", "mcp_git_log", true),
            ("mcp_.*", "not_mcp_git", false),
            ("*", "anything", true),
            ("", "anything", true),
        ] {
            assert_eq!(matches(matcher, tool), expected, "{matcher} {tool}");
        }
        let broken = read(entry("before-tool", Some("(a"), "true")).unwrap_err();
        assert!(matches!(&broken.flaw, HookFlaw::Matcher { why, .. } if !why.is_empty()), "{broken}");
        let about_no_tool = read(entry("after-model", Some("patch"), "true")).unwrap_err();
        assert_eq!(about_no_tool.flaw, HookFlaw::NoTool { moment: "after-model" });
    }

    #[test]
    fn the_moments_of_other_agents_are_named_in_the_words_of_hermes() {
        for (moment, meant) in [
            ("pre_tool_call", Some("before-tool")),
            ("PostToolUse", Some("after-tool")),
            ("before_model", Some("before-model")),
            ("on_session_start", None),
        ] {
            let error = read(entry(moment, None, "true")).unwrap_err();
            assert_eq!((error.key, error.flaw), (format!("hooks.{moment}"), HookFlaw::NoMoment { meant }));
        }
    }

    #[test]
    fn a_name_that_no_tool_has_is_useless_also_beside_others() {
        let tools = ["write_file", "patch"].map(str::to_owned);
        for (matcher, expected) in [
            ("write_file", None),
            ("write_.*", None),
            ("write_file|ptach", Some(("ptach", Some("patch")))),
            ("nothing.*", Some(("nothing.*", None))),
        ] {
            let useless = read(entry("before-tool", Some(matcher), "true")).unwrap().useless_matcher(&tools);
            let expected = expected.map(|(matcher, nearest): (&str, Option<&str>)| HookFlaw::MatchesNothing {
                matcher: matcher.to_owned(),
                nearest: nearest.map(str::to_owned),
            });
            assert_eq!(useless.map(|error| error.flaw), expected, "{matcher}");
        }
    }
}
