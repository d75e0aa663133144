//! What a skill says about itself beside the fields of the contract: the tools that it needs or replaces, its variables,
//! programs and settings, and its folder. A plugin passes them on in `skill.extra`; `wit/README.md` lists the keys.

use std::collections::BTreeSet;
use std::path::Path;

use hermes_runtime::Skill;
use serde::Deserialize;

/// The keys of `skill.extra` that the host reads.
pub(crate) const KEYS: [&str; 6] = ["requires-tool", "fallback-for-tool", "command", "variable", "setting", "folder"];

/// A variable that a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SkillVariable {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Where the user gets its value.
    #[serde(default)]
    pub help: Option<String>,
    /// Whether the skill works without it, `true` or `false`.
    #[serde(default)]
    optional: Option<String>,
}

/// A setting of the user that a skill reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SkillSetting {
    /// Its key below `skills.config`.
    pub key: String,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// The value if the user has set none.
    #[serde(default)]
    pub default: Option<String>,
}

/// What a skill says about itself beside the fields of the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Tools without which it does not apply.
    pub requires_tools: Vec<String>,
    /// Tools that it replaces.
    pub fallback_for_tools: Vec<String>,
    /// Variables that it needs.
    pub variables: Vec<SkillVariable>,
    /// Programs that it needs.
    pub commands: Vec<String>,
    /// Settings that it reads.
    pub settings: Vec<SkillSetting>,
    /// The absolute path of its folder.
    pub folder: Option<String>,
}

/// The tools of a session, on which skills can depend.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools {
    /// Their names.
    pub names: BTreeSet<String>,
    /// Their toolsets.
    pub toolsets: BTreeSet<String>,
}

/// What a skill needs and does not find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Variables that are not set.
    pub variables: Vec<SkillVariable>,
    /// Programs that are not installed.
    pub commands: Vec<String>,
}

impl SkillVariable {
    fn is_optional(&self) -> bool {
        self.optional.as_deref().is_some_and(|text| ["true", "yes"].contains(&text.to_lowercase().as_str()))
    }
}

impl Missing {
    /// A line for each.
    pub fn lines(&self) -> Vec<String> {
        let variable = |variable: &SkillVariable| {
            let about: Vec<&str> = [&variable.prompt, &variable.help]
                .into_iter()
                .flatten()
                .map(|text| text.trim_end_matches('.'))
                .collect();
            let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(": ")) };
            format!("the variable {} is not set{about}", variable.name)
        };
        let command = |command: &String| format!("the program `{command}` is not installed");
        self.variables.iter().map(variable).chain(self.commands.iter().map(command)).collect()
    }
}

impl Declared {
    /// Reads the further fields of a skill. What cannot be read is ignored.
    pub fn of(skill: &Skill) -> Self {
        let mut declared = Self::default();
        for (key, value) in &skill.extra {
            match key.as_str() {
                "requires-tool" => declared.requires_tools.push(value.clone()),
                "fallback-for-tool" => declared.fallback_for_tools.push(value.clone()),
                "command" => declared.commands.push(value.clone()),
                "variable" => declared.variables.extend(serde_json::from_str::<SkillVariable>(value)),
                "setting" => declared.settings.extend(serde_json::from_str::<SkillSetting>(value)),
                "folder" if declared.folder.is_none() => declared.folder = Some(value.clone()),
                _ => {}
            }
        }
        declared
    }

    /// Why a skill does not apply in a session with these tools; `None` if it does. Without tools, only its platforms count.
    pub fn why_not(skill: &Skill, offered: Option<&OfferedTools>) -> Option<String> {
        let here = std::env::consts::OS;
        if !skill.platforms.is_empty() && !skill.platforms.iter().any(|platform| platform == here) {
            return Some(format!("it is for {}, and this is {here}", skill.platforms.join(", ")));
        }
        let offered = offered?;
        let declared = Self::of(skill);
        let absent =
            |names: &[String], there: &BTreeSet<String>| names.iter().find(|name| !there.contains(*name)).cloned();
        let present =
            |names: &[String], there: &BTreeSet<String>| names.iter().find(|name| there.contains(*name)).cloned();
        let toolset = |name: String| format!("toolset `{name}`");
        let tool = |name: String| format!("tool `{name}`");
        let needed = absent(&skill.requires_toolsets, &offered.toolsets).map(toolset);
        if let Some(needed) = needed.or_else(|| absent(&declared.requires_tools, &offered.names).map(tool)) {
            return Some(format!("it needs the {needed}, which the session does not have"));
        }
        let replaced = present(&skill.fallback_for_toolsets, &offered.toolsets).map(toolset);
        let replaced = replaced.or_else(|| present(&declared.fallback_for_tools, &offered.names).map(tool))?;
        Some(format!("it replaces the {replaced}, which the session has"))
    }

    /// The variables that are not set, unless the skill works without them, and the programs that are not in `PATH`.
    pub fn missing(&self, is_set: impl Fn(&str) -> bool) -> Missing {
        let variables = self.variables.iter().filter(|variable| !variable.is_optional() && !is_set(&variable.name));
        let commands = self.commands.iter().filter(|command| !is_installed(command));
        Missing { variables: variables.cloned().collect(), commands: commands.cloned().collect() }
    }
}

/// Whether a program is in `PATH`.
fn is_installed(command: &str) -> bool {
    // A path would be looked up in the current folder.
    let is_name = !command.is_empty() && !command.contains(['/', '\\']);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    is_name && std::env::split_paths(&paths).any(|folder| is_program(&folder.join(command)))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(platforms: &[&str], toolsets: [&[&str]; 2], extra: &[(&str, &str)]) -> Skill {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Skill {
            name: "search".to_owned(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            platforms: owned(platforms),
            requires_toolsets: owned(toolsets[0]),
            fallback_for_toolsets: owned(toolsets[1]),
            extra: extra.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        }
    }

    fn offered() -> OfferedTools {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        OfferedTools { names: set(&["read_file", "web_search"]), toolsets: set(&["file", "web"]) }
    }

    #[test]
    fn a_skill_of_another_system_does_not_apply() {
        let [here, elsewhere] = if cfg!(target_os = "linux") { ["linux", "macos"] } else { ["macos", "linux"] };
        let why = |platforms: &[&str]| Declared::why_not(&skill(platforms, [&[], &[]], &[]), None);
        assert_eq!((why(&[]), why(&[elsewhere, here])), (None, None));
        assert_eq!(why(&[elsewhere, "windows"]), Some(format!("it is for {elsewhere}, windows, and this is {here}")));
    }

    #[test]
    fn a_skill_applies_only_with_its_tools_and_not_beside_those_it_stands_in_for() {
        let (needs, replaces) = ("requires-tool", "fallback-for-tool");
        for (toolsets, extra, expected) in [
            ([&[][..], &[][..]], &[][..], None),
            ([&["file", "web"], &["terminal"]], &[(needs, "read_file"), (replaces, "terminal")], None),
            (
                [&["file", "terminal"], &[]],
                &[],
                Some("it needs the toolset `terminal`, which the session does not have"),
            ),
            ([&[], &[]], &[(needs, "terminal")], Some("it needs the tool `terminal`, which the session does not have")),
            ([&[], &["x", "web"]], &[], Some("it replaces the toolset `web`, which the session has")),
            ([&[], &[]], &[(replaces, "web_search")], Some("it replaces the tool `web_search`, which the session has")),
        ] {
            let why = Declared::why_not(&skill(&[], toolsets, extra), Some(&offered()));
            assert_eq!(why.as_deref(), expected, "{toolsets:?} {extra:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_optional_is_not() {
        let skill = skill(
            &[],
            [&[], &[]],
            &[
                ("variable", r#"{"name": "WIKI_KEY", "prompt": "Your key", "help": "See the site."}"#),
                ("variable", r#"{"name": "SET"}"#),
                ("variable", r#"{"name": "PERHAPS", "optional": "true"}"#),
                ("variable", "no JSON"),
                ("command", "no-such-program-of-this-machine"),
                ("command", "/bin/sh"),
            ],
        );
        let missing = Declared::of(&skill).missing(|name| name == "SET");
        assert_eq!(
            missing.lines(),
            [
                "the variable WIKI_KEY is not set (Your key: See the site)",
                "the program `no-such-program-of-this-machine` is not installed",
                "the program `/bin/sh` is not installed",
            ]
        );
    }
}
