//! Named texts that people can edit too, such as `MEMORY.md`: versioned, locked, written atomically. Documents other than the
//! plugin's own need the permission `documents` with their names.

use crate::Error;
use crate::imports::documents as wit;

pub use wit::{Document, WriteOutcome};

/// Number of attempts of [`update`] when other writers are faster.
const ATTEMPTS: u32 = 5;

/// The document, or `None` if it does not exist.
pub fn read(name: &str) -> Result<Option<Document>, Error> {
    wit::read(name)
}

/// Writes the document if it is still at `version`; `None` means that it must not exist yet.
pub fn write(name: &str, content: &str, version: Option<&str>) -> Result<WriteOutcome, Error> {
    wit::write(name, content, version)
}

/// Reads, changes and writes a document, and starts again if another writer was faster.
///
/// `change` receives the content (empty if there is none). It returns the new content, or `None` to leave it, and a value for
/// the caller. It can run several times.
pub fn update<T, E: From<Error>>(
    name: &str,
    change: impl FnMut(&str) -> Result<(Option<String>, T), E>,
) -> Result<T, E> {
    update_with(name, read, write, change)
}

fn update_with<T, E: From<Error>>(
    name: &str,
    read: impl Fn(&str) -> Result<Option<Document>, Error>,
    write: impl Fn(&str, &str, Option<&str>) -> Result<WriteOutcome, Error>,
    mut change: impl FnMut(&str) -> Result<(Option<String>, T), E>,
) -> Result<T, E> {
    let mut current = read(name)?;
    for _ in 0..ATTEMPTS {
        let (content, version) = match &current {
            Some(document) => (document.content.as_str(), Some(document.version.as_str())),
            None => ("", None),
        };
        let (new, value) = change(content)?;
        let Some(new) = new else { return Ok(value) };
        match write(name, &new, version)? {
            WriteOutcome::Written(_) => return Ok(value),
            WriteOutcome::Conflict(document) => current = Some(document),
        }
    }
    Err(Error::conflict(format!("{name} was changed by another writer {ATTEMPTS} times in a row; try again")).into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A document to which another writer appends just before each of the first writes.
    struct Contended {
        content: RefCell<Option<String>>,
        others: Cell<u32>,
    }

    impl Contended {
        fn append(&self, text: &str) -> Result<(), Error> {
            let read = |_: &str| Ok(self.document());
            let write = |_: &str, new: &str, version: Option<&str>| {
                if self.others.get() > 0 {
                    self.others.set(self.others.get() - 1);
                    let content = self.content.borrow().clone().unwrap_or_default() + "other;";
                    *self.content.borrow_mut() = Some(content);
                }
                let document = self.document();
                if document.as_ref().map(|document| document.version.as_str()) == version {
                    *self.content.borrow_mut() = Some(new.to_owned());
                    Ok(WriteOutcome::Written(new.to_owned()))
                } else {
                    Ok(WriteOutcome::Conflict(document.unwrap()))
                }
            };
            update_with("X.md", read, write, |content| Ok((Some(format!("{content}{text}")), ())))
        }

        fn document(&self) -> Option<Document> {
            self.content.borrow().clone().map(|content| Document { version: content.clone(), content })
        }
    }

    #[test]
    fn an_update_keeps_concurrent_changes() {
        let document = Contended { content: RefCell::new(None), others: Cell::new(2) };
        document.append("mine;").unwrap();
        assert_eq!(document.content.borrow().as_deref(), Some("other;other;mine;"));
    }

    #[test]
    fn an_update_gives_up_with_a_conflict() {
        let document = Contended { content: RefCell::new(None), others: Cell::new(99) };
        let error = document.append("mine;").unwrap_err();
        assert!(error.is(crate::ErrorKind::Conflict));
        assert!(!document.content.borrow().as_deref().unwrap_or_default().contains("mine"));
    }
}
