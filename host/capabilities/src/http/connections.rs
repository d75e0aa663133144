//! The connections of a plugin, together with the rights under which they were opened.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hermes_http_client::innermost;
use reqwest::{Client, Method, redirect};
use url::Url;

use super::error::HttpError;
use super::redaction::Redaction;
use super::resolver::{Checked, Lookups, Resolver};
use super::secret::Secret;
use super::site::Site;
use super::transport::Transport;

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// A granted site with its methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The site.
    pub site: Site,
    /// The granted methods in capitals; `GET` includes `HEAD`.
    pub methods: Vec<String>,
    /// Whether its name may lead into the user's own network: the user saw where it leads, and agreed.
    pub local: bool,
}

impl Grant {
    pub(super) fn admits(&self, method: &Method, url: &Url) -> bool {
        let as_get = if *method == Method::HEAD { Method::GET } else { method.clone() };
        self.methods.iter().any(|own| own == method.as_str() || own == as_get.as_str()) && self.site.admits(url)
    }
}

/// The web grant of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The granted sites. Without any, every request is refused.
    pub grants: Vec<Grant>,
    /// Secrets for its requests.
    pub secrets: Vec<Secret>,
    /// The message for a request without a grant.
    pub denial: String,
}

/// Connections that requests keep open for later requests to the same origin, for one plugin with fixed rights.
///
/// Several [`Http`](super::Http)s of the same plugin may share a value. Two plugins must not: a server may attach an
/// identity to a connection (NTLM does), and a TLS session can be resumed, so a shared connection would let one plugin use
/// the secrets of another. A value has one set of rights and never gets another.
///
/// An open connection still leads to the addresses that were checked when it was opened. Every request is checked against
/// the grants, on a kept connection as on a new one.
pub struct Connections {
    rights: Rights,
    leading: Leading,
    /// Shared with the rights: what one session replaces, all redact.
    redaction: OnceLock<Redaction>,
}

/// Where the connections lead.
enum Leading {
    Network { resolver: Arc<dyn Resolver>, client: Mutex<Option<Client>> },
    Script(Arc<dyn Transport>),
}

/// What carries a single request.
pub(super) enum Carrier {
    Network(Client),
    Script(Arc<dyn Transport>),
}

impl Connections {
    /// No connection is opened before the first request.
    pub fn new(rights: Rights, resolver: Arc<dyn Resolver>) -> Self {
        Self { rights, leading: Leading::Network { resolver, client: Mutex::default() }, redaction: OnceLock::new() }
    }

    /// A script answers in place of the network.
    pub(super) fn scripted(rights: Rights, transport: Arc<dyn Transport>) -> Self {
        Self { rights, leading: Leading::Script(transport), redaction: OnceLock::new() }
    }

    /// The rights of every request on these connections.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The redaction of the secrets.
    pub(super) fn redaction(&self) -> &Redaction {
        self.redaction.get_or_init(|| {
            self.rights.secrets.iter().for_each(Secret::refresh);
            Redaction::of(&self.rights.secrets)
        })
    }

    /// Reads the values that the user or, for writable secrets, a plugin has set meanwhile, also in other processes. Reads files.
    pub(super) fn refresh(&self) {
        for secret in self.rights.secrets.iter().filter(|secret| secret.may_change()) {
            secret.refresh();
            if let Ok(value) = secret.value() {
                self.redaction().add(&value);
            }
        }
    }

    pub(super) fn carrier(&self) -> Result<Carrier, HttpError> {
        match &self.leading {
            Leading::Network { resolver, client } => self.client(resolver, client).map(Carrier::Network),
            Leading::Script(transport) => Ok(Carrier::Script(Arc::clone(transport))),
        }
    }

    /// The names that may lead into the user's own network.
    fn local_hosts(&self) -> Vec<String> {
        let local = self.rights.grants.iter().filter(|grant| grant.local);
        local.filter_map(|grant| grant.site.host().map(str::to_owned)).collect()
    }

    fn client(&self, resolver: &Arc<dyn Resolver>, slot: &Mutex<Option<Client>>) -> Result<Client, HttpError> {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let mut builder = hermes_http_client::builder()
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT)
            .dns_resolver(Arc::new(Checked {
                resolver: Arc::clone(resolver),
                lookups: Lookups::new(),
                local: self.local_hosts(),
            }));
        if !self.rights.grants.iter().any(|grant| grant.site.is_encrypted()) {
            // Loading the system's root certificates takes longer than everything else.
            builder = builder.tls_certs_only([]);
        }
        let client = builder
            .build()
            .map_err(|error| HttpError::Network { host: "the web".to_owned(), why: innermost(&error.without_url()) })?;
        *slot = Some(client.clone());
        Ok(client)
    }
}
