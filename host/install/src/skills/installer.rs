//! Installs skills into `$HERMES_HOME/skills`. A staged skill can be shown, accepted or dropped before it is committed in one
//! step.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_plugin_host::{Digest, PluginOrigin};

use super::SKILL;
use super::contents::{
    self, Change, FileChange, MOST_TEXT, Place, SkillFile, changes, contents as read_contents, digest_of, digests,
    unreadable,
};
use super::header::{SkillFlaw, SkillHeader, is_skill_name};
use super::lock::{SkillEntry, SkillsLock};
use super::source::{FetchedSkills, find};
use crate::archive::{Caps, Links};
use crate::error::{At, InstallError, Reason};
use crate::fetch::{Fetching, Progress, fetch};
use crate::source::Source;
use crate::stage::{Places, Stage, Steps, Turn};
use crate::transaction::{SkillRecord, Transaction, commit, finish_interrupted, take_turn};

/// How long a search waits for a source. An installation waits longer, because the user asked for exactly that source.
const PATIENCE: Duration = Duration::from_secs(60);

/// Installs skills into one home folder.
#[derive(Debug, Clone)]
pub struct SkillInstaller {
    places: Places,
}

/// A skill on the stage: its files are read and copied, and nothing of it was used. Dropping it removes its files.
#[derive(Debug)]
pub struct StagedSkill {
    stage: Stage,
    /// What its `SKILL.md` says.
    pub header: SkillHeader,
    /// Its files, sorted by name.
    pub files: Vec<SkillFile>,
    /// The entry that `skills.lock` would get; without the time.
    pub entry: SkillEntry,
    /// What it would replace.
    pub replacing: Replacing,
}

/// What is at the place of a skill now.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacing {
    /// The entry of `skills.lock`.
    pub entry: Option<SkillEntry>,
    /// Whether there is a folder, a file or a link of the name.
    pub is_there: bool,
    /// The files that the user changed since they were installed. All of them for a folder that Hermes did not install.
    pub edits: Vec<FileChange>,
    /// The files there.
    files: BTreeMap<String, Digest>,
}

/// A skill in the user's folder, or one that `skills.lock` lists.
#[derive(Debug, Clone)]
pub struct FoundSkill {
    /// Its folder below `skills`, with `/`.
    pub folder: String,
    /// What its `SKILL.md` says, or why the model does not see it.
    pub header: Result<SkillHeader, SkillFlaw>,
    /// Where it came from. None for the user's own skills.
    pub entry: Option<SkillEntry>,
    /// The files that the user changed since they were installed.
    pub edits: Vec<FileChange>,
    /// Whether its folder is missing.
    pub is_missing: bool,
}

impl FoundSkill {
    /// Its name; that of its folder if its `SKILL.md` cannot be used.
    pub fn name(&self) -> &str {
        match &self.header {
            Ok(header) => &header.name,
            Err(_) => self.folder.rsplit('/').next().unwrap_or(&self.folder),
        }
    }
}

impl StagedSkill {
    /// Its name, and that of its folder.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// The files that differ from those that are there now.
    pub fn changes(&self) -> Vec<FileChange> {
        changes(&self.replacing.files, &self.entry.files)
    }

    /// Whether the skill there comes from the same source.
    pub fn has_same_source(&self) -> bool {
        let origin = |entry: &SkillEntry| PluginOrigin::of(&entry.source, None);
        self.replacing.entry.as_ref().is_some_and(|before| origin(before).has_same_source(&origin(&self.entry)))
    }

    /// Whether exactly this skill is installed, without edits.
    pub fn is_installed(&self) -> bool {
        let Replacing { entry, is_there, edits, .. } = &self.replacing;
        let is_same = |before: &SkillEntry| before.digest == self.entry.digest && before.source == self.entry.source;
        *is_there && edits.is_empty() && entry.as_ref().is_some_and(is_same)
    }

    /// Refuses to replace files of the user, or a skill from elsewhere.
    ///
    /// # Errors
    ///
    /// When the skill there was not installed by Hermes, was edited, or has another source.
    pub fn replaces_nothing_of_the_user(&self) -> Result<(), InstallError> {
        let name = self.name().to_owned();
        match &self.replacing {
            Replacing { is_there: true, entry: None, .. } => Err(InstallError::SkillOccupied { name }),
            Replacing { edits, .. } if !edits.is_empty() => {
                Err(InstallError::SkillEdited { name, edits: edits.clone() })
            }
            Replacing { entry: Some(before), .. } if !self.has_same_source() => {
                Err(InstallError::SkillInstalled { name, source_text: before.source.clone() })
            }
            Replacing { .. } => Ok(()),
        }
    }
}

impl SkillInstaller {
    /// An installer for a home.
    pub fn new(home: &Path) -> Self {
        Self { places: Places::of_skills(home) }
    }

    /// Fetches a source, and finds the skills in it.
    ///
    /// # Errors
    ///
    /// When the source cannot be fetched, or contains no skill.
    pub async fn fetch(
        &self,
        source: &Source,
        insecure: bool,
        progress: &dyn Progress,
    ) -> Result<FetchedSkills, InstallError> {
        fetched(&self.places, source, insecure, progress).await
    }

    /// Fetches a source to a folder of the cache, for a look at it.
    ///
    /// # Errors
    ///
    /// When the source cannot be fetched, or contains no skill.
    pub async fn look(
        &self,
        cache: &Path,
        source: &Source,
        insecure: bool,
        progress: &dyn Progress,
    ) -> Result<FetchedSkills, InstallError> {
        let places = Places { home: self.places.home.clone(), folder: cache.to_owned() };
        // What a killed process left there goes first.
        let turn = Turn::take(&places)?;
        crate::stage::sweep(&places, &turn, None);
        drop(turn);
        match tokio::time::timeout(PATIENCE, fetched(&places, source, insecure, progress)).await {
            Ok(fetched) => fetched,
            Err(_) => {
                let reason = format!("it did not answer within {} s", PATIENCE.as_secs()).into();
                Err(InstallError::Fetch { from: source.to_string(), reason })
            }
        }
    }

    /// Copies a skill of a source to the stage.
    ///
    /// # Errors
    ///
    /// When the source does not have it, or it cannot be used.
    pub fn stage(&self, fetched: &FetchedSkills, name: &str) -> Result<StagedSkill, InstallError> {
        let offered = fetched.get(name)?;
        let broken = |flaw: SkillFlaw| InstallError::SkillBroken { name: offered.name().to_owned(), flaw };
        let header = offered.header.clone().map_err(broken)?;
        if !is_skill_name(&header.name) {
            return Err(broken(SkillFlaw::FolderName(header.name)));
        }
        if let Some(link) = fetched.links.iter().find_map(|link| link.strip_prefix(&offered.folder).ok()) {
            return Err(broken(SkillFlaw::Link(link.display().to_string())));
        }
        let files = read_contents(&offered.folder, Place::Source).map_err(broken)?;
        self.refuse_taken_name(&header.name)?;
        let stage = Stage::new(&self.places)?;
        let folder = stage.plugin();
        fs::create_dir(&folder).at(&folder)?;
        for file in &files {
            let path = folder.join(&file.name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).at(parent)?;
            }
            let mut out = fs::File::create_new(&path).at(&path)?;
            std::io::Write::write_all(&mut out, &file.bytes).and_then(|()| out.sync_all()).at(&path)?;
        }
        hermes_private_files::sync_folder(&folder).at(&folder)?;
        let entry = SkillEntry {
            source: fetched.source.clone(),
            resolved: fetched.resolved.clone(),
            path: offered.path.clone(),
            digest: digest_of(&files),
            installed: String::new(),
            files: digests(&files),
            accepted: Vec::new(),
        };
        let replacing = self.replacing(&header.name, &self.lock()?);
        Ok(StagedSkill { stage, header, files, entry, replacing })
    }

    /// Refuses the name of a skill in another folder: the model would see only one of the two.
    fn refuse_taken_name(&self, name: &str) -> Result<(), InstallError> {
        let found = self.inventory()?;
        match found.iter().find(|found| found.folder != name && found.name() == name && found.header.is_ok()) {
            Some(other) => {
                Err(InstallError::SkillName { name: name.to_owned(), folder: self.places.folder.join(&other.folder) })
            }
            None => Ok(()),
        }
    }

    /// What is at the place of a skill.
    fn replacing(&self, name: &str, lock: &SkillsLock) -> Replacing {
        let folder = self.places.folder.join(name);
        let entry = lock.skills.get(name).cloned();
        let is_there = fs::symlink_metadata(&folder).is_ok();
        if !is_there {
            return Replacing { entry, is_there, edits: Vec::new(), files: BTreeMap::new() };
        }
        let installed = entry.as_ref().map(|entry| entry.files.clone()).unwrap_or_default();
        let (files, edits) = match own_contents(&folder) {
            Ok(files) => {
                let files = digests(&files);
                let edits = changes(&installed, &files);
                (files, edits)
            }
            // Only the user can have put there what no installation allows.
            Err(flaw) => (BTreeMap::new(), vec![FileChange { name: edited_file(&flaw), change: Change::Changed }]),
        };
        Replacing { entry, is_there, edits, files }
    }

    /// Installs a staged skill. `moment` is the time in RFC 3339.
    ///
    /// # Errors
    ///
    /// When another command changed the skill meanwhile, or the system refuses.
    pub fn commit(&self, staged: &StagedSkill, moment: &str, steps: Steps<'_>) -> Result<(), InstallError> {
        let name = staged.name();
        let turn = self.turn()?;
        if self.replacing(name, &self.lock()?) != staged.replacing {
            return Err(InstallError::Raced(name.to_owned()));
        }
        let place = PathBuf::from(name);
        let entry = SkillEntry { installed: moment.to_owned(), ..staged.entry.clone() };
        let transaction = Transaction {
            out: vec![(place.clone(), "before".to_owned())],
            into: vec![("plugin".to_owned(), place)],
            ..Transaction::of_skill(staged.stage.name(), name, SkillRecord { entry: Some(entry) })
        };
        commit(&transaction, &self.places, &turn, steps)
    }

    /// Removes an installed skill. With `discards_edits`, also one that the user edited.
    ///
    /// # Errors
    ///
    /// When Hermes did not install the skill, or the user edited it.
    pub fn remove(&self, name: &str, discards_edits: bool, steps: Steps<'_>) -> Result<(), InstallError> {
        // A home without skills stays without a folder for them.
        self.entry(name)?;
        let turn = self.turn()?;
        let lock = self.lock()?;
        let Replacing { entry, edits, .. } = self.replacing(name, &lock);
        if entry.is_none() {
            return Err(InstallError::Raced(name.to_owned()));
        }
        if !edits.is_empty() && !discards_edits {
            return Err(InstallError::SkillEdited { name: name.to_owned(), edits });
        }
        let stage = Stage::new(&self.places)?;
        let transaction = Transaction {
            out: vec![(PathBuf::from(name), "now".to_owned())],
            ..Transaction::of_skill(stage.name(), name, SkillRecord { entry: None })
        };
        commit(&transaction, &self.places, &turn, steps)?;
        drop(stage);
        turn.leave(&self.places);
        Ok(())
    }

    /// The contents of `skills.lock`.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn lock(&self) -> Result<SkillsLock, InstallError> {
        SkillsLock::read(&SkillsLock::path(&self.places.home))
    }

    /// The entry of an installed skill.
    ///
    /// # Errors
    ///
    /// When Hermes did not install it.
    pub fn entry(&self, name: &str) -> Result<SkillEntry, InstallError> {
        let mut lock = self.lock()?;
        lock.skills.remove(name).ok_or_else(|| {
            match is_skill_name(name) && fs::symlink_metadata(self.places.folder.join(name)).is_ok() {
                true => InstallError::SkillOccupied { name: name.to_owned() },
                false => InstallError::UnknownSkill { name: name.to_owned(), there: lock.skills.into_keys().collect() },
            }
        })
    }

    /// The skills of the user's folder, as the plugin `local` finds them, and those of `skills.lock` that are missing. Sorted
    /// by name; of two with the same name, the first is used.
    ///
    /// # Errors
    ///
    /// When `skills.lock` or the folder cannot be read.
    pub fn inventory(&self) -> Result<Vec<FoundSkill>, InstallError> {
        let mut lock = self.lock()?;
        let mut found = Vec::new();
        for outer in subfolders(&self.places.folder)? {
            let path = self.places.folder.join(&outer);
            if path.join(SKILL).exists() {
                let edits = self.replacing(&outer, &lock).edits;
                let entry = lock.skills.remove(&outer);
                let edits = if entry.is_some() { edits } else { Vec::new() };
                found.push(FoundSkill {
                    header: own_header(&path, &outer),
                    folder: outer,
                    entry,
                    edits,
                    is_missing: false,
                });
                continue;
            }
            for inner in subfolders(&path).unwrap_or_default() {
                let path = path.join(&inner);
                if path.join(SKILL).exists() {
                    let (header, folder) = (own_header(&path, &inner), format!("{outer}/{inner}"));
                    found.push(FoundSkill { folder, header, entry: None, edits: Vec::new(), is_missing: false });
                }
            }
        }
        found.extend(lock.skills.into_iter().map(|(name, entry)| FoundSkill {
            folder: name,
            header: Err(SkillFlaw::Unreadable("its folder is missing".to_owned())),
            entry: Some(entry),
            edits: Vec::new(),
            is_missing: true,
        }));
        found.sort_by(|one, other| (one.name(), &one.folder).cmp(&(other.name(), &other.folder)));
        for at in 1..found.len() {
            let first = (0..at).find(|first| found[*first].name() == found[at].name() && found[*first].header.is_ok());
            if let Some(first) = first.filter(|_| found[at].header.is_ok()) {
                let folder = found[first].folder.clone();
                found[at].header = Err(SkillFlaw::Twice(folder));
            }
        }
        Ok(found)
    }

    /// The path of a skill's folder.
    pub fn folder_of(&self, found: &FoundSkill) -> PathBuf {
        self.places.folder.join(&found.folder)
    }

    /// The files of a skill in the user's folder.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is beyond the limits of a skill.
    pub fn files(&self, found: &FoundSkill) -> Result<Vec<SkillFile>, SkillFlaw> {
        own_contents(&self.folder_of(found))
    }

    /// The files of the skill in a folder directly below the user's skills.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is beyond the limits of a skill.
    pub fn files_of(&self, folder: &str) -> Result<Vec<SkillFile>, SkillFlaw> {
        own_contents(&self.places.folder.join(folder))
    }

    /// Finishes an interrupted command and removes its files. Returns the name of the skill.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read, or the system refuses.
    pub fn recover(&self, steps: Steps<'_>) -> Result<Option<String>, InstallError> {
        finish_interrupted(&self.places, steps)
    }

    fn turn(&self) -> Result<Turn, InstallError> {
        take_turn(&self.places)
    }
}

async fn fetched(
    places: &Places,
    source: &Source,
    insecure: bool,
    progress: &dyn Progress,
) -> Result<FetchedSkills, InstallError> {
    let from = source.to_string();
    let stage = Stage::new(places)?;
    let work = stage.path().join("work");
    fs::create_dir(&work).at(&work)?;
    let caps = Caps { links: Links::LeaveOut, ..Caps::standard() };
    let arrived = fetch(source, &work, &Fetching { insecure, caps, progress }).await?;
    // The folders of a stage have names that say nothing.
    let own_name = match source {
        Source::Folder(folder) => folder.file_name().and_then(|name| name.to_str()),
        _ => None,
    };
    let no_skill = |reason: Reason| InstallError::NoSkill { from: from.clone(), reason };
    let skills = find(&arrived.folder, own_name).map_err(|flaw| no_skill(flaw.to_string().into()))?;
    if skills.is_empty() {
        let fix = "name a source with a SKILL.md, or with a folder `skills` that contains some";
        return Err(no_skill(Reason::new("it has no SKILL.md", fix)));
    }
    Ok(FetchedSkills { _stage: stage, source: from, resolved: arrived.resolved, skills, links: arrived.links })
}

/// The files of a skill of the user. A link as its folder is not followed.
fn own_contents(folder: &Path) -> Result<Vec<SkillFile>, SkillFlaw> {
    let kind = fs::symlink_metadata(folder).map_err(|error| unreadable(&error))?.file_type();
    match (kind.is_dir(), kind.is_symlink()) {
        (true, _) => read_contents(folder, Place::Home),
        (_, true) => Err(SkillFlaw::Link(".".to_owned())),
        _ => Err(SkillFlaw::Special(".".to_owned())),
    }
}

/// The file that a flaw is about, for the list of edited files.
fn edited_file(flaw: &SkillFlaw) -> String {
    match flaw {
        SkillFlaw::Large { file, .. } | SkillFlaw::Deep(file) | SkillFlaw::Link(file) | SkillFlaw::Special(file) => {
            file.clone()
        }
        _ => SKILL.to_owned(),
    }
}

fn own_header(folder: &Path, name: &str) -> Result<SkillHeader, SkillFlaw> {
    let text = contents::read(&folder.join(SKILL), SKILL, MOST_TEXT).and_then(contents::text)?;
    SkillHeader::parse(&text, Some(name))
}

/// The folders in a folder, and links to some, as the plugin `local` reads them. None for a folder that is missing.
fn subfolders(folder: &Path) -> Result<Vec<String>, InstallError> {
    /// Folders of tools, besides hidden ones.
    const SKIPPED: &[&str] = &["node_modules", "__pycache__", "venv"];
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at(folder)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.at(folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
