//! `$HERMES_HOME/plugins.lock`: the source and digest of each installed plugin, and what the user granted it.
//!
//! The file records the user's decision. A plugin runs only from the folder in its entry, and only with the bytes there.
//! Each entry has a seal of this home. A lock that comes from elsewhere, or was changed outside of Hermes, grants nothing
//! until the user agreed to it.

pub(crate) mod error;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hermes_runtime::LimitSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{self, Digest};
use crate::permission::Permissions;
use crate::seal::{Author, Key, author};

use error::FORM;
pub use error::LockError;

/// A larger file is damaged.
pub(crate) const MOST_BYTES: u64 = 8 << 20;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    form: u32,
    /// The installed plugins by name.
    #[serde(default)]
    pub plugins: BTreeMap<String, Entry>,
}

/// An installed plugin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The current version.
    #[serde(flatten)]
    pub pin: Pin,
    /// The version that `rollback` restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Pin>,
    /// The seal, as it is in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
    #[serde(skip)]
    author: Author,
}

/// Equal entries pin and grant the same in this home, even if their seals differ.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (&self.pin, &self.previous, self.is_ours()) == (&other.pin, &other.previous, other.is_ours())
    }
}

impl Entry {
    /// An entry that the user agreed to.
    pub fn new(pin: Pin, previous: Option<Pin>) -> Self {
        Self { pin, previous, seal: None, author: Author::Home }
    }

    /// Whether Hermes wrote the entry in this home. Another one grants nothing.
    pub fn is_ours(&self) -> bool {
        self.author != Author::Foreign
    }

    /// The entry with the seal of the home of a lock, which is created if the home has none. An entry that is not ours
    /// stays without.
    pub fn sealed(&self, name: &str, lock: &Path) -> Result<Self, LockError> {
        Ok(self.sealed_by(name, &Key::open(lock)?))
    }

    fn sealed_by(&self, name: &str, key: &Key) -> Self {
        match self.author {
            Author::Foreign => self.clone(),
            Author::Home | Author::Earlier => {
                let value = serde_json::to_value(self).expect("names, digests and permissions are JSON");
                Self { seal: Some(key.seal(name, &value)), author: Author::Home, ..self.clone() }
            }
        }
    }

    /// An entry that is stored elsewhere in the home of a lock.
    pub fn read(name: &str, value: &Value, lock: &Path) -> Result<Self, LockError> {
        let key = Key::known(lock)?;
        let entry = serde_json::from_value(value.clone());
        let mut entry: Self = entry.map_err(|error| damaged(lock, &error))?;
        entry.author = author(name, value, key.as_ref());
        Ok(entry)
    }
}

/// A plugin's bytes by their digest, their source, and what was granted to exactly these bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// The argument of `install` in full: an absolute path or an address.
    pub source: String,
    /// The resolved source: the commit of a repository, the digest of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The plugin's folder, relative to `$HERMES_HOME/plugins`.
    pub folder: String,
    /// The version in the plugin's manifest.
    pub version: semver::Version,
    /// The digest of everything in the plugin's folder.
    pub digest: Digest,
    /// The public key of the publisher, which later versions must have too; none if the plugin was not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The exports that the user saw when granting. None in a lock of a version that did not show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exports: Option<Vec<String>>,
    /// The draft interfaces of the contract that it uses. The user allowed them when granting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<String>,
    /// The granted permissions; none if the plugin may not run.
    pub granted: Option<Permissions>,
    /// The limits that were raised for the plugin.
    #[serde(default, skip_serializing_if = "LimitSet::is_empty")]
    pub limits: LimitSet,
    /// Whether exactly these bytes may run as a native library, outside of the sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
    /// Whether the files were changed by hand after they came from the source, and were granted so. The plugin keeps its
    /// source and what belongs to it, but nobody signed these files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

impl Pin {
    /// Whether the user put the plugin into its folder, so that it has no other source.
    pub fn is_from(&self, folder: &Path) -> bool {
        Path::new(&self.source) == folder
    }

    /// The key that signed these files.
    pub fn signed_by(&self) -> Option<&str> {
        self.signer.as_deref().filter(|_| !self.edited)
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self { form: FORM, plugins: BTreeMap::new() }
    }
}

impl Lock {
    /// The file's path in a home.
    pub fn path(home: &Path) -> PathBuf {
        home.join("plugins.lock")
    }

    /// Reads the file. A missing file is an empty lock.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        match hermes_private_files::read_regular(path, MOST_BYTES) {
            Ok(bytes) => Self::parse_with(&bytes, path, Key::known(path)?.as_ref()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Self::default()),
                io::ErrorKind::FileTooLarge => {
                    Err(LockError::Damaged { path: path.to_owned(), why: "it is far too large".to_owned() })
                }
                _ => Err(failed(error)),
            },
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Self, LockError> {
        Self::parse_with(bytes, path, None)
    }

    fn parse_with(bytes: &[u8], path: &Path, key: Option<&Key>) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Form {
            form: u32,
        }
        let damaged = |error: serde_json::Error| damaged(path, &error);
        let Form { form } = serde_json::from_slice(bytes).map_err(damaged)?;
        if form != FORM {
            return Err(LockError::Newer { path: path.to_owned(), form });
        }
        // This one knows the position of an error.
        let _: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        // The seals are checked for the values that the entries are read from.
        let value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
        let mut lock: Self = serde_json::from_value(value.clone()).map_err(damaged)?;
        for (name, entry) in &mut lock.plugins {
            entry.author = author(name, &value["plugins"][name], key);
        }
        // Hermes joins these folders to a path, and removes them with their contents.
        for (name, entry) in &lock.plugins {
            for pin in std::iter::once(&entry.pin).chain(&entry.previous) {
                if !is_plugin_folder(&pin.folder) || !crate::manifest::is_plugin_name(name) {
                    let why = format!("`{}` is not a folder for the plugin `{name}`", pin.folder);
                    return Err(LockError::Damaged { path: path.to_owned(), why });
                }
            }
        }
        Ok(lock)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("names, digests and permissions are JSON");
        text.push('\n');
        text
    }

    /// Whether it has entries of an earlier version of Hermes, without seals.
    pub fn is_of_earlier_version(&self) -> bool {
        self.plugins.values().any(|entry| entry.author == Author::Earlier)
    }

    /// Writes the file atomically, with seals. Entries of an earlier version get a seal only if their plugins are installed,
    /// because a lock from elsewhere could name others.
    pub fn write(&self, path: &Path) -> Result<(), LockError> {
        let key = Key::open(path)?;
        let plugins = path.with_file_name("plugins");
        let is_installed =
            |pin: &Pin| digest::of_folder(&plugins.join(&pin.folder)).is_ok_and(|found| found == pin.digest);
        let sealed = |(name, entry): (&String, &Entry)| {
            let seals = entry.author != Author::Earlier || is_installed(&entry.pin);
            (name.clone(), if seals { entry.sealed_by(name, &key) } else { entry.clone() })
        };
        let sealed = Self { form: self.form, plugins: self.plugins.iter().map(sealed).collect() };
        hermes_private_files::write_whole(path, sealed.text().as_bytes())
            .map_err(|source| LockError::File { path: path.to_owned(), source })
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> LockError {
    LockError::Damaged { path: path.to_owned(), why: hermes_diagnostic::json_fault(error) }
}

/// Whether this is `name` or `kind/name`.
fn is_plugin_folder(folder: &str) -> bool {
    let plain =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0', ':']) && part != "..";
    let parts: Vec<&str> = folder.split('/').collect();
    parts.len() <= 2 && parts.iter().all(|part| plain(part))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_diagnostic::Diagnose as _;

    use super::*;

    fn pin(folder: &str) -> Pin {
        Pin {
            source: "/src".to_owned(),
            resolved: None,
            folder: folder.to_owned(),
            version: semver::Version::new(1, 2, 3),
            digest: Digest::of(b"f"),
            signer: None,
            exports: None,
            drafts: Vec::new(),
            granted: Some(Permissions { history: true, ..Permissions::default() }),
            limits: LimitSet::default(),
            native: false,
            edited: false,
        }
    }

    fn lock(folder: &str) -> Lock {
        let entry = Entry::new(pin(folder), Some(pin(folder)));
        Lock { plugins: BTreeMap::from([("mine".to_owned(), entry)]), ..Lock::default() }
    }

    #[test]
    fn a_written_lock_is_read_back() {
        let home = tempfile::tempdir().unwrap();
        let path = Lock::path(home.path());
        assert_eq!(Lock::read(&path).unwrap(), Lock::default());
        let lock = lock("tools/mine");
        lock.write(&path).unwrap();
        assert_eq!(Lock::read(&path).unwrap(), lock);
        let mut files: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["plugins.key", "plugins.lock"], "nothing else is left");
    }

    #[test]
    fn a_damaged_or_newer_file_is_refused_with_a_remedy() {
        let path = Path::new("plugins.lock");
        let newer = Lock::parse(br#"{"form": 2, "plugins": {}, "more": 1}"#, path).unwrap_err();
        assert!(matches!(newer, LockError::Newer { form: 2, .. }), "{newer}");
        for bad in ["", "{}", "[]", r#"{"form": 1, "plugins": {"mine": {}}}"#, r#"{"form": 1, "other": 1}"#] {
            let error = Lock::parse(bad.as_bytes(), path).unwrap_err();
            assert!(error.sentence().contains("grant the plugins again"), "{bad}: {error}");
        }
    }

    #[test]
    fn no_entry_names_a_folder_outside_of_the_plugins() {
        for place in ["", ".", "..", "../x", "a/../b", "/etc", "a/b/c", ".stage-1", "a/.previous", "a\\b", "c:x"] {
            assert!(Lock::parse(lock(place).text().as_bytes(), Path::new("l")).is_err(), "{place}");
        }
        assert!(Lock::parse(lock("tools/mine").text().as_bytes(), Path::new("l")).is_ok());
    }
}

/// A lock of another home, or one that somebody wrote by hand.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// A home with the folder of a plugin.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("plugins/mine");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("plugin.yaml"), "name: mine\n").unwrap();
        home
    }

    fn pin(home: &Path, granted: Value) -> Pin {
        let digest = digest::of_folder(&home.join("plugins/mine")).unwrap();
        let pin =
            json!({ "source": "/src", "folder": "mine", "version": "1.0.0", "digest": digest, "granted": granted });
        serde_json::from_value(pin).unwrap()
    }

    /// A lock with this entry, written by Hermes in a home.
    fn written(home: &Path, name: &str, granted: Value) -> Value {
        let mut lock = Lock::default();
        lock.plugins.insert(name.to_owned(), Entry::new(pin(home, granted), None));
        lock.write(&Lock::path(home)).unwrap();
        serde_json::from_slice(&fs::read(Lock::path(home)).unwrap()).unwrap()
    }

    fn put(home: &Path, lock: &Value) -> Lock {
        fs::write(Lock::path(home), lock.to_string()).unwrap();
        Lock::read(&Lock::path(home)).unwrap()
    }

    #[test]
    fn an_entry_with_any_change_is_not_ours() {
        let home = home();
        let genuine = written(home.path(), "mine", json!({}));
        assert!(put(home.path(), &genuine).plugins["mine"].is_ours());
        for (member, value) in [
            ("granted", json!({"history": true})),
            ("granted", Value::Null),
            ("limits", json!({"memory": "2GiB"})),
            ("native", json!(true)),
            ("edited", json!(true)),
            ("exports", json!(["hooks"])),
            ("drafts", json!(["hermes:x/y@1.1.0-draft"])),
            ("source", json!("/elsewhere")),
            ("resolved", json!("0123")),
            ("folder", json!("tools/mine")),
            ("version", json!("2.0.0")),
            ("digest", json!(Digest::of(b"other"))),
            ("signer", json!("RWQ")),
            ("previous", serde_json::to_value(pin(home.path(), json!({"history": true}))).unwrap()),
            ("unknown", json!(1)),
            ("seal", json!("")),
            ("seal", json!("0".repeat(64))),
        ] {
            let mut changed = genuine.clone();
            changed["plugins"]["mine"][member] = value;
            assert!(!put(home.path(), &changed).plugins["mine"].is_ours(), "{member}");
        }
        let mut bare = genuine.clone();
        assert!(bare["plugins"]["mine"].as_object_mut().unwrap().remove("seal").is_some());
        assert!(!put(home.path(), &bare).plugins["mine"].is_ours(), "without a seal");
        let renamed = json!({ "form": 1, "plugins": { "other": genuine["plugins"]["mine"] } });
        assert!(!put(home.path(), &renamed).plugins["other"].is_ours(), "under another name");
        // Formatting does not count.
        fs::write(Lock::path(home.path()), serde_json::to_string_pretty(&genuine).unwrap().replace("  ", "\t"))
            .unwrap();
        assert!(Lock::read(&Lock::path(home.path())).unwrap().plugins["mine"].is_ours());
    }

    #[test]
    fn no_write_makes_a_foreign_entry_ours() {
        let (home, other) = (home(), home());
        written(home.path(), "mine", json!({}));
        let foreign = written(other.path(), "mine", json!({"history": true}));
        let mut lock = put(home.path(), &foreign);
        assert!(!lock.plugins["mine"].is_ours());
        let kept = pin(home.path(), json!({}));
        lock.plugins.insert("kept".to_owned(), Entry::new(kept, None));
        lock.plugins.get_mut("mine").unwrap().pin.native = true;
        lock.write(&Lock::path(home.path())).unwrap();
        let again = Lock::read(&Lock::path(home.path())).unwrap();
        assert!(again.plugins["kept"].is_ours() && !again.plugins["mine"].is_ours());
        let value = serde_json::to_value(&again.plugins["kept"]).unwrap();
        assert!(Entry::read("kept", &value, &Lock::path(home.path())).unwrap().is_ours());
        assert!(!Entry::read("mine", &value, &Lock::path(home.path())).unwrap().is_ours());
        assert!(!Entry::read("kept", &value, &Lock::path(other.path())).unwrap().is_ours());
    }

    #[test]
    fn a_lock_of_an_earlier_version_is_sealed_by_the_next_write() {
        let home = home();
        let lock = json!({ "form": 1, "plugins": {
            "mine": pin(home.path(), json!({"history": true})),
            // It is not installed, so this entry may come from anywhere.
            "gone": { "source": "/src", "folder": "gone", "version": "1.0.0", "digest": Digest::of(b"x"), "granted": {} },
        } });
        let earlier = put(home.path(), &lock);
        assert!(earlier.is_of_earlier_version() && earlier.plugins.values().all(Entry::is_ours));
        earlier.write(&Lock::path(home.path())).unwrap();
        let sealed = Lock::read(&Lock::path(home.path())).unwrap();
        assert!(sealed.plugins["mine"].is_ours() && !sealed.plugins["gone"].is_ours());
        assert!(!sealed.is_of_earlier_version());
        // From now on, entries without seals are not ours.
        assert!(put(home.path(), &lock).plugins.values().all(|entry| !entry.is_ours()));
    }

    #[test]
    fn a_home_works_elsewhere_with_its_key_and_not_without() {
        let (home, copy) = (home(), home());
        let lock = written(home.path(), "mine", json!({"history": true}));
        assert!(!put(copy.path(), &lock).plugins["mine"].is_ours(), "without a key, a sealed entry is of another home");
        let key = |home: &Path| home.join("plugins.key");
        fs::copy(key(home.path()), key(copy.path())).unwrap();
        assert!(put(copy.path(), &lock).plugins["mine"].is_ours());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(key(home.path())).unwrap().permissions().mode() & 0o777, 0o600);
        }
        for damaged in [&b""[..], &[7; 31], &[7; 33]] {
            fs::write(key(copy.path()), damaged).unwrap();
            let error = Lock::read(&Lock::path(copy.path())).unwrap_err();
            assert!(error.to_string().contains("plugins.key is damaged"), "{error}");
            assert!(Lock::default().write(&Lock::path(copy.path())).is_err(), "a damaged key is not replaced");
        }
    }
}
