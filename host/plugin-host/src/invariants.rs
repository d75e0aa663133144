//! What holds whatever text comes in. The property tests of this crate and the targets in `fuzz/` ask the same
//! functions; each panics where a promise is broken.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::path::{Component, Path};

use serde_json::json;

use crate::lock::Lock;
use crate::manifest::{Manifest, is_name};
use crate::permission::Permissions;

/// A text as `plugin.yaml`: what it names stays beside it, what it asks for can be written down, shown and asked about
/// again as the same.
pub fn manifest(text: &str) {
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(is_name(&manifest.name), "{:?} is the name", manifest.name);
    for file in manifest.component.iter().chain(manifest.native.values()) {
        assert!(is_beside(file), "{file:?} is the file");
    }
    for (limit, value) in manifest.limits.iter() {
        let definition = limit.definition();
        assert!((definition.least..=definition.most).contains(&value), "{limit:?} of {value}");
    }
    for secret in &manifest.permissions.secrets {
        assert!(!manifest.permissions.env.contains(&secret.env), "{} is a secret and is not", secret.env);
        let near = secret.audience.host().is_some_and(|host| {
            host == "localhost" || host.parse().is_ok_and(|address| !hermes_capabilities::http::is_public(address))
        });
        assert!(secret.audience.is_encrypted() || near, "a secret would travel in the clear to {}", secret.audience);
    }
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

/// Whether joined to a folder it is a file of just this folder.
fn is_beside(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == file)
}

fn read_back<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap_or_else(|error| panic!("{text}: {error}")), value, "{text}");
}

/// Bytes as `plugins.lock`: no place that it names lies elsewhere than among the plugins, and what is read is written
/// as what is read again.
pub fn lock(bytes: &[u8]) {
    let path = Path::new("plugins.lock");
    let lock = match Lock::parse(bytes, path) {
        Ok(lock) => lock,
        Err(error) => return assert!(error.to_string().starts_with("plugins.lock ")),
    };
    for (name, entry) in &lock.plugins {
        assert!(is_name(name), "{name:?} is the name");
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

/// Two sections `permissions`: what takes effect is neither more than asked for nor more than granted, and who agrees
/// to all that goes beyond has granted all.
pub fn permissions(asked: &str, granted: &str) {
    let read = |text: &str| serde_saphyr::from_str::<Permissions>(text).ok();
    let (Some(asked), Some(granted)) = (read(asked), read(granted)) else { return };
    read_back(&asked);
    order(&asked, &granted);
    order(&granted, &asked);
}

fn order(asked: &Permissions, granted: &Permissions) {
    let effective = asked.within(granted);
    assert!(at_most(&effective, asked), "{asked:?} within {granted:?} is {effective:?}");
    assert!(at_most(&effective, granted), "{asked:?} within {granted:?} is {effective:?}");
    assert!(at_most(asked, asked), "{asked:?}");
    if at_most(asked, granted) {
        assert!(
            at_most(asked, &effective),
            "{asked:?} was granted whole by {granted:?}, and takes effect as {effective:?}"
        );
    }
    assert!(asked.within(&Permissions::default()).is_empty());
    assert_eq!(asked.widening(&Permissions::default()).is_empty(), asked.is_empty(), "{asked:?}");
    assert_eq!(asked.is_empty(), asked.lines().is_empty(), "{asked:?} is asked for in silence");
    let more = granted.clone().and(asked);
    assert!(at_most(asked, &more), "{asked:?} and {granted:?} are {more:?}");
}

/// Whether the first allows nothing that the second does not.
pub(crate) fn at_most(one: &Permissions, other: &Permissions) -> bool {
    one.widening(other).is_empty()
}

#[cfg(test)]
mod tests;
