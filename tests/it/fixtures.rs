//! What several tests share: long texts, the ledger, servers for plugins and stand-ins of memory services, an identity provider, the scripted engine, a home of Hermes Agent, a working day, the store of an older version.

pub(crate) mod backend;
pub(crate) mod honcho;
pub(crate) mod identity;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod listener;
pub(crate) mod mem0;
pub(crate) mod old_store;
#[cfg(unix)]
pub(crate) mod outside;
pub(crate) mod peer;
pub(crate) mod planner;
pub(crate) mod released;
pub(crate) mod service;
pub(crate) mod workday;

/// Grants a plugin what it requests, without the first start of `plugins grant`: as if it had worked then, and fails now.
#[track_caller]
pub(crate) fn grant_untried(home: &hermes_tests::Home, name: &str) {
    let installer = hermes_install::Installer::new(&home.path(), []);
    let catalog = hermes_plugin_host::Catalog::find(&[], &home.path().join("plugins"), &Default::default());
    let granting = installer.granting(name, false, &catalog).unwrap();
    let (permissions, limits) = (granting.manifest.permissions.clone(), granting.manifest.limits.clone());
    installer.grant(&granting, permissions, limits).unwrap();
}
