//! Skills of the user: what the scan finds in them, when they are installed and when they are loaded, and which ones the
//! configured sources offer.

mod example;
mod loaded;
mod marks;
mod review;
mod sources;

pub use hermes_install::skills::{
    Change, Declared, FetchedSkills, FileChange, FoundSkill, OfferedSkill, SkillFile, SkillHeader, SkillInstaller,
};
pub(crate) use loaded::guard;
pub use review::{Review, Suspicion, review};
pub use sources::{Hit, SearchReport, search};
