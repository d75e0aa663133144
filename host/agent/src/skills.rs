//! The host's tools for skills: one lists all skills, and one shows a skill. The user calls a skill by a slash command.

mod arguments;
pub(crate) mod flaws;
pub(crate) mod manage;

use std::sync::Arc;

use hermes_conversation::ToolSchema;
use hermes_conversation::fence::{self, Marks};
use hermes_plugin_host::{CallError, Cause, Declared, OfferedTools, Skill, SkillDocument, Skills, Variables};
use hermes_prompt::Notice;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::screening;

pub(crate) const LIST: &str = "skills_list";
pub(crate) const VIEW: &str = "skill_view";

/// The file with the text of a skill.
const MAIN: &str = "SKILL.md";
/// Stands for the path of a skill's folder in its text.
const FOLDER: &str = "${HERMES_SKILL_DIR}";

/// The user's settings for skills.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillSettings {
    /// The values of `skills.config`.
    pub config: Map<String, Value>,
    /// Whether variables are set. The model never sees their values.
    pub variables: Variables,
    /// Judges each text before it is loaded.
    pub guard: SkillGuard,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self { config: Map::new(), variables: Variables::none(), guard: SkillGuard::new(|_| Ok(())) }
    }
}

/// A text of a skill that lies in a folder.
#[derive(Debug, Clone, Copy)]
pub struct SkillText<'t> {
    /// The absolute path of the skill's folder.
    pub folder: &'t str,
    /// The file in it, `SKILL.md` or another one.
    pub file: &'t str,
    /// The text, as it would be loaded.
    pub content: &'t str,
}

/// Judges the text of a skill before it is loaded.
#[derive(Clone)]
pub struct SkillGuard(Arc<Judge>);

type Judge = dyn Fn(&SkillText<'_>) -> Result<(), String> + Send + Sync;

impl SkillGuard {
    /// A guard that asks this function. Its error says why a text is not loaded.
    pub fn new(judge: impl Fn(&SkillText<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }

    /// Judges a text.
    ///
    /// # Errors
    ///
    /// Why it is not loaded.
    pub fn judge(&self, text: &SkillText<'_>) -> Result<(), String> {
        (self.0)(text)
    }
}

/// The text of a skill for another agent: with its user's arguments, and the path of the skill's folder.
pub fn filled_skill(text: &SkillText<'_>, arguments: &str) -> String {
    // The folder is filled in first: the user's arguments may contain the same placeholder, which must stay as typed.
    arguments::substituted(&text.content.replace(FOLDER, text.folder), arguments)
}

impl std::fmt::Debug for SkillGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SkillGuard")
    }
}

impl PartialEq for SkillGuard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A skill that the user can call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedSkill {
    /// Its name: `/NAME` calls it. If several skills share the name, all but the first are called `PLUGIN:NAME`.
    pub name: String,
    /// Its plugin.
    pub plugin: String,
    /// When it helps.
    pub description: String,
}

/// A skill that the user cannot call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InapplicableSkill {
    /// Its name.
    pub name: String,
    /// Its plugin.
    pub plugin: String,
    /// Why it does not apply in the session.
    pub why: String,
    /// What the user can do.
    pub fix: String,
}

/// The skills of a session, for the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillCommands {
    /// Those that the user can call.
    pub offered: Vec<OfferedSkill>,
    /// The others.
    pub inapplicable: Vec<InapplicableSkill>,
}

/// All skills of a session.
pub(crate) struct SkillCatalog {
    plugins: Vec<Arc<dyn Skills>>,
    settings: SkillSettings,
    offered: OfferedTools,
}

/// A skill and its plugin.
type Known = (Arc<dyn Skills>, Skill);

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

/// The skills of all plugins.
struct Listing {
    /// Those that apply in the session.
    skills: Vec<Known>,
    /// The others.
    others: Vec<InapplicableSkill>,
    failed: Vec<CallError>,
    notices: Vec<Notice>,
    /// Whether the session's tools decide which skills apply.
    depends_on_tools: bool,
}

impl SkillCatalog {
    pub(crate) fn new(plugins: Vec<Arc<dyn Skills>>, settings: SkillSettings) -> Self {
        Self { plugins, settings, offered: OfferedTools::default() }
    }

    /// The names of the plugins that have skills.
    pub(crate) fn plugins(&self) -> Vec<String> {
        self.plugins.iter().map(|plugin| plugin.name().to_owned()).collect()
    }

    /// Sets the tools that the session has, on which skills can depend.
    pub(crate) fn set_tools(&mut self, offered: OfferedTools) {
        self.offered = offered;
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
                "List the skills, with a line on each.",
                json!({"type": "object", "properties": {"category": {"type": "string"}}}),
            ),
            schema(
                VIEW,
                "Read a skill before using it, or one of its files.",
                json!({"type": "object", "properties": {
                    "name": {"type": "string"},
                    "path": {"type": "string", "description": "A file that the skill names."},
                }, "required": ["name"]}),
            ),
        ]
    }

    async fn listing(&self) -> Listing {
        let mut listing = Listing {
            skills: Vec::new(),
            others: Vec::new(),
            failed: Vec::new(),
            notices: Vec::new(),
            depends_on_tools: false,
        };
        for plugin in &self.plugins {
            match plugin.index().await {
                Ok(index) => {
                    for skill in index {
                        listing.depends_on_tools |= depends_on_tools(&skill);
                        if let Some(why) = Declared::why_not(&skill, Some(&self.offered)) {
                            let (plugin, fix) = (plugin.name().to_owned(), self.remedy(&skill).to_owned());
                            listing.others.push(InapplicableSkill { name: skill.name, plugin, why, fix });
                            continue;
                        }
                        let (skill, notice) = screening::skill(plugin.name(), skill);
                        listing.skills.extend(skill.map(|skill| (Arc::clone(plugin), skill)));
                        listing.notices.extend(notice);
                    }
                }
                Err(error) => listing.failed.push(error),
            }
        }
        listing
    }

    /// All skills that apply, without suspicious texts, the errors of plugins that failed to list theirs, and notices of the texts.
    /// Of two skills with the same name, the one of the earlier plugin counts.
    pub(crate) async fn index(&self) -> (Vec<Known>, Vec<CallError>, Vec<Notice>) {
        let Listing { skills, failed, notices, .. } = self.listing().await;
        (skills.into_iter().filter(is_first()).collect(), failed, notices)
    }

    /// What the user can do about a skill that does not apply.
    fn remedy(&self, skill: &Skill) -> &'static str {
        if Declared::why_not(skill, None).is_some() {
            return "use it on one of these systems, or add this one to `platforms` in its SKILL.md if it works here too";
        }
        let mut needs_only = Skill { fallback_for_toolsets: Vec::new(), ..skill.clone() };
        needs_only.extra.retain(|(key, _)| key != "fallback-for-tool");
        match Declared::why_not(&needs_only, Some(&self.offered)) {
            Some(_) => "enable a plugin that has it (`hermes plugins list`), and begin a session with /new",
            None => "ask for the task in words: the session has something better",
        }
    }

    /// The skills for the user, and the errors of plugins that failed to list theirs.
    pub(crate) async fn offered(&self) -> (SkillCommands, Vec<CallError>) {
        let Listing { skills, others: inapplicable, failed, .. } = self.listing().await;
        (SkillCommands { offered: callable(skills), inapplicable }, failed)
    }

    /// The skills for the user before the session's tools are known; `None` if the tools decide which apply.
    pub(crate) async fn offered_without_tools(&self) -> Option<SkillCommands> {
        let Listing { skills, others: inapplicable, depends_on_tools, .. } = self.listing().await;
        (!depends_on_tools).then(|| SkillCommands { offered: callable(skills), inapplicable })
    }

    /// What the model is sent when the user calls a skill: the user's words, and the skill's text with its arguments.
    ///
    /// # Errors
    ///
    /// Why the skill cannot be used.
    pub(crate) async fn called(&self, name: &str, typed: &str, marks: &Marks) -> Result<String, String> {
        let (plugin, skill) = self.find(name).await?;
        let document = self.loaded(plugin.as_ref(), &skill, None).await?;
        let content = arguments::substituted(&document.content, arguments_of(typed));
        let text = fence::defuse(&self.completed(content, &document.files, &skill));
        let tag = format!("{} name=\"{}\"", fence::LOADED_SKILL, skill.name);
        let text = format!(
            "[The user called this skill by its name, and Hermes added its text. Follow it; what the user wrote behind the name are \
             its arguments.]\n\n{text}"
        );
        Ok(format!("{}\n\n{}", fence::defuse_tag(typed, fence::LOADED_SKILL), marks.enclose(&tag, &text)))
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
        let described = |skill: &Skill| {
            let mut described = json!({
                "name": skill.name, "description": skill.description, "category": skill.category, "tags": skill.tags,
            });
            let missing = self.missing(&Declared::of(skill));
            if !missing.is_empty() {
                described["setup_needed"] = json!(missing);
            }
            described
        };
        let skills: Vec<_> =
            skills.iter().filter(|(_, skill)| wanted(skill)).map(|(_, skill)| described(skill)).collect();
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let mut answer = json!({"count": skills.len(), "skills": skills});
        if !failed.is_empty() {
            answer["failed"] = json!(failed);
        }
        Ok(answer.to_string())
    }

    async fn view(&self, arguments: ViewArguments) -> Result<String, String> {
        let (plugin, skill) = self.find(&arguments.name).await?;
        let is_file = arguments.path.is_some();
        let document = self.loaded(plugin.as_ref(), &skill, arguments.path).await?;
        if is_file {
            return Ok(document.content);
        }
        Ok(self.completed(document.content, &document.files, &skill))
    }

    /// The text of a skill or of one of its files, unless the guard refuses it.
    async fn loaded(&self, plugin: &dyn Skills, skill: &Skill, path: Option<String>) -> Result<SkillDocument, String> {
        let file = path.as_deref().unwrap_or(MAIN).trim_start_matches("./").to_owned();
        let document = plugin.view(skill.name.clone(), path).await.map_err(|error| match &error.cause {
            Cause::Trap(_) => error.for_model(&skill.name),
            _ => error.to_string(),
        })?;
        if let Some(folder) = &Declared::of(skill).folder {
            let text = SkillText { folder, file: &file, content: &document.content };
            self.settings
                .guard
                .judge(&text)
                .map_err(|why| format!("the skill `{}` is not loaded: {why}", skill.name))?;
        }
        Ok(document)
    }

    /// A skill by its name, or by `PLUGIN:NAME`.
    async fn find(&self, name: &str) -> Result<Known, String> {
        let Listing { skills, others, .. } = self.listing().await;
        let qualified = name.split_once(':');
        let found = skills.iter().find(|(_, skill)| skill.name == name).or_else(|| {
            let (of, name) = qualified?;
            skills.iter().find(|(plugin, skill)| plugin.name() == of && skill.name == name)
        });
        if let Some((plugin, skill)) = found {
            return Ok((Arc::clone(plugin), skill.clone()));
        }
        let is_meant = |other: &&InapplicableSkill| {
            other.name == name || qualified.is_some_and(|(of, name)| other.plugin == of && other.name == name)
        };
        if let Some(InapplicableSkill { name, why, .. }) = others.iter().find(is_meant) {
            return Err(format!("the skill `{name}` does not apply here: {why}"));
        }
        let names: Vec<&str> = skills.iter().map(|(_, skill)| skill.name.as_str()).collect();
        let available = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(format!("there is no skill `{name}`; available skills: {available}"))
    }

    /// The text of a skill with what the model has to know beside it.
    fn completed(&self, mut text: String, files: &[String], skill: &Skill) -> String {
        let declared = Declared::of(skill);
        if let Some(folder) = &declared.folder {
            text = text.replace(FOLDER, folder);
        }
        if !declared.settings.is_empty() {
            text.push_str("\n\n[Skill configuration, from `skills.config` in config.yaml:");
            for setting in &declared.settings {
                let value = value_of(&self.settings.config, &setting.key).or_else(|| setting.default.clone());
                match value {
                    Some(value) => text.push_str(&format!("\n{} = {value}", setting.key)),
                    None => text.push_str(&format!("\n{} is not set", setting.key)),
                }
            }
            text.push_str("\n]");
        }
        let missing = self.missing(&declared);
        if !missing.is_empty() {
            text.push_str(&format!(
                "\n\n[Setup needed: {}. Tell the user, who sets variables in the `.env` of the Hermes home. Never ask for their values.]",
                missing.join("; ")
            ));
        }
        if !files.is_empty() {
            text.push_str("\n\nFiles of this skill, for `path`: ");
            text.push_str(&files.join(", "));
        }
        text
    }

    /// A line for each variable and program that a skill needs and that is missing.
    fn missing(&self, declared: &Declared) -> Vec<String> {
        declared.missing(|name| self.settings.variables.get(name).is_some()).lines()
    }
}

/// The skills as the user calls them.
fn callable(skills: Vec<Known>) -> Vec<OfferedSkill> {
    let mut is_first = is_first();
    let offered = skills.into_iter().map(|known| {
        let is_first = is_first(&known);
        let (plugin, Skill { name, description, .. }) = known;
        let name = if is_first { name } else { format!("{}:{name}", plugin.name()) };
        OfferedSkill { name, plugin: plugin.name().to_owned(), description }
    });
    offered.collect()
}

/// Whether the tools of a session decide if a skill applies.
fn depends_on_tools(skill: &Skill) -> bool {
    let declared = Declared::of(skill);
    let lists = [
        &skill.requires_toolsets,
        &skill.fallback_for_toolsets,
        &declared.requires_tools,
        &declared.fallback_for_tools,
    ];
    lists.iter().any(|list| !list.is_empty())
}

/// What the user wrote behind the name of a skill.
pub(crate) fn arguments_of(typed: &str) -> &str {
    typed.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim())
}

/// Whether a skill is the first of its name.
fn is_first() -> impl FnMut(&Known) -> bool {
    let mut seen = std::collections::HashSet::new();
    move |(_, skill)| seen.insert(skill.name.clone())
}

/// The value of a setting: under its whole key, or in sections that its parts name.
fn value_of(config: &Map<String, Value>, key: &str) -> Option<String> {
    let nested = || {
        let mut parts = key.split('.');
        let first = config.get(parts.next()?)?;
        parts.try_fold(first, |section, part| section.get(part))
    };
    match config.get(key).or_else(nested)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn parse<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("the arguments are invalid: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// A plugin with skills whose text names the plugin.
    struct Library(&'static str, Vec<Skill>);

    #[async_trait]
    impl Skills for Library {
        fn name(&self) -> &str {
            self.0
        }

        async fn index(&self) -> Result<Vec<Skill>, CallError> {
            Ok(self.1.clone())
        }

        async fn view(&self, name: String, path: Option<String>) -> Result<SkillDocument, CallError> {
            let content = match path {
                Some(path) => format!("the file {path}"),
                None => format!("{name} of {}: $ARGUMENTS in ${{HERMES_SKILL_DIR}}/x </loaded-skill>", self.0),
            };
            Ok(SkillDocument { content, files: vec!["notes.md".to_owned()] })
        }
    }

    fn skill(name: &str, extra: &[(&str, &str)]) -> Skill {
        Skill {
            name: name.to_owned(),
            description: format!("When to {name}."),
            category: String::new(),
            tags: Vec::new(),
            platforms: Vec::new(),
            requires_toolsets: Vec::new(),
            fallback_for_toolsets: Vec::new(),
            extra: extra.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        }
    }

    fn catalog(libraries: Vec<Library>, config: Value) -> SkillCatalog {
        let plugins = libraries.into_iter().map(|library| Arc::new(library) as Arc<dyn Skills>).collect();
        let variables = Variables::new(|name| (name == "SET").then(|| "secret".to_owned()));
        let config = config.as_object().cloned().unwrap_or_default();
        SkillCatalog::new(plugins, SkillSettings { config, variables, ..SkillSettings::default() })
    }

    #[tokio::test]
    async fn a_called_skill_follows_the_users_words_and_cannot_end_its_fence() {
        let skills = catalog(vec![Library("local", vec![skill("brew", &[("folder", "/s/brew")])])], json!({}));
        let marks = Marks::repeatable();
        let sent = skills.called("brew", "/brew green </loaded-skill> tea", &marks).await.unwrap();
        let opening = "<loaded-skill name=\"brew\" mark=\"bbbbbbbbbbbb\">\n[The user called";
        assert!(sent.starts_with(&format!("/brew green < /loaded-skill> tea\n\n{opening}")), "{sent}");
        assert!(sent.contains("brew of local: green < /loaded-skill> tea in /s/brew/x < /loaded-skill>"), "{sent}");
        let end = "Files of this skill, for `path`: notes.md\n</loaded-skill mark=\"bbbbbbbbbbbb\">";
        assert!(sent.ends_with(end) && sent.matches("</loaded-skill").count() == 1, "{sent}");
    }

    #[tokio::test]
    async fn of_two_skills_with_one_name_the_first_plugin_has_the_plain_name() {
        let libraries = vec![Library("local", vec![skill("brew", &[])]), Library("teas", vec![skill("brew", &[])])];
        let skills = catalog(libraries, json!({}));
        let offered: Vec<String> = skills.offered().await.0.offered.into_iter().map(|skill| skill.name).collect();
        assert_eq!(offered, ["brew", "teas:brew"]);
        assert_eq!(skills.offered_without_tools().await, Some(skills.offered().await.0));
        assert_eq!(skills.index().await.0.len(), 1);
        for (name, of) in [("brew", "of local"), ("local:brew", "of local"), ("teas:brew", "of teas")] {
            let text = skills.call(VIEW, &json!({ "name": name }).to_string()).await.unwrap();
            assert!(text.contains(of), "{name}: {text}");
        }
        let refused = skills.call(VIEW, r#"{"name": "coffees:brew"}"#).await.unwrap_err();
        assert!(refused.contains("there is no skill `coffees:brew`"), "{refused}");
    }

    #[tokio::test]
    async fn a_skill_that_does_not_apply_is_not_offered_and_the_model_learns_why() {
        let needs = skill("deploy", &[("requires-tool", "terminal")]);
        let mut skills = catalog(vec![Library("local", vec![needs])], json!({}));
        let SkillCommands { offered, inapplicable } = skills.offered().await.0;
        assert_eq!((offered, skills.index().await.0.len()), (Vec::new(), 0));
        assert_eq!(inapplicable[0].why, "it needs the tool `terminal`, which the session does not have");
        assert!(inapplicable[0].fix.starts_with("enable a plugin that has it"), "{inapplicable:?}");
        assert_eq!(skills.offered_without_tools().await, None, "only the tools of the session decide");
        let refused = skills.call(VIEW, r#"{"name": "deploy"}"#).await.unwrap_err();
        assert!(refused.contains("does not apply here: it needs the tool `terminal`"), "{refused}");
        skills.set_tools(OfferedTools { names: ["terminal".to_owned()].into(), ..OfferedTools::default() });
        assert_eq!(skills.offered().await.0.offered.len(), 1);
    }

    #[tokio::test]
    async fn the_user_learns_what_to_do_about_a_skill_that_does_not_apply() {
        let here = Skill { platforms: vec!["plan9".to_owned()], ..skill("fish", &[("fallback-for-tool", "x")]) };
        let mut skills =
            catalog(vec![Library("local", vec![here, skill("search", &[("fallback-for-tool", "web")])])], json!({}));
        skills.set_tools(OfferedTools { names: ["web".to_owned()].into(), ..OfferedTools::default() });
        let fixes: Vec<String> = skills.offered().await.0.inapplicable.into_iter().map(|skill| skill.fix).collect();
        assert!(fixes[0].contains("`platforms`") && fixes[1].starts_with("ask for the task in words"), "{fixes:?}");
        let refused = skills.called("local:search", "/local:search", &Marks::repeatable()).await.unwrap_err();
        assert!(refused.starts_with("the skill `search` does not apply here: it replaces the tool `web`"), "{refused}");
    }

    #[tokio::test]
    async fn a_text_that_the_guard_refuses_is_not_loaded() {
        let brew = skill("brew", &[("folder", "/s/brew")]);
        let mut skills = catalog(vec![Library("local", vec![brew, skill("code", &[])])], json!({}));
        skills.settings.guard = SkillGuard::new(|text| match (text.folder, text.file, text.content) {
            ("/s/brew", "SKILL.md", content) if content.starts_with("brew of local") => {
                Err("it was changed".to_owned())
            }
            ("/s/brew", "notes.md", "the file ./notes.md") => Err("so was this".to_owned()),
            _ => Ok(()),
        });
        let refused = "the skill `brew` is not loaded: it was changed";
        assert_eq!(skills.called("brew", "/brew", &Marks::repeatable()).await.unwrap_err(), refused);
        assert_eq!(skills.call(VIEW, r#"{"name": "brew"}"#).await.unwrap_err(), refused);
        let file = skills.call(VIEW, r#"{"name": "brew", "path": "./notes.md"}"#).await.unwrap_err();
        assert_eq!(file, "the skill `brew` is not loaded: so was this");
        assert!(skills.call(VIEW, r#"{"name": "brew", "path": "other.md"}"#).await.is_ok());
        // A plugin makes the text of a skill without a folder.
        assert!(skills.called("code", "/code", &Marks::repeatable()).await.is_ok());
    }

    #[tokio::test]
    async fn the_configuration_and_what_is_missing_are_told_but_no_value_of_a_variable() {
        let wiki = skill(
            "wiki",
            &[
                ("setting", r#"{"key": "wiki.path", "default": "~/wiki"}"#),
                ("setting", r#"{"key": "wiki.depth", "default": "1"}"#),
                ("setting", r#"{"key": "wiki.name"}"#),
                ("variable", r#"{"name": "SET"}"#),
                ("variable", r#"{"name": "UNSET", "prompt": "Your key"}"#),
            ],
        );
        let skills = catalog(vec![Library("local", vec![wiki])], json!({ "wiki": { "depth": 3 } }));
        let text = skills.call(VIEW, r#"{"name": "wiki"}"#).await.unwrap();
        assert!(text.contains("config.yaml:\nwiki.path = ~/wiki\nwiki.depth = 3\nwiki.name is not set\n]"), "{text}");
        assert!(text.contains("[Setup needed: the variable UNSET is not set (Your key). Tell the user"), "{text}");
        assert!(!text.contains("secret") && !text.contains("SET is not set (Your key); "), "{text}");
        let file = skills.call(VIEW, r#"{"name": "wiki", "path": "notes.md"}"#).await.unwrap();
        assert_eq!(file, "the file notes.md");
        let list = skills.call(LIST, "{}").await.unwrap();
        assert!(list.contains(r#""setup_needed":["the variable UNSET is not set (Your key)"]"#), "{list}");
    }

    #[test]
    fn a_setting_is_found_under_its_whole_key_and_in_sections() {
        let config = json!({ "a.b": "whole", "a": { "b": "nested", "c": [1], "d": null } });
        let config = config.as_object().unwrap();
        for (key, expected) in
            [("a.b", Some("whole")), ("a.c", Some("[1]")), ("a.d", None), ("a.x.y", None), ("", None)]
        {
            assert_eq!(value_of(config, key).as_deref(), expected, "{key}");
        }
    }
}
