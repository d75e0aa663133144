//! Fetches a source into a folder of the stage. The content is not trusted, and none of it runs.

mod git;
mod login;
mod oci;
mod push;
mod web;

pub use login::Login;
pub use push::{Push, Tagged};

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::{Caps, unpack};
use crate::error::{At, InstallError};
use crate::project::{self, SIGNATURE};
use crate::source::Source;
use crate::statement::{STATEMENT, STATEMENT_SIGNATURE};

/// Receives the progress of a fetch.
pub trait Progress: Send + Sync {
    /// The next step begins.
    fn step(&self, what: &str);
    /// Bytes that have arrived, and the number of all bytes if it is known.
    fn bytes(&self, done: u64, all: Option<u64>);
}

/// Ignores progress.
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn bytes(&self, _: u64, _: Option<u64>) {}
}

/// How to fetch.
pub(crate) struct Fetching<'a> {
    /// Whether connections may be unencrypted.
    pub insecure: bool,
    /// Limits of what may arrive.
    pub caps: Caps,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// A fetched source.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Holds a `plugin.yaml`, a component, a built project, or skills.
    pub folder: PathBuf,
    /// The commit or the digest of an image that the source resolved to.
    pub resolved: Option<String>,
    /// The archive that contained everything, if a signature is beside it.
    pub archive: Option<PathBuf>,
    /// The links that were left out, by the paths that they would have.
    pub links: Vec<PathBuf>,
}

/// Fetches into the existing, empty folder `work`. A local folder is not copied.
pub(crate) async fn fetch(source: &Source, work: &Path, how: &Fetching<'_>) -> Result<Fetched, InstallError> {
    match source {
        Source::Folder(folder) => {
            Ok(Fetched { folder: folder.clone(), resolved: None, archive: None, links: Vec::new() })
        }
        Source::Component(file) => {
            let folder = made(work, "plugin")?;
            let beside = file.parent().unwrap_or(Path::new("/"));
            let name = file.file_name().unwrap_or_default();
            copy(file, &folder.join(name))?;
            let signature = project::with_ending(file, SIGNATURE);
            let others = ["plugin.yaml", project::KEY, STATEMENT, STATEMENT_SIGNATURE].map(|name| beside.join(name));
            for companion in [signature].into_iter().chain(others) {
                if companion.is_file() {
                    copy(&companion, &folder.join(companion.file_name().unwrap_or_default()))?;
                }
            }
            Ok(Fetched { folder, resolved: None, archive: None, links: Vec::new() })
        }
        Source::Archive(file) => {
            let archive = work.join("archive");
            copy(file, &archive)?;
            let signature = project::with_ending(file, SIGNATURE);
            if signature.is_file() {
                copy(&signature, &project::with_ending(&archive, SIGNATURE))?;
            }
            unpacked(archive, &file.display().to_string(), work, how)
        }
        Source::Url(url) => web::fetch(url, work, how).await,
        Source::Git(repository) => git::fetch(repository, work, how).await,
        Source::Oci(image) => oci::fetch(image, work, how).await,
    }
}

/// Unpacks the copy of an archive that came from `from`.
fn unpacked(archive: PathBuf, from: &str, work: &Path, how: &Fetching<'_>) -> Result<Fetched, InstallError> {
    how.progress.step("unpacking");
    let folder = made(work, "unpacked")?;
    let links = unpack(&archive, &folder, how.caps).map_err(|error| match error {
        InstallError::NotAnArchive { .. } => InstallError::NotAnArchive { from: from.to_owned() },
        other => other,
    })?;
    let signed = project::with_ending(&archive, SIGNATURE).is_file();
    let links = below(&folder, links);
    Ok(Fetched { folder: project::root_of(&folder)?, resolved: None, archive: signed.then_some(archive), links })
}

/// The paths of names in a folder.
fn below(folder: &Path, names: Vec<String>) -> Vec<PathBuf> {
    names.into_iter().map(|name| folder.join(name)).collect()
}

fn made(work: &Path, name: &str) -> Result<PathBuf, InstallError> {
    let folder = work.join(name);
    fs::create_dir(&folder).at(&folder)?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    let size = fs::metadata(from).at(from)?.len();
    if size > Caps::standard().total {
        let most = Caps::standard().total >> 20;
        return Err(InstallError::Archive(format!(
            "{} is larger than {most} MiB, the most that can be installed",
            from.display()
        )));
    }
    fs::copy(from, to).at(from)?;
    Ok(())
}
