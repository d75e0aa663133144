//! Reads a `SKILL.md` in the format of [agentskills.io](https://agentskills.io): YAML between two lines of `---`, and Markdown
//! below it. The rule for names and descriptions is here and nowhere else: the plugin that shows skills to the model and the
//! commands that install them both read a skill with [`Header::parse`].

mod flaw;
mod front_matter;
mod header;
mod name;
mod yaml;

pub use flaw::Flaw;
pub use header::{Header, Item, MOST_DECLARED, MOST_DESCRIPTION};
pub use name::{MOST_NAME, is_name};
