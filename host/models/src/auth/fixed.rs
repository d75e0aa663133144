//! A fixed key, which is read anew when the server refuses it.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::{Authentication, Authorized, ReadKey};
use crate::{ModelError, Route, Secret, providers::KeyHeader, providers::ProviderRow};

/// A fixed key, in the headers that the provider reads; or no key at all.
pub(super) struct FixedKey {
    state: Mutex<State>,
    route: Route,
    /// Reads the key where it was configured.
    read: Option<ReadKey>,
    remedy: String,
}

/// What requests carry now.
struct State {
    authorized: Authorized,
    /// The current key, behind former ones.
    keys: Vec<Secret>,
}

impl FixedKey {
    pub(super) fn new(route: &Route, key: Option<&Secret>, read: Option<ReadKey>) -> Result<Self, ModelError> {
        let state = State { authorized: authorized(route, key)?, keys: key.cloned().into_iter().collect() };
        Ok(Self { state: Mutex::new(state), route: route.clone(), read, remedy: route.key_remedy() })
    }
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

#[async_trait]
impl Authentication for FixedKey {
    async fn authorize(&self) -> Result<Authorized, ModelError> {
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner).authorized.clone())
    }

    async fn refused(&self, authorized: &Authorized) -> Result<bool, ModelError> {
        let Some(key) = self.read.as_ref().and_then(|read| read()) else { return Ok(false) };
        let renewed = self::authorized(&self.route, Some(&key))?;
        let differs = renewed.headers != authorized.headers;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.authorized = renewed;
        if !state.keys.contains(&key) {
            state.keys.push(key);
        }
        Ok(differs)
    }

    fn scrub(&self, text: &str) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keys.iter().fold(text.to_owned(), |text, key| key.scrub(&text))
    }

    fn remedy(&self) -> String {
        self.remedy.clone()
    }
}
