//! Why a text is not a skill.

use std::fmt;

use crate::name::MOST_NAME;

/// Why a `SKILL.md` cannot be used. The text continues "the skill cannot be used: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The skill has no name, and no folder to take one from.
    NoName,
    /// The name is too long.
    LongName,
    /// The name has other characters.
    Name(String),
    /// The text does not begin with a front matter.
    NoFrontMatter,
    /// Nothing says when to use the skill.
    NoDescription,
    /// The YAML is broken, and its lines do not say enough.
    Guess(String),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("it has no name: add `name` to the front matter between lines of ---"),
            Self::LongName => write!(f, "its name has more than {MOST_NAME} characters"),
            Self::Name(name) => write!(f, "its name `{name}` may have only letters, digits, `-`, `_` and `.`"),
            Self::NoFrontMatter => {
                f.write_str("it has no front matter: begin it with `name` and `description` between lines of ---")
            }
            Self::NoDescription => {
                f.write_str("it has no description: add `description` to the front matter between lines of ---")
            }
            Self::Guess(why) => {
                write!(f, "its YAML front matter is broken, and no description was found in it: {why}")
            }
        }
    }
}

impl std::error::Error for Flaw {}
