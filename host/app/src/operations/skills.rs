//! Installs, updates and removes skills. The scan and the user's consent come before every change.

use hermes_install::skills::{FetchedSkills, FileChange, FoundSkill, StagedSkill};
use hermes_install::{InstallError, Source};
use hermes_plugin_host::Digest;

use super::Downloads;
use crate::skills::{Review, Suspicion, review};
use crate::{AppError, Reporter, Setup};

/// Asks the user about a skill. Consent covers only what was presented before the answer.
pub trait SkillConsent {
    /// The error of the front end.
    type Error: From<AppError>;

    /// Presents a skill, and decides whether it is installed. Fails if it cannot ask.
    fn agree(&self, offer: &SkillOffer<'_>) -> Result<bool, Self::Error>;

    /// Whether nobody can be asked, so that a command has to agree by itself.
    fn is_unattended(&self) -> bool;
}

/// A skill that needs consent.
#[derive(Debug)]
pub struct SkillOffer<'a> {
    /// The skill on the stage.
    pub skill: &'a StagedSkill,
    /// What the scan found. What blocks the skill is there only if its digest was accepted.
    pub review: &'a Review,
    /// Whether the user accepted exactly this digest.
    pub is_accepted: bool,
    /// Whether an installed skill of the same source is replaced.
    pub is_update: bool,
    /// The files that differ from those that are there now.
    pub changes: &'a [FileChange],
}

/// The end of an installation or an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillReport {
    /// The same files are already installed.
    Unchanged {
        /// The skill.
        name: String,
        /// The files that the user changed since.
        edits: Vec<FileChange>,
    },
    /// The user declined.
    Declined {
        /// The skill.
        name: String,
    },
    /// The skill is installed.
    Installed {
        /// The skill.
        name: String,
        /// Whether an earlier version was installed.
        is_update: bool,
    },
}

/// Most passages that an error names.
const MOST_NAMED: usize = 5;

/// Fetches a source with skills. Nothing is changed yet.
///
/// # Errors
///
/// When the source cannot be fetched, or contains no skill.
pub async fn fetch_skills(
    source: &Source,
    insecure: bool,
    setup: &Setup,
    reporter: &dyn Reporter,
) -> Result<FetchedSkills, AppError> {
    let installer = setup.skill_installer();
    installer.recover(&|_| ())?;
    Ok(installer.fetch(source, insecure, &Downloads(reporter)).await?)
}

/// Installs a skill of a fetched source. With `replace`, also over a skill that has another source, was edited, or is the
/// user's own. What the scan blocks is installed only if `accepted` has exactly its digest.
///
/// # Errors
///
/// When the skill cannot be used, something is in its place, or the front end cannot ask.
pub fn install_skill<C: SkillConsent>(
    fetched: &FetchedSkills,
    name: &str,
    (replace, accepted): (bool, &[Digest]),
    setup: &Setup,
    consent: &C,
) -> Result<SkillReport, C::Error> {
    let mut staged = setup.skill_installer().stage(fetched, name).map_err(AppError::from)?;
    if staged.is_installed() {
        return Ok(SkillReport::Unchanged { name: staged.name().to_owned(), edits: Vec::new() });
    }
    if !replace {
        staged.replaces_nothing_of_the_user().map_err(AppError::from)?;
    }
    let argument = if staged.entry.path.is_empty() { staged.name() } else { &staged.entry.path };
    let command = ["hermes", "skills", "install", &staged.entry.source, argument].map(str::to_owned).to_vec();
    settle(&mut staged, accepted, command, setup, consent)
}

/// All skills of the user with their state. An interrupted change of a skill is finished first, if `recovers`.
///
/// # Errors
///
/// When the folder of skills or their lock cannot be read.
pub fn skills(setup: &Setup, recovers: bool) -> Result<Vec<FoundSkill>, AppError> {
    let installer = setup.skill_installer();
    if recovers {
        installer.recover(&|_| ())?;
    }
    Ok(installer.inventory()?)
}

/// The names of the skills that Hermes installed, or this one if it is among them.
///
/// # Errors
///
/// When the skill is not installed, or `skills.lock` cannot be read.
pub fn installed_skills(name: Option<&str>, setup: &Setup) -> Result<Vec<String>, AppError> {
    let installer = setup.skill_installer();
    installer.recover(&|_| ())?;
    match name {
        Some(name) => {
            installer.entry(name)?;
            Ok(vec![name.to_owned()])
        }
        None => Ok(installer.lock()?.skills.into_keys().collect()),
    }
}

/// Installs the current version of an installed skill from its source.
///
/// # Errors
///
/// When the source no longer has the skill, the user edited it, or the front end cannot ask.
pub async fn update_skill<C: SkillConsent>(
    name: &str,
    (insecure, discards_edits, accepted): (bool, bool, &[Digest]),
    setup: &Setup,
    consent: &C,
    reporter: &dyn Reporter,
) -> Result<SkillReport, C::Error> {
    let installer = setup.skill_installer();
    let before = installer.entry(name).map_err(AppError::from)?;
    let source = Source::parse(&before.source, setup.home.path()).map_err(AppError::from)?;
    let fetched = fetch_skills(&source, insecure, setup, reporter).await?;
    let staged = match fetched.get(name) {
        Err(InstallError::SkillTwice { .. }) => installer.stage(&fetched, &before.path),
        _ => installer.stage(&fetched, name),
    };
    let mut staged = staged.map_err(AppError::from)?;
    if staged.name() != name {
        let there = fetched.skills.iter().map(|skill| skill.name().to_owned()).collect();
        let from = fetched.source.clone();
        return Err(AppError::from(InstallError::NoSuchSkill { name: name.to_owned(), from, there }).into());
    }
    let is_edited = !staged.replacing.edits.is_empty();
    if staged.replacing.is_there && staged.entry.digest == before.digest && !(is_edited && discards_edits) {
        return Ok(SkillReport::Unchanged { name: name.to_owned(), edits: staged.replacing.edits.clone() });
    }
    if !discards_edits {
        staged.replaces_nothing_of_the_user().map_err(AppError::from)?;
    }
    let command = ["hermes", "skills", "update", name].map(str::to_owned).to_vec();
    settle(&mut staged, accepted, command, setup, consent)
}

/// Scans the staged skill, asks, and commits. `command` is what the user runs again to accept a digest.
fn settle<C: SkillConsent>(
    staged: &mut StagedSkill,
    accepted: &[Digest],
    mut command: Vec<String>,
    setup: &Setup,
    consent: &C,
) -> Result<SkillReport, C::Error> {
    let (name, digest) = (staged.name().to_owned(), staged.entry.digest);
    let review = review(&staged.header, &staged.files);
    let is_accepted = accepted.contains(&digest);
    command.extend(["--accept".to_owned(), digest.to_string()]);
    command.extend(consent.is_unattended().then(|| "--yes".to_owned()));
    let command = shlex::try_join(command.iter().map(String::as_str)).unwrap_or_default();
    let is_doubtful = !review.blocked.is_empty() || !review.asked.is_empty();
    if !is_accepted && !accepted.is_empty() && is_doubtful {
        let accepted = accepted.iter().map(ToString::to_string).collect();
        let found = explained(if review.blocked.is_empty() { &review.asked } else { &review.blocked });
        return Err(AppError::SkillDigest { name, digest: digest.to_string(), accepted, found, command }.into());
    }
    if !is_accepted && !review.blocked.is_empty() {
        return Err(AppError::SkillBlocked { name, command, found: explained(&review.blocked) }.into());
    }
    let is_update = staged.has_same_source();
    let changes = staged.changes();
    if !consent.agree(&SkillOffer { skill: staged, review: &review, is_accepted, is_update, changes: &changes })? {
        return Ok(SkillReport::Declined { name });
    }
    if is_accepted {
        staged.entry.accepted = review.blocked.iter().chain(&review.asked).map(ToString::to_string).collect();
    }
    let moment = setup.clock()?.local().timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    setup.skill_installer().commit(staged, &moment, &|_| ()).map_err(AppError::from)?;
    Ok(SkillReport::Installed { name, is_update })
}

/// The first passages with their lines.
fn explained(found: &[Suspicion]) -> Vec<String> {
    let more = found.len().saturating_sub(MOST_NAMED);
    let mut lines: Vec<String> = found.iter().take(MOST_NAMED).map(Suspicion::explained).collect();
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

/// Removes a skill that Hermes installed.
///
/// # Errors
///
/// When Hermes did not install the skill, or the user edited it and `discards_edits` is not given.
pub fn remove_skill(name: &str, discards_edits: bool, setup: &Setup) -> Result<(), AppError> {
    let installer = setup.skill_installer();
    installer.recover(&|_| ())?;
    Ok(installer.remove(name, discards_edits, &|_| ())?)
}
