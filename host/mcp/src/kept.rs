//! The last verified lists of servers, kept in the home folder: a session that cannot wait for a server uses its last one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::definition::ServerDefinition;
use crate::limits;
use crate::listing::Listing;
use crate::said::Said;

/// The most bytes of a file. The limits of a listing allow less.
const LARGEST: u64 = 16 << 20;
/// How long a list is used without asking the server, as long as none of its tools is called.
const FRESH: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// How long a server whose list was waited for in vain is not waited for again.
const HOPELESS: Duration = Duration::from_secs(60 * 60);
/// The version of the format.
const VERSION: u32 = 1;

/// The folder with a file for each server.
#[derive(Debug, Clone)]
pub struct KeptListings(PathBuf);

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    /// Which server it was: the list of another program is not used.
    identity: String,
    listing: Listing,
}

impl KeptListings {
    /// The folder of a home.
    pub fn in_home(home: &Path) -> Self {
        Self(home.join("mcp"))
    }

    fn file(&self, server: &str) -> PathBuf {
        self.0.join(format!("{server}.json"))
    }

    /// The last list of exactly this server.
    pub fn read(&self, definition: &ServerDefinition) -> Option<Listing> {
        let text = hermes_private_files::read_text(&self.file(&definition.name), LARGEST).ok()?;
        let content: Content = serde_json::from_str(&text).ok()?;
        let fits = content.version == VERSION
            && content.identity == definition.identity()
            && content.listing.tools.len() <= limits::TOOLS;
        fits.then_some(content.listing)
    }

    /// The same if the server gave it lately.
    pub fn read_fresh(&self, definition: &ServerDefinition) -> Option<Listing> {
        let written = std::fs::metadata(self.file(&definition.name)).and_then(|file| file.modified()).ok()?;
        let listing = self.read(definition)?;
        let holds = listing.holds_for.map_or(FRESH, |holds| FRESH.min(Duration::from_millis(holds)));
        // A clock that was set back is no reason to ask again.
        let is_fresh = written.elapsed().is_ok_and(|age| age < holds) || written.elapsed().is_err();
        is_fresh.then_some(listing)
    }

    /// Keeps a list that a server has just given.
    ///
    /// # Errors
    ///
    /// When it cannot be written. Sessions work without it.
    pub fn write(&self, definition: &ServerDefinition, listing: &Listing) -> io::Result<()> {
        if self.read(definition).as_ref() == Some(listing) {
            // It is fresh again.
            return std::fs::File::options()
                .write(true)
                .open(self.file(&definition.name))?
                .set_modified(SystemTime::now());
        }
        let content = Content { version: VERSION, identity: definition.identity(), listing: listing.clone() };
        hermes_private_files::create_folder(&self.0)?;
        let mark = self.mark(&definition.name);
        if mark.exists() {
            std::fs::remove_file(mark)?;
        }
        hermes_private_files::write_atomically(&self.file(&definition.name), &serde_json::to_vec(&content)?)
    }

    /// Keeps what a server's program wrote before it failed, and returns the file. Nothing is written if it said nothing.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_words(&self, server: &str, said: &Said) -> io::Result<Option<PathBuf>> {
        let text = said.text();
        if text.trim().is_empty() {
            return Ok(None);
        }
        hermes_private_files::create_folder(&self.0)?;
        let file = self.words(server);
        hermes_private_files::write_atomically(&file, text.as_bytes())?;
        Ok(Some(file))
    }

    /// Whether the list of exactly this server was waited for in vain at the end of a session, lately. A list that is kept ends that.
    pub(crate) fn was_waited_for(&self, definition: &ServerDefinition) -> bool {
        let mark = self.mark(&definition.name);
        let written = std::fs::metadata(&mark).and_then(|file| file.modified());
        let is_new = written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age < HOPELESS));
        is_new && hermes_private_files::read_text(&mark, LARGEST).is_ok_and(|text| text == definition.identity())
    }

    pub(crate) fn mark_waited_for(&self, definition: &ServerDefinition) -> io::Result<()> {
        hermes_private_files::create_folder(&self.0)?;
        hermes_private_files::write_atomically(&self.mark(&definition.name), definition.identity().as_bytes())
    }

    fn mark(&self, server: &str) -> PathBuf {
        self.0.join(format!("{server}.waited"))
    }

    fn words(&self, server: &str) -> PathBuf {
        self.0.join(format!("{server}.log"))
    }

    /// Forgets the list and the words of a server that was removed.
    ///
    /// # Errors
    ///
    /// When a file cannot be removed.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        for file in [self.file(server), self.words(server), self.mark(server)] {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::definition::tests::program;

    #[test]
    fn a_kept_list_belongs_to_exactly_one_server() {
        let home = tempfile::tempdir().unwrap();
        let kept = KeptListings::in_home(home.path());
        let definition = program("server", &["a"]);
        assert_eq!(kept.read(&definition), None);
        let listing = Listing { software: "fixture 1".to_owned(), ..Listing::default() };
        kept.write(&definition, &listing).unwrap();
        assert_eq!(kept.read(&definition), Some(listing));
        assert_eq!(kept.read(&program("server", &["b"])), None);
        std::fs::write(home.path().join("mcp/fixture.json"), "{").unwrap();
        assert_eq!(kept.read(&definition), None);
        kept.forget("fixture").unwrap();
        kept.forget("fixture").unwrap();
        assert!(!home.path().join("mcp/fixture.json").exists());
    }
}
