//! Skills as slash commands: `/NAME ARGUMENTS` for each skill of the session, and `/skill:NAME` for one whose name is also a command.

use hermes_app::{InapplicableSkill, OfferedSkill};

use crate::slash::Slash;

/// Reaches each skill, whatever its name.
const ALWAYS: &str = "skill:";

/// What the first word of a text names, if it may be a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted<'t> {
    pub(crate) name: &'t str,
    /// Whether it can only be a skill.
    pub(crate) is_skill: bool,
}

impl<'t> Wanted<'t> {
    /// `None` for a message that begins with no name of a skill, and for the commands of the chat.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let word = text.split_whitespace().next().filter(|word| text.starts_with(word))?.strip_prefix('/')?;
        if let Some(name) = word.strip_prefix(ALWAYS) {
            return Some(Self { name, is_skill: true });
        }
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character))
        };
        let is_skill = match word.split_once(':') {
            Some((plugin, name)) if is_name(plugin) && is_name(name) => true,
            None if is_name(word) && !is_command(word) => false,
            _ => return None,
        };
        Some(Self { name: word, is_skill })
    }

    /// Finds it among the skills of a session.
    pub(crate) fn find(self, skills: &[OfferedSkill]) -> Option<&OfferedSkill> {
        let by_plugin = |skill: &&OfferedSkill| {
            self.name.split_once(':').is_some_and(|(plugin, name)| skill.plugin == plugin && skill.name == name)
        };
        skills.iter().find(|skill| skill.name == self.name).or_else(|| skills.iter().find(by_plugin))
    }

    /// Finds it among the skills that do not apply.
    pub(crate) fn find_inapplicable(self, skills: &[InapplicableSkill]) -> Option<&InapplicableSkill> {
        let (of, name) = self.name.split_once(':').map_or((None, self.name), |(of, name)| (Some(of), name));
        skills.iter().find(|skill| skill.name == name && of.is_none_or(|of| skill.plugin == of))
    }
}

/// Whether the chat has a command of this name.
fn is_command(name: &str) -> bool {
    !matches!(Slash::parse(&format!("/{name}")), None | Some(Slash::Unknown { .. }))
}

/// The command of each skill with its description.
pub(crate) fn commands(skills: &[OfferedSkill]) -> Vec<(String, String)> {
    let command = |skill: &OfferedSkill| {
        let always = if is_command(&skill.name) { ALWAYS } else { "" };
        (format!("/{always}{}", skill.name), skill.description.clone())
    };
    skills.iter().map(command).collect()
}

/// A line that names the skills whose names are commands; `None` if there are none.
pub(crate) fn clash(skills: &[OfferedSkill]) -> Option<String> {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).filter(|name| is_command(name)).collect();
    let first = names.first()?;
    let (named, verb) = match names.len() {
        1 => (format!("the skill `{first}`"), "has"),
        _ => (format!("the skills `{}`", names.join("`, `")), "have"),
    };
    Some(format!("{named} {verb} the name of a command: `/{ALWAYS}{first}` calls the skill"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn skill(plugin: &str, name: &str) -> OfferedSkill {
        OfferedSkill { name: name.to_owned(), plugin: plugin.to_owned(), description: format!("About {name}.") }
    }

    #[test]
    fn commands_of_the_chat_come_before_skills_and_each_skill_can_be_reached() {
        let skills =
            [skill("local", "brew"), skill("local", "model"), skill("teas", "teas:brew"), skill("teas", "pour.v2")];
        for (text, expected) in [
            ("/brew green tea", Some("brew")),
            ("/brew\n2 cups", Some("brew")),
            ("/model x", None),
            ("/reset", None),
            ("/skill:model x", Some("model")),
            ("/skill:nothing", None),
            ("/local:model", Some("model")),
            ("/teas:brew", Some("teas:brew")),
            ("/teas:pour.v2 now", Some("pour.v2")),
            ("/pour.v2", Some("pour.v2")),
            ("/brewing", None),
            ("/etc/hosts is a file", None),
            (" /brew", None),
            ("brew", None),
            ("/", None),
            ("/a:b:c", None),
        ] {
            let found = Wanted::parse(text).and_then(|wanted| wanted.find(&skills));
            assert_eq!(found.map(|skill| skill.name.as_str()), expected, "{text:?}");
        }
        assert!(Wanted::parse("/skill:nothing").unwrap().is_skill && !Wanted::parse("/brewing").unwrap().is_skill);
        let commands: Vec<String> = commands(&skills).into_iter().map(|(command, _)| command).collect();
        assert_eq!(commands, ["/brew", "/skill:model", "/teas:brew", "/pour.v2"]);
        assert_eq!(
            clash(&skills).unwrap(),
            "the skill `model` has the name of a command: `/skill:model` calls the skill"
        );
        assert_eq!(clash(&skills[..1]), None);
    }

    #[test]
    fn a_skill_that_does_not_apply_is_found_by_its_name_and_its_plugin() {
        let skills = ["local", "teas"].map(|plugin| InapplicableSkill {
            name: "brew".to_owned(),
            plugin: plugin.to_owned(),
            why: String::new(),
            fix: String::new(),
        });
        for (text, expected) in [
            ("/brew tea", Some("local")),
            ("/skill:brew", Some("local")),
            ("/teas:brew", Some("teas")),
            ("/coffees:brew", None),
            ("/brewing", None),
        ] {
            let found = Wanted::parse(text).and_then(|wanted| wanted.find_inapplicable(&skills));
            assert_eq!(found.map(|skill| skill.plugin.as_str()), expected, "{text}");
        }
    }
}
