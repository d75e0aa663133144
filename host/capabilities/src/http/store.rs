//! The values that plugins gave their writable secrets, such as renewed tokens.
//!
//! Each value is a file of its own that only the user can read, so that two processes never mix up two secrets. A stored
//! value is used only for the audience it was stored for, and only while the user's own value is the one that it replaced:
//! a user who sets another value wants that one to be used.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::site::Site;

/// A larger file is not a stored secret.
const MOST_BYTES: u64 = 32 << 10;

/// Where the values of a plugin's writable secrets are stored.
#[derive(Clone)]
pub enum SecretStore {
    /// A folder of the host, with a file for each secret.
    Folder(PathBuf),
    /// Memory, for tests and sessions without a home.
    Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>),
}

impl PartialEq for SecretStore {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(own), Self::Folder(other)) => own == other,
            (Self::Memory(own), Self::Memory(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl Eq for SecretStore {}

impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "SecretStore({})", folder.display()),
            Self::Memory(_) => f.write_str("SecretStore(memory)"),
        }
    }
}

impl SecretStore {
    /// A store that ends with the process.
    pub fn in_memory() -> Self {
        Self::Memory(Arc::default())
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        match self {
            Self::Memory(values) => lock(values).get(file).cloned(),
            Self::Folder(folder) => hermes_private_files::read_regular(&folder.join(file), MOST_BYTES).ok(),
        }
    }

    fn write(&self, file: &str, bytes: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Memory(values) => {
                lock(values).insert(file.to_owned(), bytes);
                Ok(())
            }
            Self::Folder(folder) => {
                hermes_private_files::create_folder(folder)?;
                hermes_private_files::write_whole(&folder.join(file), &bytes)
            }
        }
    }
}

/// A secret can have several audiences, each with a value of its own.
fn file_name(secret: &str, audience: &str) -> String {
    let audience = blake3::hash(audience.as_bytes()).to_hex();
    format!("{secret}-{}.json", &audience[..16])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a value was not stored.
#[derive(Debug)]
pub(super) enum Stored {
    /// The secret is not writable.
    Fixed,
    /// The value cannot be used.
    Unfit(&'static str),
    /// The system refused.
    Failed(io::Error),
}

/// The contents of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The name of the secret: file names differ only in case on some systems.
    name: String,
    audience: String,
    /// BLAKE3 of the user's value that this one replaced.
    replaced: String,
    value: String,
}

/// The replaceable value of one secret.
#[derive(Clone)]
pub(super) struct Writable {
    store: SecretStore,
    name: String,
    audience: String,
    now: Arc<Mutex<Now>>,
}

/// BLAKE3 of the user's value, and the value that replaces it.
struct Now {
    replaced: String,
    value: Option<String>,
}

fn digest(given: &str) -> String {
    blake3::hash(given.as_bytes()).to_hex().to_string()
}

impl Writable {
    /// `given` is the user's own value; empty if there is none.
    pub(super) fn new(store: SecretStore, name: &str, audience: &Site, given: &str) -> Self {
        Self {
            store,
            name: name.to_owned(),
            audience: audience.to_string(),
            now: Arc::new(Mutex::new(Now { replaced: digest(given), value: None })),
        }
    }

    pub(super) fn store(&self) -> &SecretStore {
        &self.store
    }

    pub(super) fn value(&self) -> Option<String> {
        lock(&self.now).value.clone()
    }

    /// `given` is the user's own value now.
    pub(super) fn refresh(&self, given: &str, fits: impl Fn(&str) -> bool) {
        let replaced = digest(given);
        let record = self
            .store
            .read(&file_name(&self.name, &self.audience))
            .and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        let is_ours = |record: &Record| {
            record.name == self.name && record.audience == self.audience && record.replaced == replaced
        };
        let value = record.filter(is_ours).map(|record| record.value).filter(|value| fits(value));
        *lock(&self.now) = Now { replaced, value };
    }

    pub(super) fn replace(&self, value: &str) -> io::Result<()> {
        let record = Record {
            name: self.name.clone(),
            audience: self.audience.clone(),
            replaced: lock(&self.now).replaced.clone(),
            value: value.to_owned(),
        };
        let bytes = serde_json::to_vec(&record).map_err(io::Error::other)?;
        self.store.write(&file_name(&self.name, &self.audience), bytes)?;
        lock(&self.now).value = Some(value.to_owned());
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::super::Secret;
    use super::*;

    const OLD: &str = "token-before-0123";
    const NEW: &str = "token-after-45678";

    fn secret(store: &SecretStore, audience: &str, given: Option<&str>) -> Secret {
        let secret = Secret::new("token".into(), "TOKEN".into(), audience.parse().unwrap(), given.map(str::to_owned));
        let secret = secret.writable(store.clone());
        secret.refresh();
        secret
    }

    const SITE: &str = "https://api.example.org/";

    #[test]
    fn a_new_value_lasts_until_the_user_sets_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretStore::Folder(folder.path().join("data/mine/secrets"));
        let first = secret(&store, SITE, Some(OLD));
        assert_eq!(first.value().as_deref(), Ok(OLD));
        let other_process = secret(&store, SITE, Some(OLD));
        first.replace(NEW).unwrap();
        assert_eq!((first.value().as_deref(), other_process.value().as_deref()), (Ok(NEW), Ok(OLD)));
        other_process.refresh();
        assert_eq!(other_process.value().as_deref(), Ok(NEW));
        assert_eq!(secret(&store, SITE, Some(OLD)).value().as_deref(), Ok(NEW));
        assert_eq!(secret(&store, SITE, Some("set-by-the-user")).value().as_deref(), Ok("set-by-the-user"));
    }

    #[test]
    fn a_secret_without_a_value_of_the_user_can_get_one() {
        let store = SecretStore::in_memory();
        let empty = secret(&store, SITE, None);
        assert!(empty.value().is_err());
        empty.replace(NEW).unwrap();
        assert_eq!(secret(&store, SITE, None).value().as_deref(), Ok(NEW));
    }

    #[test]
    fn a_stored_value_is_never_sent_to_another_audience() {
        let store = SecretStore::in_memory();
        secret(&store, SITE, Some(OLD)).replace(NEW).unwrap();
        assert_eq!(secret(&store, "https://evil.example/", Some(OLD)).value().as_deref(), Ok(OLD));
    }

    #[test]
    fn an_unfit_value_and_a_fixed_secret_are_refused() {
        let store = SecretStore::in_memory();
        let writable = secret(&store, SITE, Some(OLD));
        for value in ["", "short", "two\nlines of text"] {
            assert!(matches!(writable.replace(value), Err(Stored::Unfit(_))), "{value:?}");
        }
        let fixed = Secret::new("token".into(), "TOKEN".into(), SITE.parse().unwrap(), Some(OLD.into()));
        assert!(matches!(fixed.replace(NEW), Err(Stored::Fixed)));
        assert_eq!(writable.value().as_deref(), Ok(OLD));
    }

    #[test]
    fn a_damaged_file_and_the_file_of_another_secret_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretStore::Folder(folder.path().to_owned());
        secret(&store, SITE, Some(OLD)).replace(NEW).unwrap();
        let file = folder.path().join(file_name("token", SITE));
        let text = fs::read_to_string(&file).unwrap();
        for damaged in [text.replace("\"token\"", "\"TOKEN\""), text.replace(NEW, "short"), text[..20].to_owned()] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(secret(&store, SITE, Some(OLD)).value().as_deref(), Ok(OLD));
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_a_stored_value() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = SecretStore::Folder(folder.path().join("secrets"));
        secret(&store, SITE, Some(OLD)).replace(NEW).unwrap();
        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("secrets"), mode(&format!("secrets/{}", file_name("token", SITE)))), (0o700, 0o600));
        assert_eq!(fs::read_dir(folder.path().join("secrets")).unwrap().count(), 1);
    }
}
