//! The slash commands of a chat.

use hermes_config::most_similar;
use hermes_protocol::OnConflict;
use hermes_protocol::{Effort, Mode};

/// A command as it is typed, and what it does.
pub(crate) type Named = (&'static str, &'static str);

/// The commands in groups, as `/help` shows them.
pub(crate) const GROUPS: &[(&str, &[Named])] = &[
    (
        "this conversation",
        &[
            ("/retry", "remove the last turn and send its message again; files stay"),
            (
                "/rewind [TURNS]",
                "remove your last message and everything after it, or the last TURNS turns; files stay",
            ),
            ("/copy", "copy the last reply to the clipboard"),
            ("/context", "show what fills the context window; `/context summary` what the summaries say"),
            (
                "/compress",
                "compact the conversation now; add words to say what matters, or --preview to change nothing",
            ),
            ("/usage", "show what this conversation used, by plugin and model"),
        ],
    ),
    (
        "conversations",
        &[
            ("/new", "start a new conversation"),
            ("/resume [ID]", "continue an earlier conversation: by its id or title, or one of a list"),
            ("/branch", "continue in a copy; the original conversation stays unchanged"),
            ("/title [TEXT]", "give this conversation a title; without a text, show it"),
            ("/export [FILE]", "write this conversation to a new file, as `hermes sessions export` does"),
        ],
    ),
    (
        "files",
        &[
            (
                "/undo [TURNS]",
                "restore the files that the last turn changed, or the last TURNS turns; the conversation stays",
            ),
            ("/diff [TURNS]", "show how the last turn changed files, or the last TURNS turns"),
        ],
    ),
    (
        "model and approvals",
        &[
            ("/model [NAME]", "switch to another model; without a name, choose from the lists of your providers"),
            (
                "/think [EFFORT]",
                "let the model think: none, minimal, low, medium, high, xhigh or max; show or hide its reasoning",
            ),
            ("/engine [NAME]", "switch to another context engine; without a name, show the current one"),
            ("/mode [NAME]", "what Hermes asks about: ask, accept-edits, plan or auto; also shift-tab"),
        ],
    ),
    (
        "what the model works with",
        &[
            ("/tools", "show the tools, and what you are asked about them"),
            ("/skills", "show the skills"),
            ("/plugins", "look at the plugins, and switch them"),
            ("/mcp", "show the MCP servers, their states and how many tools they have"),
            ("/memory", "show how full the notes are, and what waits"),
        ],
    ),
    (
        "tasks and the chat",
        &[
            ("/stop [TASK]", "while a turn runs: stop it, like ctrl-c; with a number, only that task of a subagent"),
            ("/tasks", "show the tasks of subagents that wait or run"),
            ("/help", "show this list"),
            ("/exit", "leave; also ctrl-d, or ctrl-c twice"),
        ],
    ),
];

/// All commands.
pub(crate) fn named() -> impl Iterator<Item = Named> + Clone {
    GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied())
}

/// A command without its arguments.
pub(crate) fn word(usage: &str) -> &str {
    usage.split(' ').next().unwrap_or(usage)
}

/// What `/think` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Think {
    /// Say how much the model should think.
    Tell,
    /// Let it think so much.
    Choose(Effort),
    /// Whether its reasoning is shown.
    Show(bool),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slash {
    Help,
    New,
    Context,
    /// Show what the summaries say: all, or the one with a number.
    Summary(Option<usize>),
    Compress {
        /// Only show the result.
        preview: bool,
        /// What the summary should keep.
        focus: Option<String>,
    },
    /// Remove the last turn and send its message again.
    Retry,
    Rewind {
        turns: usize,
    },
    Undo {
        turns: usize,
        on_conflict: OnConflict,
    },
    Diff {
        turns: usize,
    },
    /// Stop the running turn.
    Stop,
    /// Stop one task of a subagent.
    StopTask(u32),
    /// Show the tasks of subagents.
    Tasks,
    Branch,
    /// Without a name, show the model.
    Model(Option<String>),
    Think(Think),
    /// Without a name, show the engine.
    Engine(Option<String>),
    /// Without a name, show the mode.
    Mode(Option<Mode>),
    /// Show tokens and cost.
    Usage,
    /// Without a text, show the title.
    Title(Option<String>),
    /// Copy the last reply.
    Copy,
    /// Write the conversation to a file; without one, to a file with the session's id.
    Export(Option<String>),
    /// Continue another conversation; without a name, one that the user chooses.
    Resume(Option<String>),
    /// Show the tools.
    Tools,
    /// Show the skills.
    Skills,
    /// Show the plugins.
    Plugins,
    /// Show the MCP servers.
    Mcp,
    /// Show the state of the memory.
    Memory,
    Exit,
    /// A command with wrong arguments.
    Misused {
        usage: &'static str,
    },
    /// An unknown command, with the most similar known one.
    Unknown {
        name: String,
        nearest: Option<&'static str>,
    },
}

impl Slash {
    /// What is wrong with the command, if it cannot be carried out.
    pub(crate) fn mistake(&self) -> Option<String> {
        match self {
            Self::Misused { usage } => Some(format!("wrong arguments; usage: {usage}")),
            Self::Unknown { name, nearest } => {
                let hint = nearest
                    .map_or_else(|| "/help lists the commands".to_owned(), |near| format!("did you mean {near}?"));
                Some(format!("unknown command {name} ({hint}); to send it to the model, put a space in front"))
            }
            _ => None,
        }
    }

    /// Parses a command. None for a message, also if it begins with a path such as `/etc/hosts`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        // Commands are lines. A text of several lines that begins with a path, or with `/new`, is pasted.
        if text.contains('\n') {
            return None;
        }
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let word = name.strip_prefix('/')?;
        if word.is_empty()
            || !word.chars().all(|character| character.is_ascii_alphanumeric() || "-_?".contains(character))
        {
            return None;
        }
        let rest = rest.trim();
        let named = || (!rest.is_empty()).then(|| rest.to_owned());
        let alone =
            |command: Self, usage: &'static str| if rest.is_empty() { command } else { Self::Misused { usage } };
        Some(match word {
            "help" | "?" => Self::Help,
            "new" | "reset" | "clear" => Self::New,
            "context" | "status" => context(rest).unwrap_or(Self::Misused { usage: "/context [summary [N]]" }),
            "compress" | "compact" => {
                let (preview, focus) = match rest.strip_prefix("--preview") {
                    Some(focus) if focus.is_empty() || focus.starts_with(char::is_whitespace) => (true, focus.trim()),
                    _ => (false, rest),
                };
                Self::Compress { preview, focus: (!focus.is_empty()).then(|| focus.to_owned()) }
            }
            "retry" => alone(Self::Retry, "/retry"),
            "rewind" => match turns(rest) {
                Some(turns) => Self::Rewind { turns },
                None => Self::Misused { usage: "/rewind [TURNS]" },
            },
            "diff" => match turns(rest) {
                Some(turns) => Self::Diff { turns },
                None => Self::Misused { usage: "/diff [TURNS]" },
            },
            "undo" => undo(rest).unwrap_or(Self::Misused { usage: "/undo [TURNS] [--skip-changed | --force]" }),
            "stop" if rest.is_empty() => Self::Stop,
            "stop" => match rest.parse() {
                Ok(task) => Self::StopTask(task),
                Err(_) => Self::Misused { usage: "/stop [TASK]" },
            },
            "tasks" => alone(Self::Tasks, "/tasks"),
            "branch" | "fork" => alone(Self::Branch, "/branch"),
            "title" | "rename" => Self::Title(named()),
            "copy" => alone(Self::Copy, "/copy"),
            "export" | "save" => Self::Export(named().map(|file| unquoted(&file).to_owned())),
            "resume" => Self::Resume(named()),
            "tools" => alone(Self::Tools, "/tools"),
            "skills" => alone(Self::Skills, "/skills"),
            "mcp" => alone(Self::Mcp, "/mcp"),
            "plugins" => alone(Self::Plugins, "/plugins"),
            "memory" => alone(Self::Memory, "/memory"),
            "model" => Self::Model(named()),
            "think" | "reasoning" => match (rest, Effort::parse(rest)) {
                ("", _) => Self::Think(Think::Tell),
                ("show", _) => Self::Think(Think::Show(true)),
                ("hide", _) => Self::Think(Think::Show(false)),
                (_, Some(effort)) => Self::Think(Think::Choose(effort)),
                (_, None) => Self::Misused { usage: "/think [none|minimal|low|medium|high|xhigh|max|show|hide]" },
            },
            "engine" => Self::Engine(named()),
            "mode" | "approvals" | "permissions" => match (rest, rest.parse()) {
                ("", _) => Self::Mode(None),
                (_, Ok(mode)) => Self::Mode(Some(mode)),
                (_, Err(_)) => Self::Misused { usage: "/mode [ask|accept-edits|plan|auto]" },
            },
            "usage" | "cost" => alone(Self::Usage, "/usage"),
            "exit" | "quit" => Self::Exit,
            _ => Self::Unknown { name: name.to_owned(), nearest: nearest(name) },
        })
    }
}

/// A name without the quotation marks around it, as a shell takes them away.
fn unquoted(name: &str) -> &str {
    let inside = |mark: char| name.strip_prefix(mark)?.strip_suffix(mark).filter(|inside| !inside.contains(mark));
    inside('"').or_else(|| inside('\'')).filter(|inside| !inside.is_empty()).unwrap_or(name)
}

/// A number of turns; one if none is given.
fn turns(rest: &str) -> Option<usize> {
    match rest {
        "" => Some(1),
        turns => turns.parse().ok().filter(|turns| *turns > 0),
    }
}

fn context(rest: &str) -> Option<Slash> {
    let mut words = rest.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (None, ..) => Some(Slash::Context),
        (Some("summary" | "summaries"), None, _) => Some(Slash::Summary(None)),
        (Some("summary"), Some(number), None) => {
            number.parse().ok().filter(|number| *number > 0).map(|number| Slash::Summary(Some(number)))
        }
        _ => None,
    }
}

fn undo(rest: &str) -> Option<Slash> {
    let (mut count, mut on_conflict) = ("", OnConflict::Refuse);
    for word in rest.split_whitespace() {
        match word {
            "--skip-changed" if on_conflict == OnConflict::Refuse => on_conflict = OnConflict::Skip,
            "--force" if on_conflict == OnConflict::Refuse => on_conflict = OnConflict::Overwrite,
            number if count.is_empty() => count = number,
            _ => return None,
        }
    }
    turns(count).map(|turns| Slash::Undo { turns, on_conflict })
}

fn nearest(name: &str) -> Option<&'static str> {
    let mut names = named().map(|(usage, _)| word(usage));
    let near = most_similar(name, names.clone().map(str::to_owned))?;
    names.find(|known| *known == near)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command of the list that is not parsed would be answered as unknown.
    #[test]
    fn every_command_of_the_list_is_known_and_listed_once() {
        let mut words: Vec<&str> = named().map(|(usage, _)| word(usage)).collect();
        for word in &words {
            assert!(!matches!(Slash::parse(word), None | Some(Slash::Unknown { .. })), "{word}");
        }
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }

    #[test]
    fn commands_are_distinguished_from_messages() {
        let unknown = |name: &str, nearest| Some(Slash::Unknown { name: name.to_owned(), nearest });
        let compress =
            |preview, focus: Option<&str>| Some(Slash::Compress { preview, focus: focus.map(str::to_owned) });
        for (text, expected) in [
            ("/help", Some(Slash::Help)),
            ("/exit ", Some(Slash::Exit)),
            ("/compress", compress(false, None)),
            ("/compress the harbour", compress(false, Some("the harbour"))),
            ("/compress --preview", compress(true, None)),
            ("/compress --preview  the harbour", compress(true, Some("the harbour"))),
            ("/compress --previews of films", compress(false, Some("--previews of films"))),
            ("/context", Some(Slash::Context)),
            ("/context summary", Some(Slash::Summary(None))),
            ("/context summary 2", Some(Slash::Summary(Some(2)))),
            ("/context summary 0", Some(Slash::Misused { usage: "/context [summary [N]]" })),
            ("/context all", Some(Slash::Misused { usage: "/context [summary [N]]" })),
            ("/comress", unknown("/comress", Some("/compress"))),
            ("/contxt now", unknown("/contxt", Some("/context"))),
            ("/rewind", Some(Slash::Rewind { turns: 1 })),
            ("/rewind 3", Some(Slash::Rewind { turns: 3 })),
            ("/rewind 0", Some(Slash::Misused { usage: "/rewind [TURNS]" })),
            ("/rewind all", Some(Slash::Misused { usage: "/rewind [TURNS]" })),
            ("/undo", Some(Slash::Undo { turns: 1, on_conflict: OnConflict::Refuse })),
            ("/undo 2 --force", Some(Slash::Undo { turns: 2, on_conflict: OnConflict::Overwrite })),
            ("/undo --skip-changed", Some(Slash::Undo { turns: 1, on_conflict: OnConflict::Skip })),
            (
                "/undo --force --skip-changed",
                Some(Slash::Misused { usage: "/undo [TURNS] [--skip-changed | --force]" }),
            ),
            ("/undo all", Some(Slash::Misused { usage: "/undo [TURNS] [--skip-changed | --force]" })),
            ("/diff 3", Some(Slash::Diff { turns: 3 })),
            ("/diff 0", Some(Slash::Misused { usage: "/diff [TURNS]" })),
            ("/stop", Some(Slash::Stop)),
            ("/stop 3", Some(Slash::StopTask(3))),
            ("/stop now", Some(Slash::Misused { usage: "/stop [TASK]" })),
            ("/tasks", Some(Slash::Tasks)),
            ("/tasks all", Some(Slash::Misused { usage: "/tasks" })),
            ("/branch", Some(Slash::Branch)),
            ("/branch off", Some(Slash::Misused { usage: "/branch" })),
            ("/model", Some(Slash::Model(None))),
            ("/model  other/large ", Some(Slash::Model(Some("other/large".to_owned())))),
            ("/think", Some(Slash::Think(Think::Tell))),
            ("/think  xhigh ", Some(Slash::Think(Think::Choose(Effort::XHigh)))),
            ("/reasoning hide", Some(Slash::Think(Think::Show(false)))),
            (
                "/think hard",
                Some(Slash::Misused { usage: "/think [none|minimal|low|medium|high|xhigh|max|show|hide]" }),
            ),
            ("/engine lossless", Some(Slash::Engine(Some("lossless".to_owned())))),
            ("/mode", Some(Slash::Mode(None))),
            ("/mode accept-edits", Some(Slash::Mode(Some(Mode::AcceptEdits)))),
            ("/mode yolo", Some(Slash::Misused { usage: "/mode [ask|accept-edits|plan|auto]" })),
            ("/usage", Some(Slash::Usage)),
            ("/usage today", Some(Slash::Misused { usage: "/usage" })),
            ("/retry", Some(Slash::Retry)),
            ("/retry 2", Some(Slash::Misused { usage: "/retry" })),
            ("/title", Some(Slash::Title(None))),
            ("/title  The harbour ", Some(Slash::Title(Some("The harbour".to_owned())))),
            ("/copy", Some(Slash::Copy)),
            ("/copy all", Some(Slash::Misused { usage: "/copy" })),
            ("/export", Some(Slash::Export(None))),
            ("/export my file.jsonl", Some(Slash::Export(Some("my file.jsonl".to_owned())))),
            ("/export \"a b.jsonl\"", Some(Slash::Export(Some("a b.jsonl".to_owned())))),
            ("/export 'a b.jsonl'", Some(Slash::Export(Some("a b.jsonl".to_owned())))),
            ("/export \"a\" b", Some(Slash::Export(Some("\"a\" b".to_owned())))),
            ("/export \"", Some(Slash::Export(Some("\"".to_owned())))),
            ("/resume The harbour", Some(Slash::Resume(Some("The harbour".to_owned())))),
            ("/tools", Some(Slash::Tools)),
            ("/tool", unknown("/tool", Some("/tools"))),
            ("/skills", Some(Slash::Skills)),
            ("/mcp list", Some(Slash::Misused { usage: "/mcp" })),
            ("/plugins", Some(Slash::Plugins)),
            ("/plugins list", Some(Slash::Misused { usage: "/plugins" })),
            ("/memory", Some(Slash::Memory)),
            ("/memroy", unknown("/memroy", Some("/memory"))),
            ("/rewnd", unknown("/rewnd", Some("/rewind"))),
            ("/zzz", unknown("/zzz", None)),
            ("/dance", unknown("/dance", None)),
            ("/etc/hosts is a file", None),
            (" /help", None),
            ("/exit\n", Some(Slash::Exit)),
            ("/new\nis what I typed", None),
            ("/etc\nis a folder", None),
            ("/", None),
            ("hello", None),
        ] {
            assert_eq!(Slash::parse(text), expected, "{text:?}");
        }
    }
}
