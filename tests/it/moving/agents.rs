//! Homes and sessions of other agents: named for what they are, with what can be done.

use std::fs;

use hermes_tests::Home;

fn write(home: &Home, path: &str, text: &str) -> String {
    let file = home.user().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn the_home_of_another_agent_is_not_taken_for_that_of_hermes_agent() {
    let home = Home::new();
    let skill = "---\nname: tea\ndescription: Brews tea.\n---\n";
    for (folder, files, agent) in [
        (
            ".codex",
            &["sessions/2026/a.jsonl", "config.toml", "memories/MEMORY.md", "skills/tea/SKILL.md"][..],
            "Codex CLI",
        ),
        (".claude", &["settings.json", "skills/tea/SKILL.md"], "Claude Code"),
        (".gemini", &["settings.json", "skills/tea/SKILL.md"], "Gemini CLI"),
        (".qwen", &["projects/x/a.jsonl", "skills/tea/SKILL.md"], "Qwen Code"),
        (".copilot", &["session-state/a/events.jsonl", "skills/tea/SKILL.md"], "Copilot CLI"),
        (".continue", &["config.yaml", "sessions/sessions.json"], "Continue"),
    ] {
        for file in files {
            write(&home, &format!("{folder}/{file}"), if file.ends_with("SKILL.md") { skill } else { "{}" });
        }
        let path = home.user().join(folder).display().to_string();
        let refused = home.hermes(&["import", "peer", &path]).run().exits(2);
        let has_skill = files.contains(&"skills/tea/SKILL.md");
        let install = format!("hermes skills install {path}/skills/tea");
        refused.says(&[
            &format!("{path} belongs to {agent}"),
            if has_skill { install.as_str() } else { "hermes skills install" },
        ]);
    }
    let other = write(&home, "other/skills/tea/SKILL.md", skill);
    let folder = other.strip_suffix("/skills/tea/SKILL.md").unwrap();
    home.hermes(&["import", "peer", folder, "--dry-run"]).run().exits(1).says(&["contains no state.db"]);
    home.hermes(&["import", "claude"]).run().exits(2).says(&[".claude belongs to Claude Code", "skills/tea"]);
    home.hermes(&["import", "cursor"]).run().exits(2).says(&["belongs to Cursor", "hermes mcp add"]);
    let codex = home.user().join(".codex").display().to_string();
    home.hermes(&["import", &codex]).run().exits(2).says(&["belongs to Codex CLI"]);
    home.hermes(&["import", "pear"]).run().exits(2).says(&["there is no command `pear`"]);
}

#[test]
fn a_session_of_another_agent_is_named_where_it_cannot_be_imported() {
    let home = Home::new();
    let codex = "{\"timestamp\":\"2026-01-01T10:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n";
    let claude = "{\"type\":\"user\",\"uuid\":\"1\",\"parentUuid\":null,\"sessionId\":\"s\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n";
    for (name, text, what) in [
        ("rollout.jsonl", codex, "a session of Codex"),
        ("claude.jsonl", claude, "a session of Claude Code"),
        ("events.jsonl", "{\"type\":\"session.start\",\"data\":{},\"id\":\"1\"}\n", "a session of Copilot CLI"),
        ("chat.jsonl", "{\"role\":\"user\",\"content\":\"a\"}\n", "messages of the chat completions API"),
    ] {
        let path = write(&home, name, text);
        let refused = home.hermes(&["sessions", "import", &path]).run().exits(1);
        refused.says(&[what, "hermes lab replay"]);
    }
    let folder = home.user().join("sessions");
    write(&home, "sessions/2026/rollout.jsonl", codex);
    let refused = home.hermes(&["lab", "replay", folder.to_str().unwrap()]).run().exits(1);
    refused.says(&["is a folder", "2026/rollout.jsonl"]);
}

#[test]
fn a_hook_in_the_words_of_another_agent_gives_one_message() {
    let home = Home::new();
    home.config("hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: check.sh}]\n");
    let refused = home.hermes(&["-z", "hello"]).run().exits(3).says(&["write `before-tool`"]);
    assert!(!refused.stderr.contains("warning"), "{refused}");
}
