//! The packages of the contract and the versions of them that this host serves.
//!
//! Every package has a version of its own, so that a break in one kind of plugins leaves the others alone. A component
//! names the packages that it uses, with their versions, in its imports and exports.

use std::cmp::Ordering;

use semver::Version;

/// The version of the contract as a whole: of `hermes:plugin`, which contains the worlds.
pub const CONTRACT: &str = "1.0.0-rc.1";

/// The prefix of the contract's packages.
const NAMESPACE: &str = "hermes:";

/// The packages, each with the newest version that the host serves.
const SERVED: [(&str, &str); 16] = [
    ("hermes:context-engine", "1.0.0-rc.1"),
    ("hermes:embeddings", "1.0.0-rc.1"),
    ("hermes:files", "1.0.0-rc.1"),
    ("hermes:history", "1.0.0-rc.1"),
    ("hermes:hooks", "1.0.0-rc.1"),
    ("hermes:host", "1.0.0-rc.1"),
    ("hermes:http", "1.0.0-rc.1"),
    ("hermes:lifecycle", "1.0.0-rc.1"),
    ("hermes:llm", "1.0.0-rc.1"),
    ("hermes:memory", "1.0.0-rc.1"),
    ("hermes:plugin", CONTRACT),
    ("hermes:process", "1.0.0-rc.1"),
    ("hermes:skills", "1.0.0-rc.1"),
    ("hermes:storage", "1.0.0-rc.1"),
    ("hermes:tools", "1.0.0-rc.1"),
    ("hermes:types", "1.0.0-rc.1"),
];

/// The name of an interface with its package and version, such as `hermes:tools/tools@1.0.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) package: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> Name<'a> {
    /// The name of an interface of the contract; none for other names.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (path, version) = text.split_once('@')?;
        let (package, interface) = path.split_once('/')?;
        package.starts_with(NAMESPACE).then_some(Self { package, interface, version })
    }
}

/// How a version of a package fits the one that the host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The host serves all of it.
    Served,
    /// A later minor version or patch: the host serves what it knows of it.
    Later,
    /// The host does not know the package.
    Unknown,
    /// Another major version, or another pre-release, which may differ in anything.
    Incompatible {
        /// The version that the host serves.
        served: &'static str,
    },
}

/// The newest version of a package that the host serves.
pub(crate) fn served(package: &str) -> Option<&'static str> {
    SERVED.iter().find(|(name, _)| *name == package).map(|(_, version)| *version)
}

/// How a version of a package fits this host.
pub(crate) fn fit(package: &str, version: &str) -> Fit {
    match served(package) {
        None => Fit::Unknown,
        Some(served) => match compare(version, served) {
            Some(Ordering::Greater) => Fit::Later,
            Some(_) => Fit::Served,
            None => Fit::Incompatible { served },
        },
    }
}

/// Compares a version with the served one; none if they are incompatible. A pre-release is compatible only with itself:
/// wasmtime links it by its exact name.
fn compare(version: &str, served: &str) -> Option<Ordering> {
    let (version, served) = (Version::parse(version).ok()?, Version::parse(served).ok()?);
    let compatible = if version.pre.is_empty() && served.pre.is_empty() {
        version.major == served.major && (version.major > 0 || version.minor == served.minor)
    } else {
        version == served
    };
    compatible.then(|| version.cmp(&served))
}

/// Whether a version is newer than another one. A text that is not a version is not.
pub(crate) fn is_newer(version: &str, than: &str) -> bool {
    matches!((Version::parse(version), Version::parse(than)), (Ok(version), Ok(than)) if version > than)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The files below a folder, by their paths in `wit/`.
    fn files(folder: &Path, below: &str, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), &name, found);
            } else {
                found.insert(name, blake3::hash(&fs::read(entry.path()).unwrap()).to_hex().to_string());
            }
        }
    }

    #[test]
    fn the_text_of_a_frozen_version_never_changes() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut found = BTreeMap::new();
        files(&wit.join("1.0.0-rc.1"), "1.0.0-rc.1", &mut found);
        let frozen = fs::read_to_string(wit.join("FROZEN")).unwrap();
        let frozen: BTreeMap<_, _> = frozen
            .lines()
            .filter_map(|line| line.split_once("  ").filter(|_| !line.starts_with('#')))
            .map(|(digest, path)| (path.to_owned(), digest.to_owned()))
            .collect();
        let paths = found.keys().chain(frozen.keys()).collect::<BTreeSet<_>>();
        let changed: Vec<_> = paths.into_iter().filter(|path| found.get(*path) != frozen.get(*path)).collect();
        let now: String = found.iter().map(|(path, digest)| format!("{digest}  {path}\n")).collect();
        assert!(
            changed.is_empty(),
            "{changed:?} changed, and plugins were built with the text as it was: put a change into a new version, in a folder of \
             its own (wit/README.md). The text is now\n{now}"
        );
    }

    #[test]
    fn names_are_divided_into_package_interface_and_version() {
        let name = Name { package: "hermes:tools", interface: "tools", version: "1.0.0-rc.1" };
        assert_eq!(Name::parse("hermes:tools/tools@1.0.0-rc.1"), Some(name));
        for other in ["wasi:io/streams@0.2.6", "hermes:tools", "hermes:tools/tools", "tools"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn versions_are_compatible_within_a_major_version_and_pre_releases_only_with_themselves() {
        use Ordering::{Equal, Greater, Less};
        for (version, served, expected) in [
            ("1.0.0", "1.0.0", Some(Equal)),
            ("1.0.0", "1.4.2", Some(Less)),
            ("1.5.0", "1.4.2", Some(Greater)),
            ("2.0.0", "1.4.2", None),
            ("0.1.0", "1.0.0", None),
            ("0.1.3", "0.1.0", Some(Greater)),
            ("0.2.0", "0.1.0", None),
            ("1.0.0-rc.1", "1.0.0-rc.1", Some(Equal)),
            ("1.0.0-rc.2", "1.0.0-rc.1", None),
            ("1.0.0-rc.1", "1.0.0", None),
            ("1.0.0", "1.0.0-rc.1", None),
            ("one", "1.0.0", None),
        ] {
            assert_eq!(compare(version, served), expected, "{version} on a host that serves {served}");
        }
    }

    #[test]
    fn the_packages_are_those_of_the_wit_folder() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit").join(CONTRACT);
        let first = |path: &std::path::Path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        let mut written = vec![first(&folder.join("worlds.wit"))];
        for file in std::fs::read_dir(folder.join("deps")).into_iter().flatten().flatten() {
            written.push(first(&file.path()));
        }
        written.sort();
        let served: Vec<_> = SERVED.iter().map(|(name, version)| format!("package {name}@{version};")).collect();
        assert_eq!(written, served);
    }
}
