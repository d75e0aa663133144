//! Skills as folders of the user: what makes up a skill, and how one is fetched, staged, installed, updated and removed.
//!
//! A skill is a folder with a `SKILL.md` ([`SkillHeader`]) and files beside it. Sources, archives, stage and journal are those
//! of plugins; the record of what was installed is `skills.lock`. What the texts say is not judged here.

mod contents;
mod header;
mod installer;
mod lock;
mod source;

pub use contents::{Change, FileChange, MOST_BYTES, MOST_DEPTH, MOST_FILE, MOST_FILES, MOST_TEXT, SkillFile};
pub use header::{Declared, SkillFlaw, SkillHeader, is_skill_name};
pub use installer::{FoundSkill, Replacing, SkillInstaller, StagedSkill};
pub use lock::{SkillEntry, SkillsLock};
pub use source::{FetchedSkills, OfferedSkill};

/// A folder with this file is a skill.
pub(crate) const SKILL: &str = "SKILL.md";
