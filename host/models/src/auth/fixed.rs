//! A key that stays the same for the life of the process.

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::{Authentication, Authorized};
use crate::{ModelError, Route, Secret, providers::KeyHeader, providers::ProviderRow};

/// A fixed key, in the headers that the provider reads; or no key at all.
pub(super) struct FixedKey {
    authorized: Authorized,
    key: Option<Secret>,
    remedy: String,
}

impl FixedKey {
    pub(super) fn new(route: &Route, key: Option<&Secret>) -> Result<Self, ModelError> {
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
        let authorized = Authorized { headers, token: None };
        Ok(Self { authorized, key: key.cloned(), remedy: route.key_remedy() })
    }
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
        Ok(self.authorized.clone())
    }

    async fn refused(&self, _authorized: &Authorized) -> Result<bool, ModelError> {
        Ok(false)
    }

    fn scrub(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }

    fn remedy(&self) -> String {
        self.remedy.clone()
    }
}
