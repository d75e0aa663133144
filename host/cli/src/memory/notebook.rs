//! The documents of the built-in memory. Every change is made to the current text: if another writer was faster, it is made
//! again.

use hermes_app::ModelChoice;
use hermes_app::plugins::Selection;
use hermes_capabilities::documents::{Document, Documents, DocumentsError, Written};
use hermes_notes::{Change, Notes, Operation, Pending, Refusal, Target, entry_id, thousands};
use serde_json::Value;

use crate::failure::{Failure, Kind};
use crate::launch::Setup;
use crate::text;

/// How often a change is made again because another writer was faster.
const ATTEMPTS: u32 = 100;

/// The documents of the built-in memory, and their limits.
pub(crate) struct Notebook {
    /// MEMORY.md, USER.md and FACTS.md.
    notes: Documents,
    /// The plugin's own.
    own: Documents,
    section: Value,
    pub(crate) is_on: bool,
}

/// An entry, with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) target: Target,
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Notebook {
    pub(crate) fn open(setup: &Setup) -> Self {
        let home = setup.home.path();
        let selection = setup.selection(&ModelChoice::default());
        let names = Target::ALL.iter().map(|target| target.document().to_owned()).collect();
        Self {
            notes: Documents::new(home.join("memories"), Some(names)),
            own: Documents::new(home.join("data").join(Selection::MEMORY).join("documents"), None),
            section: selection.entries.get(Selection::MEMORY).cloned().unwrap_or_default(),
            is_on: !selection.disabled.iter().any(|name| name == Selection::MEMORY),
        }
    }

    /// The most characters of a document.
    pub(crate) fn limit(&self, target: Target) -> usize {
        let key = format!("{}_char_limit", target.name());
        let set = self.section.get(&key).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        set.unwrap_or(target.default_limit())
    }

    /// Whether writes of the model wait for approval.
    pub(crate) fn asks(&self) -> bool {
        self.section.get("write_approval").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn notes(&self, target: Target) -> Result<Notes, Failure> {
        let document = self.notes.read(target.document()).map_err(failed)?;
        Ok(Notes::parse(&document.map(|document| document.content).unwrap_or_default()))
    }

    /// All entries, in the order of their documents.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Failure> {
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

    /// The entry of this id, or the only one with this text.
    pub(crate) fn entry(&self, named: &str) -> Result<Entry, Failure> {
        let entries = self.entries()?;
        let named = named.trim();
        let exact = entries.iter().find(|entry| entry.id == named || entry.text == named);
        let found: Vec<&Entry> = match exact {
            Some(entry) => vec![entry],
            None => entries.iter().filter(|entry| !named.is_empty() && entry.text.contains(named)).collect(),
        };
        match found.as_slice() {
            [entry] => Ok((*entry).clone()),
            [] => {
                let why = format!("no note has this id or contains {:?}", text::shortened(named, 60));
                Err(Failure::new(Kind::General, "there is no such note", why, "`hermes memory list` shows all notes"))
            }
            several => {
                let ids = several.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(", ");
                let why = format!("{} notes contain {:?}: {ids}", several.len(), text::shortened(named, 60));
                Err(Failure::new(Kind::General, "the note is not clear", why, "name one of them by its id"))
            }
        }
    }

    /// Changes a document; `None` leaves it. Returns what the change returned for the text that it was made to.
    pub(crate) fn change<T>(
        &self,
        target: Target,
        mut change: impl FnMut(&Notes) -> Result<(Option<Notes>, T), Failure>,
    ) -> Result<T, Failure> {
        changed(&self.notes, target.document(), |text| {
            let (notes, value) = change(&Notes::parse(text))?;
            Ok((notes.map(|notes| notes.text()), value))
        })
    }

    /// The writes that wait for approval.
    pub(crate) fn pending(&self) -> Result<Pending, Failure> {
        let document = self.own.read(Pending::DOCUMENT).map_err(failed)?;
        pending(&document.map(|document| document.content).unwrap_or_default())
    }

    /// Queues a change for the user's approval: its number, also if the same one waits already; `None` if too many wait.
    pub(crate) fn queue(
        &self,
        at: u64,
        session: &str,
        target: Target,
        change: &Change,
    ) -> Result<Option<u64>, Failure> {
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
    pub(crate) fn settle(&self, ids: &[u64]) -> Result<(), Failure> {
        changed(&self.own, Pending::DOCUMENT, |text| {
            let mut waiting = pending(text)?;
            let count = waiting.writes.len();
            waiting.writes.retain(|write| !ids.contains(&write.id));
            Ok(((waiting.writes.len() < count).then(|| serde_json::json!(waiting).to_string()), ()))
        })
    }
}

fn pending(text: &str) -> Result<Pending, Failure> {
    if text.is_empty() {
        return Ok(Pending::default());
    }
    serde_json::from_str(text).map_err(|error| {
        let why = format!("the list of writes that wait for approval is damaged: {error}");
        let fix = format!("correct or remove data/{}/documents/{}", Selection::MEMORY, Pending::DOCUMENT);
        Failure::new(Kind::General, "the pending writes cannot be read", why, fix)
    })
}

fn changed<T>(
    documents: &Documents,
    name: &str,
    mut change: impl FnMut(&str) -> Result<(Option<String>, T), Failure>,
) -> Result<T, Failure> {
    let mut current = documents.read(name).map_err(failed)?;
    for _ in 0..ATTEMPTS {
        let (content, version) = match &current {
            Some(Document { content, version }) => (content.as_str(), Some(version.as_str())),
            None => ("", None),
        };
        let (new, value) = change(content)?;
        let Some(new) = new else { return Ok(value) };
        match documents.write(name, &new, version).map_err(failed)? {
            Written::At(_) => return Ok(value),
            Written::Conflict(document) => current = Some(document),
        }
    }
    let why = format!("other programs changed {name} {ATTEMPTS} times in a row");
    Err(Failure::new(Kind::General, "the notes were not changed", why, "try again"))
}

/// An error of a document, which says what to do.
#[allow(clippy::needless_pass_by_value)]
fn failed(error: DocumentsError) -> Failure {
    let fix = "correct the file, then try again";
    Failure::new(Kind::General, "the notes cannot be read or written", error.to_string(), fix)
}

/// Why changes of a document are not possible.
pub(crate) fn refused(target: Target, refusal: &Refusal, limit: usize) -> Failure {
    let document = target.document();
    let fix = match refusal {
        Refusal::OverLimit { .. } => format!(
            "remove notes with `hermes memory forget`, run `hermes memory tidy`, or raise memory.{}_char_limit (now {})",
            target.name(),
            thousands(limit),
        ),
        _ => "`hermes memory list` shows the present notes".to_owned(),
    };
    Failure::new(Kind::General, format!("{document} was not changed"), refusal.to_string(), fix)
}
