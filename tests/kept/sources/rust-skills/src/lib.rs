//! Skills embedded in the plugin: the files in `src/skills/` are part of the component.
//!
//! The model sees the index in its prompt. It opens a skill when needed, and files that the skill mentions.

use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Instance, NoConfig, Setup, Skills};

/// An embedded skill with its files by path.
struct Known {
    name: &'static str,
    /// When to use it, in one line: all that the model sees at first.
    description: &'static str,
    content: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// To add a skill, add an entry.
const SKILLS: &[Known] = &[Known {
    name: "tea",
    description: "Brewing tea: how hot, how long, how much.",
    content: include_str!("skills/tea/SKILL.md"),
    files: &[("references/temperatures.md", include_str!("skills/tea/references/temperatures.md"))],
}];

struct EmbeddedSkills;

impl Instance for EmbeddedSkills {
    type Config = NoConfig;

    fn new(_: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Skills for EmbeddedSkills {
    fn index(&mut self) -> Result<Vec<Skill>, Error> {
        let skill = |known: &Known| Skill {
            name: known.name.to_owned(),
            description: known.description.to_owned(),
            category: "household".to_owned(),
            tags: Vec::new(),
            platforms: Vec::new(),
            requires_toolsets: Vec::new(),
            fallback_for_toolsets: Vec::new(),
            extra: Vec::new(),
        };
        Ok(SKILLS.iter().map(skill).collect())
    }

    fn view(&mut self, name: &str, path: Option<&str>) -> Result<Document, Error> {
        let Some(known) = SKILLS.iter().find(|known| known.name == name) else {
            let names: Vec<&str> = SKILLS.iter().map(|known| known.name).collect();
            return Err(Error::invalid(format!("there is no such skill; available skills: {}", names.join(", "))));
        };
        let paths: Vec<String> = known.files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let Some(path) = path else {
            return Ok(Document { content: known.content.to_owned(), files: paths });
        };
        // Paths are only compared, never opened, so they cannot lead outside.
        match known.files.iter().find(|(known, _)| *known == path) {
            Some((_, content)) => Ok(Document { content: (*content).to_owned(), files: Vec::new() }),
            None => Err(Error::invalid(format!("`{name}` has no such file; available files: {}", paths.join(", ")))),
        }
    }
}

hermes_plugin::export!(EmbeddedSkills: Skills);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_and_its_files_can_be_read() -> Result<(), Error> {
        for skill in EmbeddedSkills.index()? {
            let document = EmbeddedSkills.view(&skill.name, None)?;
            assert!(!document.content.is_empty() && !skill.description.contains('\n'));
            for file in document.files {
                assert!(!EmbeddedSkills.view(&skill.name, Some(&file))?.content.is_empty());
            }
        }
        Ok(())
    }

    #[test]
    fn an_error_lists_what_exists() {
        assert!(EmbeddedSkills.view("coffee", None).is_err_and(|error| error.message.contains("tea")));
        assert!(
            EmbeddedSkills
                .view("tea", Some("../Cargo.toml"))
                .is_err_and(|error| error.message.contains("temperatures"))
        );
    }
}
