//! Fixed keys: one, or several that take turns. They are read anew when the server refuses one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::{Authentication, Authorized, ReadKey};
use crate::{CooldownId, Cooldowns, ModelError, Route, Secret, providers::KeyHeader, providers::ProviderRow};

/// The keys of a route, in the headers that the provider reads; or no key at all.
pub(super) struct FixedKeys {
    state: Mutex<Ring>,
    /// The keys on cooldown, which are not used for a while after the server refused them.
    cooldowns: Cooldowns,
    route: Route,
    /// Reads the keys where they were configured.
    read: Option<ReadKey>,
    remedy: String,
}

/// The keys in their order. The first that is not on cooldown is used.
struct Ring {
    /// A single entry without headers if there is no key.
    keys: Vec<Key>,
    /// All keys that were ever used, for texts that must not show them.
    known: Vec<Secret>,
}

struct Key {
    authorized: Authorized,
    /// None if there is no key.
    id: Option<CooldownId>,
}

impl Key {
    /// The rest of its cooldown.
    fn left(&self, cooldowns: &Cooldowns, now: Instant) -> Duration {
        self.id.as_ref().map(|id| cooldowns.left(id, now)).unwrap_or_default()
    }
}

impl Ring {
    /// The key of the next request: the first that is ready, else the one that will be ready first.
    fn current(&self, cooldowns: &Cooldowns, now: Instant) -> &Key {
        // A single key is used even on cooldown.
        let [key] = self.keys.as_slice() else {
            // Of several that are ready, this is the first.
            return self.keys.iter().min_by_key(|key| key.left(cooldowns, now)).expect("a ring has a key");
        };
        key
    }

    fn position(&self, authorized: &Authorized) -> Option<usize> {
        self.keys.iter().position(|key| key.authorized.headers == authorized.headers)
    }

    fn learn(&mut self, secrets: &[Secret]) {
        for secret in secrets {
            if !self.known.contains(secret) {
                self.known.push(secret.clone());
            }
        }
    }
}

impl FixedKeys {
    pub(super) fn new(
        route: &Route,
        given: Option<&Secret>,
        read: Option<ReadKey>,
        cooldowns: &Cooldowns,
    ) -> Result<Self, ModelError> {
        let secrets = given.map(Secret::parts).unwrap_or_default();
        let mut ring = Ring { keys: keys(route, &secrets)?, known: Vec::new() };
        ring.learn(&secrets);
        let (cooldowns, remedy) = (cooldowns.clone(), route.key_remedy());
        Ok(Self { state: Mutex::new(ring), cooldowns, route: route.clone(), read, remedy })
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keys(route: &Route, secrets: &[Secret]) -> Result<Vec<Key>, ModelError> {
    let address = route.address();
    let id = |secret: Option<&Secret>| secret.map(|secret| CooldownId::key(secret, &address));
    let key = |secret| Ok(Key { authorized: authorized(route, secret)?, id: id(secret) });
    if secrets.is_empty() {
        return Ok(vec![key(None)?]);
    }
    secrets.iter().map(|secret| key(Some(secret))).collect()
}

/// The headers that carry a key, as the provider of the route reads them.
fn authorized(route: &Route, key: Option<&Secret>) -> Result<Authorized, ModelError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let row = route.base_url.as_ref().and_then(ProviderRow::by_host);
        let own = row.and_then(|row| row.key_header(route.api_mode));
        let carrier = own.unwrap_or_else(|| route.api_mode.format().key_header());
        if matches!(carrier, KeyHeader::ApiKey | KeyHeader::Both) {
            headers.insert(HeaderName::from_static("x-api-key"), sensitive(key.expose())?);
        }
        if matches!(carrier, KeyHeader::Bearer | KeyHeader::Both) {
            headers.insert(AUTHORIZATION, bearer(key)?);
        }
    }
    Ok(Authorized { headers, token: None })
}

/// The value of an `Authorization` header.
pub(super) fn bearer(secret: &Secret) -> Result<HeaderValue, ModelError> {
    sensitive(&format!("Bearer {}", secret.expose()))
}

fn sensitive(text: &str) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        ModelError::unsendable("the key holds characters that no header may have; enter it again".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The shortest cooldown of a key.
const LEAST_REST: Duration = Duration::from_secs(1);

/// The cooldown of a key after an answer with this status, if the server names no wait.
pub(crate) fn cooldown(status: u16) -> Duration {
    const REFUSED: Duration = Duration::from_secs(300);
    const SPENT: Duration = Duration::from_secs(3600);
    if status == 401 { REFUSED } else { SPENT }
}

/// The cooldown of a key after an error. None if another key would fail in the same way.
fn rest_after(error: &ModelError) -> Option<Duration> {
    match error {
        ModelError::Auth { status, .. } | ModelError::Billing { status, .. } => Some(cooldown(*status)),
        ModelError::RateLimited { wait, .. } => Some(wait.unwrap_or_else(|| cooldown(429))),
        _ => None,
    }
}

#[async_trait]
impl Authentication for FixedKeys {
    async fn authorize(&self) -> Result<Authorized, ModelError> {
        Ok(self.ring().current(&self.cooldowns, Instant::now()).authorized.clone())
    }

    async fn refused(&self, authorized: &Authorized) -> Result<bool, ModelError> {
        let Some(read) = self.read.as_ref().and_then(|read| read()) else { return Ok(false) };
        let secrets = read.parts();
        let renewed = keys(&self.route, &secrets)?;
        let mut ring = self.ring();
        ring.learn(&secrets);
        ring.keys = renewed;
        // If the refused key is still configured, nothing has changed: it goes on cooldown, and another key is used.
        Ok(ring.position(authorized).is_none())
    }

    fn rest(&self, authorized: &Authorized, error: &ModelError) -> Option<String> {
        // A key that is used again at once would be refused again.
        let length = rest_after(error)?.max(LEAST_REST);
        let now = Instant::now();
        let ring = self.ring();
        let count = ring.keys.len();
        let at = ring.position(authorized).filter(|_| count > 1)?;
        self.cooldowns.begin(ring.keys[at].id.as_ref()?, length, 1, &error.to_string(), now);
        let next = ring.keys.iter().position(|key| key.left(&self.cooldowns, now).is_zero())?;
        Some(format!("key {} of {count} is on cooldown for {}, and key {} is used", at + 1, in_words(length), next + 1))
    }

    fn scrub(&self, text: &str) -> String {
        self.ring().known.iter().fold(text.to_owned(), |text, key| key.scrub(&text))
    }

    fn remedy(&self) -> String {
        self.remedy.clone()
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
