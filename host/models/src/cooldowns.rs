//! How long keys and models are left alone after they failed, for all processes of a home.
//!
//! The document holds no key, only a digest of one. It is a hint: without it, or if it is damaged, a key or a model is asked again
//! and refused again. A clock that is set back ends a cooldown instead of making it longer.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hermes_private_files::{Document, Documents, Version};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Credential, Route, Secret, failure::one_line};

/// The most bytes of the document.
const LARGEST: u64 = 256 << 10;
/// The most cooldowns that are kept; those that ended first go first.
const MOST: usize = 256;
/// The most characters of a cause.
const LONGEST_CAUSE: usize = 300;
/// A shorter cooldown is not stored: it ends before another process would read it.
const LEAST_KEPT: Duration = Duration::from_secs(5);
/// How long failures in a row are remembered after a cooldown, in milliseconds.
const REMEMBERED: u64 = 24 * 3600 * 1000;
/// How long to wait for another process that changes it.
const PATIENCE: Duration = Duration::from_millis(250);
/// Bytes of the digest of a key: enough to tell keys apart.
const DIGEST: usize = 9;

/// What rests: a key at an address, or a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CooldownId(String);

impl CooldownId {
    /// A key at an address.
    pub fn key(key: &Secret, address: &str) -> Self {
        Self(format!("key {} {address}", digest(key)))
    }

    /// The model of a route. With another key it is asked at once.
    pub fn model(route: &Route) -> Self {
        let keys = match &route.credential {
            Some(Credential::Key(key)) => key.parts().iter().map(digest).collect::<Vec<_>>().join("+"),
            Some(Credential::Login(name)) => format!("login:{name}"),
            None => "none".to_owned(),
        };
        Self(format!("model {keys} {} {} {}", route.address(), route.model.provider, route.model.name))
    }

    /// Whether it is about one of these keys or a model that is asked with it.
    fn has_key(&self, digests: &[String]) -> bool {
        let mut keys = self.0.split(' ').nth(1).unwrap_or_default().split('+');
        keys.any(|key| digests.iter().any(|digest| digest == key))
    }
}

/// Tells keys apart without naming them.
fn digest(key: &Secret) -> String {
    let digest = Sha256::new().chain_update("hermes rest of a key\0").chain_update(key.expose()).finalize();
    URL_SAFE_NO_PAD.encode(&digest[..DIGEST])
}

/// The cooldown of a key or a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cooldown {
    began: Instant,
    until: Instant,
    failures: u32,
    cause: String,
    /// As the document has it; none for a cooldown that only this process knows.
    kept: Option<Entry>,
}

impl Cooldown {
    /// How long ago it began.
    pub fn since(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// How long it still lasts; zero if it is over.
    pub fn left(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// How many failures in a row there were.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The last failure.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

/// A cooldown in the document. Times are Unix times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    began: u64,
    until: u64,
    failures: u32,
    cause: String,
}

impl Entry {
    /// The cooldown at this moment; none if the clock was set back to before it began, or if it is long over.
    fn cooldown(&self, wall: u64, now: Instant) -> Option<Cooldown> {
        let since = Duration::from_millis(wall.checked_sub(self.began)?);
        if self.until < self.began || self.is_forgotten(wall) {
            return None;
        }
        let left = Duration::from_millis(self.until.saturating_sub(wall));
        Some(Cooldown {
            began: now.checked_sub(since).unwrap_or(now),
            until: now.checked_add(left)?,
            failures: self.failures,
            cause: self.cause.clone(),
            kept: Some(self.clone()),
        })
    }

    fn is_forgotten(&self, wall: u64) -> bool {
        self.began > wall || self.until.saturating_add(REMEMBERED) < wall
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    // Homes of earlier builds have this name.
    #[serde(rename = "rests")]
    cooldowns: BTreeMap<CooldownId, Entry>,
}

/// The keys and models on cooldown. Clones share them, and processes with the same documents do.
#[derive(Debug, Clone)]
pub struct Cooldowns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    documents: Arc<dyn Documents>,
    document: Document,
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cooldowns: HashMap<CooldownId, Cooldown>,
    /// The document when it was last read or written.
    seen: Option<Version>,
}

impl Cooldowns {
    /// The cooldowns of a home. They are read when the first one is asked for, and again when another process changed them.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self::waiting(documents, PATIENCE)
    }

    /// The same, with another time to wait for processes that change them.
    fn waiting(documents: Arc<dyn Documents>, patience: Duration) -> Self {
        let document = Document { name: "rests.json".to_owned(), most: LARGEST, lasting: false };
        Self(Arc::new(Inner { documents, document, patience, state: Mutex::default() }))
    }

    /// Where a person finds them.
    pub fn location(&self) -> PathBuf {
        self.0.documents.location(&self.0.document)
    }

    /// The last cooldown of a key or model, which may be over.
    pub fn of(&self, id: &CooldownId, now: Instant) -> Option<Cooldown> {
        self.current(now).cooldowns.get(id).cloned()
    }

    /// How long a key or model stays on cooldown.
    pub fn left(&self, id: &CooldownId, now: Instant) -> Duration {
        self.of(id, now).map(|cooldown| cooldown.left(now)).unwrap_or_default()
    }

    /// Puts a key or model on cooldown.
    pub fn begin(&self, id: &CooldownId, length: Duration, failures: u32, cause: &str, now: Instant) {
        let cause: String = one_line(cause).chars().take(LONGEST_CAUSE).collect();
        let Some(until) = now.checked_add(length) else { return };
        let wall = wall();
        let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry { began: wall, until: wall.saturating_add(millis), failures, cause: cause.clone() };
        let mut state = self.current(now);
        let is_kept = length >= LEAST_KEPT
            && self.change(&mut state, now, |cooldowns| {
                cooldowns.insert(id.clone(), entry.clone());
            });
        let kept = is_kept.then_some(entry);
        state.cooldowns.insert(id.clone(), Cooldown { began: now, until, failures, cause, kept });
    }

    /// Ends the cooldown of a key or model, with its failures in a row.
    pub fn end(&self, id: &CooldownId) {
        self.end_all(|other| other == id);
    }

    /// Ends the cooldowns of a key, or of several with commas between them, and of the models that are asked with it. Returns
    /// whether one rested.
    pub fn end_of_key(&self, key: &Secret) -> bool {
        let digests: Vec<String> = key.parts().iter().map(digest).collect();
        self.end_all(|id| id.has_key(&digests))
    }

    /// Ends the cooldowns of the models that are asked with a login. Returns whether one was on cooldown.
    pub fn end_of_login(&self, name: &str) -> bool {
        self.end_all(|id| id.has_key(&[format!("login:{name}")]))
    }

    fn end_all(&self, ends: impl Fn(&CooldownId) -> bool) -> bool {
        let now = Instant::now();
        let mut state = self.current(now);
        let ended: Vec<CooldownId> = state.cooldowns.keys().filter(|id| ends(id)).cloned().collect();
        let (mut rested, mut is_kept) = (false, false);
        for id in &ended {
            if let Some(cooldown) = state.cooldowns.remove(id) {
                rested |= !cooldown.left(now).is_zero();
                is_kept |= cooldown.kept.is_some();
            }
        }
        if is_kept {
            self.change(&mut state, now, |cooldowns| cooldowns.retain(|id, _| !ended.contains(id)));
        }
        rested
    }

    /// The cooldowns, with what other processes have written meanwhile.
    fn current(&self, now: Instant) -> MutexGuard<'_, State> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.0.documents.version(&self.0.document);
        if seen != state.seen {
            state.seen = seen;
            if let Some(content) = self.parse(self.0.documents.read(&self.0.document)) {
                take_over(&mut state.cooldowns, &content, now);
            }
        }
        state
    }

    /// The document; none if it cannot be used.
    fn parse(&self, read: io::Result<Option<Vec<u8>>>) -> Option<Content> {
        let text = match read {
            Ok(Some(text)) => text,
            Ok(None) => return Some(Content::default()),
            Err(error) => {
                tracing::warn!(path = %self.location().display(), %error, "the cooldowns of keys and models cannot be read");
                return None;
            }
        };
        let read = serde_json::from_slice(&text);
        read.inspect_err(|error| {
            let path = self.location();
            tracing::warn!(path = %path.display(), %error, "the cooldowns of keys and models are damaged, so none of them counts");
        })
        .ok()
    }

    /// Changes the document. Returns whether the change is in it. Without it, other processes ask a key or model once more, which
    /// is worth no error.
    fn change(
        &self,
        state: &mut State,
        now: Instant,
        mut change: impl FnMut(&mut BTreeMap<CooldownId, Entry>),
    ) -> bool {
        let Inner { documents, document, patience, .. } = &*self.0;
        let mut written = Content::default();
        let changed = documents.change(document, *patience, &mut |read| {
            written = self.parse(read).unwrap_or_default();
            change(&mut written.cooldowns);
            prune(&mut written.cooldowns, wall());
            serde_json::to_vec_pretty(&written).ok()
        });
        let changed = changed.map(|version| {
            state.seen = version;
            take_over(&mut state.cooldowns, &written, now);
        });
        changed
            .inspect_err(|error| {
                let path = self.location();
                tracing::warn!(path = %path.display(), %error, "other processes do not know which keys and models are on cooldown");
            })
            .is_ok()
    }
}

/// Adopts what the document says. Cooldowns that this process has from it keep their moments, whatever the clock says now.
fn take_over(cooldowns: &mut HashMap<CooldownId, Cooldown>, content: &Content, now: Instant) {
    cooldowns.retain(|id, cooldown| cooldown.kept.is_none() || cooldown.kept.as_ref() == content.cooldowns.get(id));
    let wall = wall();
    for (id, entry) in &content.cooldowns {
        let known = cooldowns.get(id).is_some_and(|cooldown| cooldown.kept.as_ref() == Some(entry));
        if !known && let Some(cooldown) = entry.cooldown(wall, now) {
            cooldowns.insert(id.clone(), cooldown);
        }
    }
}

fn prune(cooldowns: &mut BTreeMap<CooldownId, Entry>, wall: u64) {
    cooldowns.retain(|_, entry| !entry.is_forgotten(wall));
    while cooldowns.len() > MOST {
        let first = cooldowns.iter().min_by_key(|(_, entry)| entry.until).map(|(id, _)| id.clone());
        first.and_then(|id| cooldowns.remove(&id));
    }
}

/// Milliseconds since 1970.
fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_private_files::{FileDocuments, lock_within, open_file};

    use super::*;

    /// As another process with the same home has them.
    fn reopened(file: &std::path::Path) -> Cooldowns {
        Cooldowns::new(FileDocuments::below(file.parent().unwrap()))
    }

    const HOUR: Duration = Duration::from_secs(3600);

    fn secret(text: &str) -> Secret {
        Secret::new(text).unwrap()
    }

    fn id() -> CooldownId {
        CooldownId::key(&secret("sk-0123456789abcdefgh"), "http://h/v1")
    }

    fn model(name: &str) -> CooldownId {
        let mut route = Route::offline();
        route.model.name = name.to_owned();
        CooldownId::model(&route)
    }

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("rests.json");
        (home, file)
    }

    #[test]
    fn a_rest_is_known_to_processes_that_start_later_and_to_those_that_run() {
        let (_home, file) = home();
        let (first, running) = (reopened(&file), reopened(&file));
        let now = Instant::now();
        assert_eq!(running.of(&id(), now), None);
        first.begin(&id(), HOUR, 2, "refused\nagain", now);
        for other in [running, reopened(&file)] {
            let cooldown = other.of(&id(), Instant::now()).unwrap();
            // The file counts in whole milliseconds of another clock.
            let (least, most) = (HOUR - Duration::from_secs(60), HOUR + Duration::from_secs(1));
            assert!((least..=most).contains(&cooldown.left(now)), "{cooldown:?}");
            assert_eq!((cooldown.failures(), cooldown.cause()), (2, "refused again"));
            assert!(other.left(&CooldownId::key(&secret("another"), "http://h/v1"), now).is_zero());
        }
        first.end(&id());
        assert_eq!(reopened(&file).of(&id(), now), None);
    }

    #[test]
    fn the_file_is_private_and_holds_no_key() {
        let (_home, file) = home();
        reopened(&file).begin(&id(), HOUR, 1, "no", Instant::now());
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("0123456789") && text.contains("http://h/v1"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_rest_longer() {
        let entry = Entry { began: 10_000, until: 70_000, failures: 1, cause: String::new() };
        let now = Instant::now();
        let left = |wall| entry.cooldown(wall, now).map(|cooldown| cooldown.left(now).as_millis());
        assert_eq!(left(10_000), Some(60_000));
        assert_eq!(left(40_000), Some(30_000));
        assert_eq!(left(70_000 + REMEMBERED), Some(0), "its failures count for a day");
        assert_eq!(left(70_001 + REMEMBERED), None);
        assert_eq!(left(9_999), None, "the clock was set back");
        assert_eq!(left(0), None);
        let odd = Entry { until: 5_000, ..entry };
        assert_eq!(odd.cooldown(40_000, now), None);
        let endless = Entry { began: 0, until: u64::MAX, failures: 1, cause: String::new() };
        assert!(endless.cooldown(u64::MAX, now).is_some_and(|cooldown| cooldown.left(now).is_zero()));
    }

    #[test]
    fn a_rest_that_runs_keeps_its_moment_when_the_file_changes() {
        let (_home, file) = home();
        let (cooldowns, other) = (reopened(&file), reopened(&file));
        let now = Instant::now();
        cooldowns.begin(&id(), HOUR, 1, "no", now);
        let before = cooldowns.of(&id(), now).unwrap();
        other.begin(&model("m"), HOUR, 1, "no", now);
        assert_eq!(cooldowns.of(&id(), now + HOUR / 2).unwrap(), before);
        assert!(cooldowns.of(&model("m"), now).is_some());
    }

    #[test]
    fn a_damaged_file_counts_as_none_and_the_next_rest_replaces_it() {
        for damaged in ["", "{", "[]", r#"{"rests": {"key": 5}}"#, "\u{0}\u{0}"] {
            let (_home, file) = home();
            fs::write(&file, damaged).unwrap();
            let cooldowns = reopened(&file);
            assert_eq!(cooldowns.of(&id(), Instant::now()), None);
            cooldowns.begin(&id(), HOUR, 1, "no", Instant::now());
            assert!(reopened(&file).of(&id(), Instant::now()).is_some(), "{damaged:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_rest_to_this_process() {
        let cooldowns = reopened("/nonexistent/rests.json".as_ref());
        let now = Instant::now();
        cooldowns.begin(&id(), HOUR, 1, "no", now);
        assert_eq!(cooldowns.left(&id(), now), HOUR);
        cooldowns.end(&id());
        assert!(cooldowns.left(&id(), now).is_zero());
    }

    #[test]
    fn a_file_that_another_process_keeps_locked_leaves_the_rest_to_this_one() {
        let (_home, file) = home();
        let lock = open_file(&file.with_extension("json.lock")).unwrap();
        assert!(lock_within(&lock, Duration::ZERO).unwrap());
        let cooldowns = reopened(&file);
        let now = Instant::now();
        cooldowns.begin(&id(), HOUR, 1, "no", now);
        assert_eq!((cooldowns.left(&id(), now), file.exists()), (HOUR, false));
        lock.unlock().unwrap();
        cooldowns.begin(&model("m"), HOUR, 1, "no", now);
        assert!(reopened(&file).of(&model("m"), now).is_some());
    }

    #[test]
    fn a_short_rest_is_not_written() {
        let (_home, file) = home();
        let cooldowns = reopened(&file);
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        cooldowns.begin(&id(), second, 1, "no", now);
        assert_eq!((cooldowns.left(&id(), now), file.exists()), (second, false));
    }

    #[test]
    fn another_key_or_the_same_key_set_again_or_no_file_ends_a_rest() {
        let (_home, file) = home();
        let cooldowns = reopened(&file);
        let now = Instant::now();
        cooldowns.begin(&id(), HOUR, 1, "no", now);
        assert!(!cooldowns.end_of_key(&secret("another")));
        assert!(cooldowns.end_of_key(&secret("another, sk-0123456789abcdefgh")));
        assert!(cooldowns.left(&id(), now).is_zero());
        let mut route = Route::offline();
        route.credential = Some(Credential::Key(secret("another, sk-0123456789abcdefgh")));
        cooldowns.begin(&CooldownId::model(&route), HOUR, 1, "no", now);
        assert!(cooldowns.end_of_key(&secret("another")), "a model is asked with it");
        route.credential = Some(Credential::Login("house".to_owned()));
        cooldowns.begin(&CooldownId::model(&route), HOUR, 1, "no", now);
        assert!(!cooldowns.end_of_login("hous") && cooldowns.end_of_login("house"));
        cooldowns.begin(&id(), HOUR, 1, "no", now);
        fs::remove_file(&file).unwrap();
        assert!(cooldowns.left(&id(), now).is_zero());
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let (_home, file) = home();
        let name = |number: u32| model(&number.to_string());
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let file = file.clone();
                scope.spawn(move || {
                    for number in 0..8 {
                        // As a process of its own: nothing is shared but the file. None gives up, however busy the machine is.
                        let cooldowns =
                            Cooldowns::waiting(FileDocuments::below(file.parent().unwrap()), Duration::from_secs(60));
                        cooldowns.begin(&name(writer * 8 + number), HOUR, 1, "no", Instant::now());
                    }
                });
            }
        });
        let cooldowns = reopened(&file);
        let kept = (0..64).filter(|number| !cooldowns.left(&name(*number), Instant::now()).is_zero()).count();
        assert_eq!(kept, 64);
    }

    #[test]
    fn the_file_does_not_grow_without_end() {
        let entry = |until| Entry { began: 1, until, failures: 1, cause: String::new() };
        let ids = (0..1000).map(|number: u64| (CooldownId(number.to_string()), entry(1000 + number)));
        let mut cooldowns: BTreeMap<CooldownId, Entry> = ids.collect();
        prune(&mut cooldowns, 500);
        assert_eq!(cooldowns.len(), MOST);
        assert!(cooldowns.values().all(|entry| entry.until >= 1000 + 1000 - MOST as u64));
        prune(&mut cooldowns, REMEMBERED * 2);
        assert!(cooldowns.is_empty());
    }
}
