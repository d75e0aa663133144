//! The host's tools for skills: one lists all skills, and one shows a skill.

use std::collections::BTreeSet;
use std::sync::Arc;

use hermes_conversation::ToolSchema;
use hermes_plugin_host::{CallError, Skill, Skills};
use hermes_prompt::Notice;
use serde::Deserialize;
use serde_json::json;

use crate::screening;

pub(crate) const LIST: &str = "skills_list";
pub(crate) const VIEW: &str = "skill_view";

/// All skills of a session.
pub(crate) struct SkillCatalog {
    plugins: Vec<Arc<dyn Skills>>,
    /// The toolsets of the session's tools.
    toolsets: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    category: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewArguments {
    name: String,
    path: Option<String>,
}

impl SkillCatalog {
    pub(crate) fn new(plugins: Vec<Arc<dyn Skills>>) -> Self {
        Self { plugins, toolsets: BTreeSet::new() }
    }

    /// Sets the toolsets that the session has, on which skills can depend.
    pub(crate) fn set_toolsets(&mut self, toolsets: impl IntoIterator<Item = String>) {
        self.toolsets = toolsets.into_iter().collect();
    }

    /// The two tools, if a skills plugin is running.
    pub(crate) fn schemas(&self) -> Vec<ToolSchema> {
        if self.plugins.is_empty() {
            return Vec::new();
        }
        let schema = |name: &str, description: &str, parameters: serde_json::Value| ToolSchema {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.to_string(),
        };
        vec![
            schema(
                LIST,
                "List the skills that are there now, with a line on each.",
                json!({"type": "object", "properties": {"category": {"type": "string", "description": "Only this category."}}}),
            ),
            schema(
                VIEW,
                "Read a skill before using it, or one of its files.",
                json!({"type": "object", "properties": {
                    "name": {"type": "string", "description": "The skill's name."},
                    "path": {"type": "string", "description": "A file of the skill, as named by the skill; without it, the skill itself."},
                }, "required": ["name"]}),
            ),
        ]
    }

    /// All skills without suspicious texts, the errors of plugins that failed to list theirs, and notices of the texts.
    pub(crate) async fn index(&self) -> (Vec<(Arc<dyn Skills>, Skill)>, Vec<CallError>, Vec<Notice>) {
        let (mut skills, mut failed, mut notices) = (Vec::new(), Vec::new(), Vec::new());
        for plugin in &self.plugins {
            match plugin.index().await {
                Ok(index) => {
                    let usable = |skill: &Skill| supports_this_platform(skill) && fits(skill, &self.toolsets);
                    for skill in index.into_iter().filter(usable) {
                        let (skill, notice) = screening::skill(plugin.name(), skill);
                        skills.extend(skill.map(|skill| (Arc::clone(plugin), skill)));
                        notices.extend(notice);
                    }
                }
                Err(error) => failed.push(error),
            }
        }
        (skills, failed, notices)
    }

    /// Runs one of the two tools. The text of an error goes to the model.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> Result<String, String> {
        match name {
            LIST => self.list(parse(arguments)?).await,
            _ => self.view(parse(arguments)?).await,
        }
    }

    async fn list(&self, arguments: ListArguments) -> Result<String, String> {
        let (skills, failed, _) = self.index().await;
        let wanted = |skill: &Skill| arguments.category.as_ref().is_none_or(|category| *category == skill.category);
        let skills: Vec<_> = skills
            .iter()
            .filter(|(_, skill)| wanted(skill))
            .map(|(_, skill)| json!({"name": skill.name, "description": skill.description, "category": skill.category, "tags": skill.tags}))
            .collect();
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let mut answer = json!({"count": skills.len(), "skills": skills});
        if !failed.is_empty() {
            answer["failed"] = json!(failed);
        }
        Ok(answer.to_string())
    }

    async fn view(&self, arguments: ViewArguments) -> Result<String, String> {
        let (skills, ..) = self.index().await;
        let Some((plugin, _)) = skills.iter().find(|(_, skill)| skill.name == arguments.name) else {
            let names: Vec<&str> = skills.iter().map(|(_, skill)| skill.name.as_str()).collect();
            let available = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("there is no skill `{}`; available skills: {available}", arguments.name));
        };
        let document = plugin.view(arguments.name, arguments.path).await.map_err(|error| error.to_string())?;
        let mut answer = document.content;
        if !document.files.is_empty() {
            answer.push_str("\n\nFiles of this skill, for `path`: ");
            answer.push_str(&document.files.join(", "));
        }
        Ok(answer)
    }
}

/// Whether the session has all toolsets that a skill requires, and none of those that the skill replaces.
fn fits(skill: &Skill, toolsets: &BTreeSet<String>) -> bool {
    skill.requires_toolsets.iter().all(|toolset| toolsets.contains(toolset))
        && !skill.fallback_for_toolsets.iter().any(|toolset| toolsets.contains(toolset))
}

fn supports_this_platform(skill: &Skill) -> bool {
    skill.platforms.is_empty() || skill.platforms.iter().any(|platform| platform == std::env::consts::OS)
}

fn parse<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("the arguments are invalid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_of_another_system_is_left_out() {
        let skill = |platforms: &[&str]| Skill {
            name: "search".to_owned(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            platforms: platforms.iter().map(|name| (*name).to_owned()).collect(),
            requires_toolsets: Vec::new(),
            fallback_for_toolsets: Vec::new(),
            extra: Vec::new(),
        };
        let [here, elsewhere] = if cfg!(target_os = "linux") { ["linux", "macos"] } else { ["macos", "linux"] };
        assert!(supports_this_platform(&skill(&[])) && supports_this_platform(&skill(&[elsewhere, here])));
        assert!(!supports_this_platform(&skill(&[elsewhere, "windows"])));
    }

    #[test]
    fn a_skill_appears_only_with_its_toolsets_and_not_beside_those_it_stands_in_for() {
        let skill = |requires: &[&str], fallback: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            Skill {
                name: "search".to_owned(),
                description: String::new(),
                category: String::new(),
                tags: Vec::new(),
                platforms: Vec::new(),
                requires_toolsets: owned(requires),
                fallback_for_toolsets: owned(fallback),
                extra: Vec::new(),
            }
        };
        let toolsets = BTreeSet::from(["file".to_owned(), "web".to_owned()]);
        for (requires, fallback, expected) in [
            (&[][..], &[][..], true),
            (&["file"], &[], true),
            (&["file", "web"], &["terminal"], true),
            (&["file", "terminal"], &[], false),
            (&[], &["web"], false),
            (&["file"], &["terminal", "web"], false),
        ] {
            assert_eq!(fits(&skill(requires, fallback), &toolsets), expected, "{requires:?} {fallback:?}");
        }
    }
}
