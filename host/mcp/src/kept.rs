//! The last verified lists of servers, kept in the home folder: a session that cannot wait for a server uses its last one.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_private_files::{Document, Documents};
use serde::{Deserialize, Serialize};

use crate::definition::ServerDefinition;
use crate::limits;
use crate::listing::Listing;
use crate::said::Said;

/// The most bytes of a document. The limits of a listing allow less.
const LARGEST: u64 = 16 << 20;
/// How long a list is used without asking the server, as long as none of its tools is called.
const FRESH: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// How long a server whose list was waited for in vain is not waited for again.
const HOPELESS: Duration = Duration::from_secs(60 * 60);
/// The version of the format.
const VERSION: u32 = 1;

/// What a home knows of its servers: a list of each, and what its program wrote last.
#[derive(Debug, Clone)]
pub struct KeptListings(Arc<dyn Documents>);

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    /// Which server it was: the list of another program is not used.
    identity: String,
    listing: Listing,
}

impl KeptListings {
    /// The lists of a home.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self(documents)
    }

    /// The last list of exactly this server.
    pub fn read(&self, definition: &ServerDefinition) -> Option<Listing> {
        let text = self.0.read(&listing(&definition.name)).ok()??;
        let content: Content = serde_json::from_slice(&text).ok()?;
        let fits = content.version == VERSION
            && content.identity == definition.identity()
            && content.listing.tools.len() <= limits::TOOLS;
        fits.then_some(content.listing)
    }

    /// The same if the server gave it lately.
    pub fn read_fresh(&self, definition: &ServerDefinition) -> Option<Listing> {
        let written = self.0.version(&listing(&definition.name))?.written?;
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
    pub fn write(&self, definition: &ServerDefinition, verified: &Listing) -> io::Result<()> {
        if self.read(definition).as_ref() == Some(verified) {
            // It is fresh again.
            return self.0.confirm(&listing(&definition.name));
        }
        let content = Content { version: VERSION, identity: definition.identity(), listing: verified.clone() };
        self.0.remove(&mark(&definition.name))?;
        self.0.replace(&listing(&definition.name), &serde_json::to_vec(&content)?)
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
        self.0.replace(&words(server), text.as_bytes())?;
        Ok(Some(self.0.location(&words(server))))
    }

    /// Whether the list of exactly this server was waited for in vain at the end of a session, lately. A list that is kept ends that.
    pub(crate) fn was_waited_for(&self, definition: &ServerDefinition) -> bool {
        let mark = mark(&definition.name);
        let written = self.0.version(&mark).and_then(|version| version.written);
        let is_new = written.is_some_and(|written| written.elapsed().is_ok_and(|age| age < HOPELESS));
        is_new && self.0.read(&mark).is_ok_and(|text| text.is_some_and(|text| text == definition.identity().as_bytes()))
    }

    pub(crate) fn mark_waited_for(&self, definition: &ServerDefinition) -> io::Result<()> {
        self.0.replace(&mark(&definition.name), definition.identity().as_bytes())
    }

    /// Forgets the list and the words of a server that was removed.
    ///
    /// # Errors
    ///
    /// When one of them cannot be removed.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        [listing(server), words(server), mark(server)].iter().try_for_each(|document| self.0.remove(document))
    }
}

/// The list of a server.
fn listing(server: &str) -> Document {
    document(server, "json")
}

/// What its program wrote before it failed.
fn words(server: &str) -> Document {
    document(server, "log")
}

/// Says that its list was waited for in vain.
fn mark(server: &str) -> Document {
    document(server, "waited")
}

fn document(server: &str, kind: &str) -> Document {
    Document { name: format!("mcp/{server}.{kind}"), most: LARGEST, lasting: false }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_private_files::FileDocuments;

    use super::*;
    use crate::definition::tests::program;

    #[test]
    fn a_kept_list_belongs_to_exactly_one_server() {
        let home = tempfile::tempdir().unwrap();
        let kept = KeptListings::new(FileDocuments::below(home.path()));
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
