//! Rules that hold for any input. The property tests of this crate and the targets in `fuzz/` call the same functions,
//! which panic if a rule is broken.
#![allow(clippy::unwrap_used)]

use std::path::{Component, Path};

use url::Url;

pub use crate::archive::invariants::{archive, tarball};
use crate::source::Source;

/// A source as the user writes it: `plugins.lock` keeps it without loss, and nothing in it can act as an option of git,
/// lead out of the repository, or store a password.
pub fn source(text: &str) {
    let nowhere = Path::new("/nowhere");
    let Ok(source) = Source::parse(text, nowhere) else { return };
    let shown = source.to_string();
    assert!(!shown.contains(char::is_control), "{shown:?}");
    match &source {
        Source::Folder(path) | Source::Component(path) | Source::Archive(path) => {
            return assert!(path.is_absolute() && path.exists(), "{}", path.display());
        }
        Source::Url(url) => {
            assert!(matches!(url.scheme(), "https" | "http") && url.host_str().is_some(), "{url}");
            assert!(url.password().is_none() && url.fragment().is_none(), "{url}");
        }
        Source::Git(repository) => {
            assert!(!repository.url.starts_with('-'), "{shown}");
            if let Some((scheme, _)) = repository.url.split_once("://") {
                assert!(matches!(scheme, "https" | "http" | "ssh" | "file"), "{shown}");
                let url = Url::parse(&repository.url).unwrap();
                assert!(url.password().is_none(), "{shown}");
                assert!(!url.host_str().unwrap_or_default().starts_with('-') && !url.username().starts_with('-'));
            } else {
                assert!(repository.url.contains('@'), "{shown}");
            }
            let reference = repository.reference.as_deref().unwrap_or("main");
            assert!(!reference.is_empty() && !reference.starts_with(['-', '+', '/']), "{shown}");
            assert!(!reference.contains("..") && !reference.contains(char::is_whitespace), "{shown}");
            if let Some(folder) = &repository.subfolder {
                assert!(is_within(folder), "{shown}");
            }
        }
        Source::Oci(image) => {
            let url = format!("https://{}/v2/{}/manifests/{}", image.registry, image.repository, image.reference);
            let url = Url::parse(&url).unwrap();
            let host = Url::parse(&format!("https://{}", image.registry)).unwrap();
            assert_eq!((url.host_str(), url.port()), (host.host_str(), host.port()), "{shown}");
            assert_eq!(url.path(), format!("/v2/{}/manifests/{}", image.repository, image.reference));
            assert!(url.username().is_empty() && url.password().is_none() && url.query().is_none(), "{shown}");
        }
    }
    assert_eq!(Source::parse(&shown, nowhere).ok().as_ref(), Some(&source), "{text:?} gives {shown:?}");
}

fn is_within(folder: &str) -> bool {
    Path::new(folder).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests;
