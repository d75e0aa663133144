//! The built-in texts. Every session pays for each word, so each must change what a model does.

use std::path::Path;

use hermes_conversation::Model;
use jiff::civil::Date;

/// The built-in identity.
pub const IDENTITY: &str = "You are Hermes, an assistant that works with its user in conversation and gets things done \
    with tools. Be exact and direct. Tell apart what you know, what you assume and what you could not find out. Answer in the \
    language of the user, as briefly as the matter allows.";

const TOOLS: &str = "# Tools\n\
    Where a tool can find out or do what is needed, call it instead of guessing or announcing it. Calls that do not \
    depend on each other can be made together. Go on until the task is done or needs a decision that is the \
    user's. Never invent the result of a tool: report what it returned. When a call fails, say so, read why, and try \
    another way.";

const FILE_TOOLS: [&str; 4] = ["read_file", "write_file", "patch", "search_files"];

/// Guidance for individual tools, in the order of the prompt.
const GUIDANCE: [(&str, &str); 3] = [
    (
        "memory",
        "`memory` lasts beyond this conversation. Save on your own, in short statements, what will matter again: who \
         the user is, what they prefer or corrected, how their projects and machines are set up. Leave out the progress of a \
         task and what is easily looked up. What you save stands in this prompt from the next session on.",
    ),
    (
        "session_search",
        "`session_search` finds what was said in earlier conversations: look there before you ask the user to repeat it.",
    ),
    (
        "skill_manage",
        "`skill_manage` keeps procedures: save one when a task was hard and may come again, and correct a skill that \
         turned out wrong.",
    ),
];

const CLI: &str = "The user reads you in a terminal: plain text or light Markdown, no wide tables.";
const SERVE: &str = "You are reached through an API, and what shows your answers is not known: Markdown that also reads \
    well as plain text.";
const CRON: &str = "You run on a schedule, with nobody there: ask nothing, decide yourself and finish. Your last message \
    is what is delivered.";

/// Guidance for the available tools; empty if there are none.
pub(crate) fn tools(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let has = |name: &str| names.iter().any(|known| known == name);
    let mut paragraphs = vec![TOOLS.to_owned()];
    let files: Vec<String> = FILE_TOOLS.into_iter().filter(|name| has(name)).map(|name| format!("`{name}`")).collect();
    if !files.is_empty() {
        let verb = if files.len() == 1 { "works" } else { "work" };
        let files = files.join(", ");
        paragraphs.push(format!(
            "{files} {verb} in the workspace, with paths relative to it. Read a file before you change it."
        ));
    }
    paragraphs.extend(GUIDANCE.into_iter().filter(|(name, _)| has(name)).map(|(_, text)| text.to_owned()));
    paragraphs.join("\n")
}

/// How answers are displayed on the platform.
pub(crate) fn platform(name: &str) -> String {
    match name {
        "cli" => CLI.to_owned(),
        "serve" => SERVE.to_owned(),
        "cron" => CRON.to_owned(),
        "" => String::new(),
        other => format!("Platform: {other}"),
    }
}

/// The environment, without the working directory.
pub(crate) fn environment(os: &str, home: Option<&Path>, hint: Option<&str>) -> String {
    let mut lines = vec![format!("# Environment\nSystem: {os}")];
    lines.extend(home.map(|home| format!("Home: {}", shown(home))));
    lines.extend(hint.map(str::to_owned));
    lines.join("\n")
}

/// The working directory.
pub(crate) fn workspace(folder: &Path) -> String {
    format!("Workspace: {}", shown(folder))
}

/// A path on one line: a folder's name can contain line breaks, which must not look like lines of the prompt.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

/// A context file under its heading.
pub(crate) fn context_file(name: &str, text: &str) -> String {
    format!("# Project context: {name}\n\n{text}")
}

/// Precedes what an MCP server says about its use.
pub(crate) const SAYS: &str = "says about the use of its tools:\n\n";

/// What an MCP server says about its use.
pub(crate) fn server(name: &str, text: &str) -> String {
    format!("# Tools of {name}\n\nThe server `{name}` {SAYS}{text}")
}

/// The date in English, like the rest of the prompt.
pub(crate) fn date(date: Date) -> String {
    format!("Conversation started: {}", date.strftime("%A, %-d %B %Y"))
}

pub(crate) fn model(model: &Model) -> String {
    format!("Model: {} (provider: {})", model.name, model.provider)
}
