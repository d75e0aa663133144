//! Other agents: how their homes are told from that of Hermes Agent and from one another, and what this program can take of them.

use std::path::{Path, PathBuf};

/// An agent whose home is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: &'static str,
    /// How users name it in `hermes import NAME`.
    words: &'static [&'static str],
    /// Its home below that of the user.
    folder: &'static str,
    /// What only its home has.
    own: &'static [&'static str],
    /// What other homes have, too.
    shared: &'static [&'static str],
}

const fn agent(
    name: &'static str,
    words: &'static [&'static str],
    folder: &'static str,
    own: &'static [&'static str],
    shared: &'static [&'static str],
) -> Agent {
    Agent { name, words, folder, own, shared }
}

#[rustfmt::skip]
static AGENTS: [Agent; 11] = [
    agent("Claude Code", &["claude", "claude-code"], ".claude", &[".credentials.json", "shell-snapshots", "statsig", "CLAUDE.md"], &["projects", "settings.json", "commands", "agents", "history.jsonl"]),
    agent("Codex CLI", &["codex"], ".codex", &["config.toml", "version.json"], &["sessions", "history.jsonl", "auth.json", "AGENTS.md"]),
    agent("Gemini CLI", &["gemini", "gemini-cli"], ".gemini", &["GEMINI.md", "oauth_creds.json", "google_accounts.json"], &["settings.json", "tmp", "extensions"]),
    agent("Qwen Code", &["qwen", "qwen-code"], ".qwen", &["QWEN.md"], &["settings.json", "projects", "tmp"]),
    agent("Copilot CLI", &["copilot"], ".copilot", &["session-state", "session-store.db", "mcp-config.json"], &["config.json"]),
    agent("opencode", &["opencode"], ".local/share/opencode", &["opencode.db", "opencode.json", "opencode.jsonc", "storage/session"], &["auth.json"]),
    agent("pi", &["pi"], ".pi", &["agent/sessions", "agent/settings.json"], &[]),
    agent("Continue", &["continue", "cn"], ".continue", &["sessions/sessions.json", "config.ts"], &["sessions", "index"]),
    agent("Cline", &["cline"], ".cline", &["data/globalState.json"], &["data", "sessions"]),
    agent("Cursor", &["cursor"], ".cursor", &["cli-config.json"], &["mcp.json", "rules", "chats"]),
    agent("OpenClaw", &["openclaw", "clawdbot"], ".openclaw", &["openclaw.json", "clawdbot.json"], &["agents", "workspace"]),
];

/// What a home of another agent has that this program can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usable {
    /// The name of the agent.
    pub agent: &'static str,
    /// Its home.
    pub folder: PathBuf,
    /// A skill, and how many there are.
    pub skills: Option<(PathBuf, usize)>,
}

impl Agent {
    /// The agent that users call so.
    pub fn by_word(word: &str) -> Option<&'static Self> {
        let word = word.to_lowercase();
        AGENTS.iter().find(|agent| agent.words.contains(&word.as_str()))
    }

    /// The agent whose home a folder is. Its name counts as much as a file that only this agent has.
    pub(crate) fn of_home(folder: &Path) -> Option<&'static Self> {
        const LEAST: usize = 2;
        let weight = |agent: &Agent| {
            let is_named = folder.ends_with(agent.folder);
            let count = |names: &[&str]| names.iter().filter(|name| folder.join(name).exists()).count();
            2 * (usize::from(is_named) + count(agent.own)) + count(agent.shared)
        };
        let best = AGENTS.iter().rev().max_by_key(|agent| weight(agent))?;
        (weight(best) >= LEAST).then_some(best)
    }

    /// What can be used of a home of this agent: the usual one, if none is named.
    pub fn usable(&self, folder: Option<&Path>) -> Usable {
        let usual = || std::env::home_dir().unwrap_or_default().join(self.folder);
        let folder = folder.map_or_else(usual, Path::to_owned);
        let below = folder.join("skills");
        let entries = std::fs::read_dir(&below).into_iter().flatten().flatten();
        let mut skills: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join("SKILL.md").is_file()).collect();
        skills.sort();
        let count = skills.len();
        Usable { agent: self.name, folder, skills: skills.into_iter().next().map(|skill| (skill, count)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_told_apart_by_their_names_and_by_what_they_contain() {
        for (folder, files, expected) in [
            (".claude", &["settings.json", "skills/a/SKILL.md"][..], Some("Claude Code")),
            ("copy", &["projects/x/a.jsonl", "settings.json", "skills/a/SKILL.md"], Some("Claude Code")),
            (".codex", &["skills/a/SKILL.md"], Some("Codex CLI")),
            ("copy", &["config.toml", "sessions/2026/x.jsonl", "memories/MEMORY.md"], Some("Codex CLI")),
            (".qwen", &["projects/x/chats/a.jsonl", "settings.json"], Some("Qwen Code")),
            ("copy", &["sessions/sessions.json", "config.yaml"], Some("Continue")),
            (".pi", &["agent/skills/a/SKILL.md"], Some("pi")),
            ("copy", &["opencode.db"], Some("opencode")),
            (".hermes", &["config.yaml", "state.db", "skills/a/SKILL.md", "sessions/x"], None),
            ("copy", &["skills/a/SKILL.md"], None),
        ] {
            let home = tempfile::tempdir().unwrap();
            for file in files {
                let path = home.path().join(folder).join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            let found = Agent::of_home(&home.path().join(folder));
            assert_eq!(found.map(|agent| agent.name), expected, "{folder} {files:?}");
            if let Some(agent) = found {
                let skills = agent.usable(Some(&home.path().join(folder))).skills;
                assert_eq!(skills.is_some(), files.contains(&"skills/a/SKILL.md"), "{folder}");
            }
        }
    }
}
