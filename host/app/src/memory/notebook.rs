//! The documents of the built-in memory. Every change is made to the current text: if another writer was faster, it is made
//! again.

use hermes_capabilities::documents::{Document, Documents, DocumentsError, Written};
use hermes_notes::{Change, Index, Notes, Operation, Pending, PendingWrite, Refusal, Target, entry_id};
use hermes_plugin_host::Selection;
use serde_json::Value;

use crate::{ModelChoice, Setup};

/// The plugin that is the built-in memory.
pub const BUILT_IN: &str = Selection::MEMORY;

/// How often a change is made again because another writer was faster.
const ATTEMPTS: u32 = 100;

/// The documents of the built-in memory, and their limits.
pub struct Notebook {
    /// MEMORY.md, USER.md and FACTS.md.
    notes: Documents,
    /// The plugin's own.
    own: Documents,
    section: Value,
    is_on: bool,
}

/// An entry of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The document.
    pub target: Target,
    /// The id that lists show.
    pub id: String,
    /// The text.
    pub text: String,
}

/// Why notes cannot be read or changed. `Display` gives the cause.
#[derive(Debug, thiserror::Error)]
pub enum NotebookError {
    /// A document cannot be read or written.
    #[error(transparent)]
    Document(#[from] DocumentsError),
    /// No note has this id or contains this text.
    #[error("no note has this id or contains {0:?}")]
    NoSuchNote(String),
    /// Several notes contain the text.
    #[error("{} notes contain {named:?}: {}", ids.len(), ids.join(", "))]
    Ambiguous {
        /// The text.
        named: String,
        /// The ids of the notes.
        ids: Vec<String>,
    },
    /// The list of writes that wait for approval is damaged.
    #[error("the list of writes that wait for approval is damaged: {source}")]
    DamagedList {
        /// The file, below the home.
        file: String,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
    /// A write is for a document that this version does not know.
    #[error("it is for `{target}`, which this version does not know")]
    UnknownTarget {
        /// The number of the write.
        write: u64,
        /// The document.
        target: String,
    },
    /// Other programs changed a document each time that it was to be changed.
    #[error("other programs changed {document} {ATTEMPTS} times in a row")]
    Contended {
        /// The document.
        document: String,
    },
    /// A rule of the format forbids the change.
    #[error("{refusal}")]
    Refused {
        /// The document.
        target: Target,
        /// Why.
        refusal: Refusal,
        /// The most characters of the document.
        limit: usize,
    },
    /// A new note looks like an instruction to a model, or hides text.
    #[error("the note looks like an instruction to a model or hides text ({}); nothing was written", .0.join(", "))]
    Suspicious(Vec<String>),
}

/// Every method fails if a document cannot be read or written.
#[allow(clippy::missing_errors_doc, reason = "stated once, above")]
impl Notebook {
    /// The documents of a home.
    pub fn open(setup: &Setup) -> Self {
        let home = setup.home.path();
        let selection = setup.selection(&ModelChoice::default());
        let names = Target::ALL.iter().map(|target| target.document().to_owned()).collect();
        Self {
            notes: Documents::new(home.join("memories"), Some(names)),
            own: Documents::new(home.join("data").join(BUILT_IN).join("documents"), None),
            section: selection.entries.get(BUILT_IN).cloned().unwrap_or_default(),
            is_on: !selection.disabled.iter().any(|name| name == BUILT_IN),
        }
    }

    /// Whether the user has not switched the built-in memory off.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The most characters of a document.
    pub fn limit(&self, target: Target) -> usize {
        let key = format!("{}_char_limit", target.name());
        let set = self.section.get(&key).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        set.unwrap_or(target.default_limit())
    }

    /// Whether writes of the model wait for approval.
    pub fn asks(&self) -> bool {
        self.section.get("write_approval").and_then(Value::as_bool).unwrap_or(false)
    }

    /// A document.
    pub fn notes(&self, target: Target) -> Result<Notes, NotebookError> {
        let document = self.notes.read(target.document())?;
        Ok(Notes::parse(&document.map(|document| document.content).unwrap_or_default()))
    }

    /// All entries, in the order of their documents.
    pub fn entries(&self) -> Result<Vec<Entry>, NotebookError> {
        let mut entries = Vec::new();
        for target in Target::ALL {
            let notes = self.notes(target)?;
            entries.extend(notes.entries().iter().map(|text| Entry {
                target,
                id: entry_id(target, text),
                text: text.clone(),
            }));
        }
        Ok(entries)
    }

    /// The entries that words find, best first.
    pub fn find(&self, words: &str) -> Result<Vec<Entry>, NotebookError> {
        let entries = self.entries()?;
        let places = Index::of(entries.iter().map(|entry| entry.text.as_str())).find(words);
        Ok(places.into_iter().filter_map(|at| entries.get(at).cloned()).collect())
    }

    /// The entry of this id, or the only one with this text.
    pub fn entry(&self, named: &str) -> Result<Entry, NotebookError> {
        let entries = self.entries()?;
        let named = named.trim();
        let exact = entries.iter().find(|entry| entry.id == named || entry.text == named);
        let found: Vec<&Entry> = match exact {
            Some(entry) => vec![entry],
            None => entries.iter().filter(|entry| !named.is_empty() && entry.text.contains(named)).collect(),
        };
        match found.as_slice() {
            [entry] => Ok((*entry).clone()),
            [] => Err(NotebookError::NoSuchNote(named.to_owned())),
            several => {
                let ids = several.iter().map(|entry| entry.id.clone()).collect();
                Err(NotebookError::Ambiguous { named: named.to_owned(), ids })
            }
        }
    }

    /// Changes a document; `None` leaves it. Returns what the change returned for the text that it was made to.
    pub(super) fn change<T>(
        &self,
        target: Target,
        mut change: impl FnMut(&Notes) -> Result<(Option<Notes>, T), NotebookError>,
    ) -> Result<T, NotebookError> {
        changed(&self.notes, target.document(), |text| {
            let (notes, value) = change(&Notes::parse(text))?;
            Ok((notes.map(|notes| notes.text()), value))
        })
    }

    /// The writes that wait for approval.
    pub fn pending(&self) -> Result<Vec<PendingWrite>, NotebookError> {
        let document = self.own.read(Pending::DOCUMENT)?;
        Ok(pending(&document.map(|document| document.content).unwrap_or_default())?.writes)
    }

    /// Queues a change for the user's approval: its number, also if the same one waits already; `None` if too many wait.
    pub(super) fn queue(
        &self,
        at: u64,
        session: &str,
        target: Target,
        change: &Change,
    ) -> Result<Option<u64>, NotebookError> {
        changed(&self.own, Pending::DOCUMENT, |text| {
            let mut waiting = pending(text)?;
            let operations = [Operation::from(change)];
            let same =
                waiting.writes.iter().find(|write| write.target == target.name() && write.operations == operations);
            if let Some(same) = same {
                return Ok((None, Some(same.id)));
            }
            let id = waiting.push(at, session, target.name(), std::slice::from_ref(change));
            Ok((id.is_some().then(|| serde_json::json!(waiting).to_string()), id))
        })
    }

    /// Takes writes from the list, whatever else was queued meanwhile.
    pub fn settle(&self, ids: &[u64]) -> Result<(), NotebookError> {
        changed(&self.own, Pending::DOCUMENT, |text| {
            let mut waiting = pending(text)?;
            let count = waiting.writes.len();
            waiting.writes.retain(|write| !ids.contains(&write.id));
            Ok(((waiting.writes.len() < count).then(|| serde_json::json!(waiting).to_string()), ()))
        })
    }
}

fn pending(text: &str) -> Result<Pending, NotebookError> {
    if text.is_empty() {
        return Ok(Pending::default());
    }
    serde_json::from_str(text).map_err(|source| {
        let file = format!("data/{BUILT_IN}/documents/{}", Pending::DOCUMENT);
        NotebookError::DamagedList { file, source }
    })
}

fn changed<T>(
    documents: &Documents,
    name: &str,
    mut change: impl FnMut(&str) -> Result<(Option<String>, T), NotebookError>,
) -> Result<T, NotebookError> {
    let mut current = documents.read(name)?;
    for _ in 0..ATTEMPTS {
        let (content, version) = match &current {
            Some(Document { content, version }) => (content.as_str(), Some(version.as_str())),
            None => ("", None),
        };
        let (new, value) = change(content)?;
        let Some(new) = new else { return Ok(value) };
        match documents.write(name, &new, version)? {
            Written::At(_) => return Ok(value),
            Written::Conflict(document) => current = Some(document),
        }
    }
    Err(NotebookError::Contended { document: name.to_owned() })
}
