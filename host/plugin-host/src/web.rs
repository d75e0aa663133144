//! A plugin's access to the web, built from its permissions, and its log, kept free of its secrets.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hermes_capabilities::http::{
    Connections, Grant, Http, ReadAgain, Redaction, Rights, Secret, SecretStore, SystemResolver, Transport,
};
use hermes_runtime::services::{Level, Reporter};

use crate::identity::Identity;
use crate::permission::{EnvironmentName, Permissions, Right};
use crate::variables::Variables;

/// The open connections of all plugins of a process.
///
/// Sessions share connections only for the same code with the same rights and the same secrets. Connections close when the
/// last session that uses them drops the plugin.
#[derive(Default)]
pub(crate) struct ConnectionPool(Mutex<Vec<(Identity, Weak<Connections>)>>);

impl ConnectionPool {
    /// Access to the web for one plugin in one session. Reads the plugin's secrets. The store has the new values of writable
    /// ones.
    pub(crate) fn open(
        &self,
        plugin: &Identity,
        permissions: &Permissions,
        variables: &Variables,
        store: &SecretStore,
    ) -> Arc<Http> {
        let rights = rights(&plugin.name, permissions, store, |_, variable| {
            (variables.now(variable.as_str()), variables.again(variable.as_str()))
        });
        Arc::new(Http::over(self.connections(plugin, rights)))
    }

    fn connections(&self, plugin: &Identity, rights: Rights) -> Arc<Connections> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, connections)| connections.strong_count() > 0);
        let of_plugin = open.iter().filter(|(owner, _)| owner == plugin);
        let shared = of_plugin.filter_map(|(_, open)| open.upgrade()).find(|open| *open.rights() == rights);
        shared.unwrap_or_else(|| {
            let connections = Arc::new(Connections::new(rights, Arc::new(SystemResolver)));
            open.push((plugin.clone(), Arc::downgrade(&connections)));
            connections
        })
    }
}

/// The rights of a plugin on the web. `value` reads a secret by its name and its variable, and says how it is read again.
fn rights(
    plugin: &str,
    permissions: &Permissions,
    store: &SecretStore,
    value: impl Fn(&str, &EnvironmentName) -> (Option<String>, Option<ReadAgain>),
) -> Rights {
    let grant = |grant: &crate::Http| {
        let (site, local) = (grant.url.site()?.clone(), grant.url.is_local());
        Some(Grant { site, methods: grant.methods.clone(), local })
    };
    let secret = |secret: &crate::Secret| {
        // An address of the configuration may be unknown or unencrypted.
        let audience = secret.audience.site().filter(|_| secret.audience.is_protected())?.clone();
        let (value, again) = value(&secret.name, &secret.env);
        let (writable, name) = (secret.writable, secret.name.clone());
        let secret = Secret::new(name, secret.env.to_string(), audience, value).reading(again);
        Some(if writable { secret.writable(store.clone()) } else { secret })
    };
    Rights {
        grants: permissions.http.iter().filter_map(grant).collect(),
        secrets: permissions.secrets.iter().filter_map(secret).collect(),
        denial: Right::Http.denial(plugin),
    }
}

/// The web of a plugin under test: its permissions and all checks of a session, with a script in place of the network and
/// a [`stand_in`] for each secret.
pub fn scripted_web(plugin: &str, permissions: &Permissions, script: Arc<dyn Transport>) -> Http {
    Http::scripted(
        rights(plugin, permissions, &SecretStore::in_memory(), |name, _| (Some(stand_in(name)), None)),
        script,
    )
}

/// The same web while the user has not set the plugin's secrets.
pub fn web_without_secrets(plugin: &str, permissions: &Permissions, script: Arc<dyn Transport>) -> Http {
    Http::scripted(rights(plugin, permissions, &SecretStore::in_memory(), |_, _| (None, None)), script)
}

/// The value of a secret in tests.
pub fn stand_in(secret: &str) -> String {
    format!("stand-in-for-{secret}")
}

/// Wraps a reporter so that it redacts the plugin's secrets, which the plugin may know from elsewhere.
pub(crate) fn redacting(reporter: Arc<dyn Reporter>, http: &Arc<Http>) -> Arc<dyn Reporter> {
    if http.redaction().is_idle() {
        return reporter;
    }
    Arc::new(RedactingReporter { reporter, redaction: http.redaction().clone() })
}

struct RedactingReporter {
    reporter: Arc<dyn Reporter>,
    redaction: Redaction,
}

impl Reporter for RedactingReporter {
    fn log(&self, level: Level, text: &str) {
        self.reporter.log(level, &self.redaction.text(text));
    }

    fn progress(&self, text: &str) {
        self.reporter.progress(&self.redaction.text(text));
    }

    fn notice(&self, text: &str) {
        self.reporter.notice(&self.redaction.text(text));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn identity(name: &str, digest: &str) -> Identity {
        Identity { name: name.to_owned(), version: "1.0.0".to_owned(), digest: digest.to_owned(), is_bundled: false }
    }

    fn rights(site: &str, key: &str) -> Rights {
        let site: hermes_capabilities::http::Site = site.parse().unwrap();
        Rights {
            grants: vec![Grant { site: site.clone(), methods: vec!["GET".to_owned()], local: false }],
            secrets: vec![Secret::new("key".to_owned(), "KEY".to_owned(), site, Some(key.to_owned()))],
            denial: "denied".to_owned(),
        }
    }

    #[test]
    fn only_the_same_code_with_the_same_rights_and_secrets_shares_connections() {
        const SITE: &str = "https://api.example.org/v1/";
        const KEY: &str = "key-0123456789";
        let pool = ConnectionPool::default();
        let first = pool.connections(&identity("mine", "d1"), rights(SITE, KEY));
        let same = pool.connections(&identity("mine", "d1"), rights(SITE, KEY));
        assert!(Arc::ptr_eq(&first, &same));
        for (what, plugin, rights) in [
            ("another plugin", identity("other", "d1"), rights(SITE, KEY)),
            ("other code", identity("mine", "d2"), rights(SITE, KEY)),
            ("another grant", identity("mine", "d1"), rights("https://api.example.org/", KEY)),
            ("another secret", identity("mine", "d1"), rights(SITE, "key-9876543210")),
        ] {
            assert!(!Arc::ptr_eq(&first, &pool.connections(&plugin, rights)), "{what}");
        }
    }

    #[test]
    fn connections_end_with_the_last_session_that_uses_them() {
        let pool = ConnectionPool::default();
        let first = pool.connections(&identity("mine", "d1"), rights("https://api.example.org/", "key-0123456789"));
        let open = Arc::downgrade(&first);
        drop(first);
        assert!(open.upgrade().is_none());
        pool.connections(&identity("other", "d1"), rights("https://api.example.org/", "key-0123456789"));
        assert_eq!(pool.0.lock().unwrap().len(), 1, "the closed entry is gone");
    }
}
