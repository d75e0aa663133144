//! Invariants for untrusted texts. The property tests of this crate and the targets in `fuzz/` call the same functions, which
//! panic if an invariant is broken.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::path::{Component, Path};

use serde_json::json;

use crate::lock::Lock;
use crate::manifest::{Manifest, is_plugin_name};
use crate::permission::Permissions;

/// Checks a text as `plugin.yaml`: its files lie beside it, and its requests are the same after writing and reading them.
pub fn manifest(text: &str) {
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(is_plugin_name(&manifest.name), "{:?} is the name", manifest.name);
    for file in manifest.component.iter().chain(manifest.native.values()) {
        assert!(is_beside(file), "{file:?} is the file");
    }
    for (limit, value) in manifest.limits.iter() {
        let definition = limit.definition();
        assert!((definition.least..=definition.most).contains(&value), "{limit:?} of {value}");
    }
    for secret in &manifest.permissions.secrets {
        assert!(!manifest.permissions.env.contains(&secret.env), "{} is a secret and is not", secret.env);
        let Some(site) = secret.audience.site() else { continue };
        let near = site.host().is_some_and(|host| {
            host == "localhost" || host.parse().is_ok_and(|address| !hermes_capabilities::http::is_public(address))
        });
        assert!(site.is_encrypted() || near, "a secret would travel in the clear to {site}");
    }
    let is_resolved = |address: &crate::Address| address.template().is_some() && address.site().is_some();
    assert!(!manifest.permissions.addresses().any(is_resolved), "a manifest answers the user's question");
    for claim in manifest.claims_beyond(&["tools"]) {
        assert!(manifest.provides.contains(&claim));
    }
    assert!([&manifest.author, &manifest.license, &manifest.repository].iter().all(|text| text.chars().count() <= 300));
    assert!(manifest.description.chars().count() <= 500);
    read_back(&manifest.permissions);
    read_back(&manifest.limits);
    order(&manifest.permissions, &Permissions::default());
    for entry in [json!(null), json!({}), json!({"a": [1, "b", {"c": null}], "": -0.5})] {
        assert!(manifest.misfits(&entry).len() <= 8);
    }
}

/// Whether the name, joined to a folder, is a file directly in this folder.
fn is_beside(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == file)
}

fn read_back<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap_or_else(|error| panic!("{text}: {error}")), value, "{text}");
}

/// Checks bytes as `plugins.lock`: all folders lie among the plugins, and the lock is the same after writing and reading it.
pub fn lock(bytes: &[u8]) {
    let path = Path::new("plugins.lock");
    let lock = match Lock::parse(bytes, path) {
        Ok(lock) => lock,
        Err(error) => return assert!(error.to_string().starts_with("plugins.lock ")),
    };
    for (name, entry) in &lock.plugins {
        assert!(is_plugin_name(name), "{name:?} is the name");
        for pin in std::iter::once(&entry.pin).chain(&entry.previous) {
            let parts: Vec<_> = Path::new(&pin.folder).components().collect();
            assert!(
                (1..=2).contains(&parts.len()) && parts.iter().all(|part| matches!(part, Component::Normal(_))),
                "{:?} is the folder",
                pin.folder
            );
            if let Some(granted) = &pin.granted {
                order(granted, granted);
            }
        }
    }
    let text = lock.text();
    let again = Lock::parse(text.as_bytes(), path).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!((again.text(), &again), (text, &lock));
}

/// Checks two sections `permissions`: the effect is neither more than requested nor more than granted, and consent to
/// everything beyond the grant grants the whole request.
pub fn permissions(requested: &str, granted: &str) {
    let read = |text: &str| serde_saphyr::from_str::<Permissions>(text).ok();
    let (Some(requested), Some(granted)) = (read(requested), read(granted)) else { return };
    read_back(&requested);
    order(&requested, &granted);
    order(&granted, &requested);
}

fn order(requested: &Permissions, granted: &Permissions) {
    let effective = requested.within(granted);
    assert!(at_most(&effective, requested), "{requested:?} within {granted:?} is {effective:?}");
    assert!(at_most(&effective, granted), "{requested:?} within {granted:?} is {effective:?}");
    assert!(at_most(requested, requested), "{requested:?}");
    if at_most(requested, granted) {
        assert!(
            at_most(requested, &effective),
            "{requested:?} was granted whole by {granted:?}, and takes effect as {effective:?}"
        );
    }
    assert!(requested.within(&Permissions::default()).is_empty());
    assert_eq!(requested.widening(&Permissions::default()).is_empty(), requested.is_empty(), "{requested:?}");
    assert_eq!(requested.is_empty(), requested.lines().is_empty(), "{requested:?} has no line");
    let more = granted.clone().and(requested);
    assert!(at_most(requested, &more), "{requested:?} and {granted:?} are {more:?}");
}

/// Whether the first allows nothing that the second does not.
pub(crate) fn at_most(one: &Permissions, other: &Permissions) -> bool {
    one.widening(other).is_empty()
}

#[cfg(test)]
mod tests;
