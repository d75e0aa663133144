//! What a plugin reaches of the web, made of its permissions; and its log, kept free of its secrets.

use std::sync::Arc;

use hermes_capabilities::http::{Grant, Http, Redaction, Rights, Secret, SystemResolver};
use hermes_runtime::services::{Level, Reporter};

use crate::permission::{Permissions, Right};
use crate::variables::Variables;

/// The web for one plugin. Its secrets are read here, once a session.
pub(crate) fn open(plugin: &str, permissions: &Permissions, variables: &Variables) -> Arc<Http> {
    let grants = permissions.http.iter();
    let secrets = permissions.secrets.iter().map(|secret| {
        let value = variables.get(secret.env.as_str());
        Secret::new(secret.name.clone(), secret.env.to_string(), secret.audience.clone(), value)
    });
    let rights = Rights {
        grants: grants.map(|grant| Grant { site: grant.url.clone(), methods: grant.methods.clone() }).collect(),
        secrets: secrets.collect(),
        denial: Right::Http.denial(plugin),
    };
    Arc::new(Http::new(rights, Arc::new(SystemResolver)))
}

/// A reporter that no secret passes: a plugin may have heard of one from somebody else.
pub(crate) fn discreet(reporter: Arc<dyn Reporter>, http: &Arc<Http>) -> Arc<dyn Reporter> {
    if http.redaction().is_idle() {
        return reporter;
    }
    Arc::new(Discreet { reporter, redaction: http.redaction().clone() })
}

struct Discreet {
    reporter: Arc<dyn Reporter>,
    redaction: Redaction,
}

impl Reporter for Discreet {
    fn log(&self, level: Level, text: &str) {
        self.reporter.log(level, &self.redaction.text(text));
    }

    fn progress(&self, text: &str) {
        self.reporter.progress(&self.redaction.text(text));
    }
}
