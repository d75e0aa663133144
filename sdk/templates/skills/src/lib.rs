//! Skills that come with the plugin: what lies in `skills/` is built into the component.
//!
//! The model sees the index in its prompt, asks for a skill when it needs one, and for a file of it when the skill names
//! it.

use hermes_plugin::skills::{Document, Skill};
use hermes_plugin::{Error, Plugin, Skills};

/// A skill with its files, by their paths.
struct Known {
    name: &'static str,
    /// When it helps, in one line: all that the model sees of it at first.
    description: &'static str,
    content: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// One more skill is one more entry.
const SKILLS: &[Known] = &[Known {
    name: "tea",
    description: "Brewing tea: how hot, how long, how much.",
    content: include_str!("../skills/tea/SKILL.md"),
    files: &[("references/temperatures.md", include_str!("../skills/tea/references/temperatures.md"))],
}];

struct Shelf;

impl Plugin for Shelf {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Skills for Shelf {
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
            return Err(Error::invalid(format!("there is no such skill; there are: {}", names.join(", "))));
        };
        let paths: Vec<String> = known.files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let Some(path) = path else {
            return Ok(Document { content: known.content.to_owned(), files: paths });
        };
        // Paths are compared and never opened, so none leads anywhere else.
        match known.files.iter().find(|(known, _)| *known == path) {
            Some((_, content)) => Ok(Document { content: (*content).to_owned(), files: Vec::new() }),
            None => Err(Error::invalid(format!("`{name}` has no such file; it has: {}", paths.join(", ")))),
        }
    }
}

hermes_plugin::export!(Shelf: Skills);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skill_and_every_file_of_it_can_be_read() -> Result<(), Error> {
        for skill in Shelf.index()? {
            let document = Shelf.view(&skill.name, None)?;
            assert!(!document.content.is_empty() && !skill.description.contains('\n'));
            for file in document.files {
                assert!(!Shelf.view(&skill.name, Some(&file))?.content.is_empty());
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        assert!(Shelf.view("coffee", None).is_err_and(|error| error.message.contains("tea")));
        assert!(Shelf.view("tea", Some("../Cargo.toml")).is_err_and(|error| error.message.contains("temperatures")));
    }
}
