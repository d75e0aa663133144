//! The front matter of a `SKILL.md`, as the commands for skills show it. How it is read is the matter of [`hermes_skill_format`],
//! which the plugin `local` uses too.

use hermes_skill_format::{Flaw, Header, Item};
use serde::Serialize;

use crate::archive::unfit;

/// What a `SKILL.md` says about its skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SkillHeader {
    /// The name by which the model and the user know it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its version, if it has one.
    pub version: String,
    /// Its license.
    pub license: String,
    /// What it needs, in the words of its author.
    pub compatibility: String,
    /// The environment variables that it declares.
    pub variables: Vec<Declared>,
    /// The settings that it declares.
    pub settings: Vec<Declared>,
    /// The programs that it needs.
    pub programs: Vec<String>,
    /// The files with credentials that it reads.
    pub credentials: Vec<String>,
    /// Why the YAML could not be parsed, so that name and description were read line by line.
    pub guessed: Option<String>,
    /// All texts of the front matter.
    #[serde(skip)]
    texts: Vec<String>,
}

/// A variable or a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: String,
    /// Whether the skill works without it.
    pub is_optional: bool,
}

/// Why a skill cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillFlaw {
    /// A file that must be text is not.
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    /// A file is too large.
    #[error("`{file}` is larger than {} KiB", most >> 10)]
    Large {
        /// The file.
        file: String,
        /// The limit in bytes.
        most: u64,
    },
    /// All files together are too large.
    #[error("its files have more than {} MiB", .0 >> 20)]
    Heavy(u64),
    /// There are too many files.
    #[error("it has more than {0} files")]
    Many(usize),
    /// Folders are nested too deeply.
    #[error("`{0}` is more than {most} folders deep", most = super::MOST_DEPTH)]
    Deep(String),
    /// A file is a link.
    #[error("`{0}` is a link, and a skill may not have links")]
    Link(String),
    /// Something is neither a file nor a folder.
    #[error("`{0}` is neither a file nor a folder")]
    Special(String),
    /// A file's name is not valid on every system.
    #[error("the name `{name}` {why}")]
    FileName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// Its `SKILL.md` breaks the rule for names and descriptions.
    #[error(transparent)]
    Rule(#[from] Flaw),
    /// The name cannot be installed as a folder.
    #[error("its name `{0}` cannot be that of a folder on every system")]
    FolderName(String),
    /// Another skill has the name.
    #[error("the skill in {0} has the same name")]
    Twice(String),
    /// The system refused to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// Whether this can be the name of an installed skill, and of its folder.
pub fn is_skill_name(name: &str) -> bool {
    hermes_skill_format::is_name(name) && !name.starts_with('.') && unfit(name).is_none()
}

impl SkillHeader {
    /// Reads the text of a `SKILL.md`. Without a name in it, the skill has that of its folder.
    ///
    /// # Errors
    ///
    /// When the skill has no valid name, or no description.
    pub fn parse(text: &str, folder: Option<&str>) -> Result<Self, SkillFlaw> {
        let header = Header::parse(text, folder)?;
        Ok(Self {
            name: header.name,
            description: header.description,
            version: header.version,
            license: header.license,
            compatibility: header.compatibility,
            variables: header.variables.iter().map(declared).collect(),
            settings: header.settings.iter().map(declared).collect(),
            programs: header.programs,
            credentials: header.credentials,
            guessed: header.guessed,
            texts: header.texts,
        })
    }

    /// All texts of the front matter after the YAML was parsed, so that no escape hides one from the scan.
    pub fn texts(&self) -> Vec<&str> {
        self.texts.iter().map(String::as_str).chain([self.description.as_str()]).collect()
    }
}

fn declared(item: &Item) -> Declared {
    let purposes = ["description", "prompt", "required_for", "help"].into_iter().find_map(|key| item.get(key));
    Declared {
        name: item.name.clone(),
        purpose: purposes.unwrap_or_default().to_owned(),
        is_optional: item.is_optional(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_shown_with_its_purpose() {
        let text = "---\nname: deploy\ndescription: Ships it.\nversion: 1.2\nlicense: MIT\n\
            required_environment_variables:\n  - {name: TOKEN, prompt: Your token, optional: true}\n\
            prerequisites: {env_vars: [KEY], commands: [git, gh]}\nrequired_credential_files: [~/.netrc]\n\
            metadata:\n  hermes:\n    config: [{key: deploy.branch, description: The branch}]\n---\n# Deploy\n";
        let header = SkillHeader::parse(text, None).unwrap();
        let one = |name: &str, purpose: &str, is_optional| Declared {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            is_optional,
        };
        assert_eq!(header.variables, [one("TOKEN", "Your token", true), one("KEY", "", false)]);
        assert_eq!(header.settings, [one("deploy.branch", "The branch", false)]);
        assert_eq!(
            (header.programs, header.credentials),
            (vec!["git".to_owned(), "gh".to_owned()], vec!["~/.netrc".to_owned()])
        );
    }

    #[test]
    fn a_name_is_a_folder_name_on_every_system() {
        for name in ["", ".", "..", ".hidden", "a/b", "a\\b", "nul", "com1", "a.", "a b", "a\nb", &"x".repeat(65)] {
            assert!(!is_skill_name(name), "{name:?}");
        }
        for name in ["pdf", "a.b", "x-1_2", "日本"] {
            assert!(is_skill_name(name), "{name:?}");
        }
    }
}
