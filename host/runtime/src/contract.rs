//! The packages of the contract and the versions of them that this host serves.
//!
//! Every package has a version of its own, so that a break in one kind of plugins leaves the others alone. A component
//! names the packages that it uses, with their versions, in its imports and exports.

use std::cmp::Ordering;

use semver::Version;

/// The version of the contract as a whole: of `hermes:plugin`, which contains the worlds.
pub const CONTRACT: &str = if cfg!(feature = "draft") { "1.2.0-draft" } else { "1.1.0" };

/// The versions of a package that is as 1.0.0 released it.
const RELEASED: &[&str] = &["1.0.0"];
/// The versions of a package that 1.1 extends and that changes in the draft of `tests/draft-1.2`.
const EXTENDED_IN_DRAFT: &[&str] =
    if cfg!(feature = "draft") { &[CONTRACT, "1.1.0", "1.0.0"] } else { &["1.1.0", "1.0.0"] };
/// The versions of a package that changes in the draft only.
const RELEASED_IN_DRAFT: &[&str] = if cfg!(feature = "draft") { &[CONTRACT, "1.0.0"] } else { RELEASED };

/// The prefix of the contract's packages.
const NAMESPACE: &str = "hermes:";

/// The pre-release of versions whose interfaces may still change or disappear.
const DRAFT: &str = "draft";

/// The packages, each with the versions that the host serves, the newest one first. An older version stays in the list as
/// long as its text is part of the newest one: then renaming makes it fit (`adapter.rs`).
const SERVED: &[(&str, &[&str])] = &[
    ("hermes:context-engine", RELEASED),
    ("hermes:embeddings", RELEASED),
    ("hermes:files", RELEASED),
    ("hermes:history", RELEASED_IN_DRAFT),
    ("hermes:hooks", RELEASED_IN_DRAFT),
    ("hermes:host", RELEASED),
    ("hermes:http", RELEASED),
    ("hermes:lifecycle", RELEASED),
    ("hermes:llm", RELEASED),
    ("hermes:memory", RELEASED),
    #[cfg(feature = "draft")]
    ("hermes:notes", &[CONTRACT]),
    ("hermes:plugin", EXTENDED_IN_DRAFT),
    ("hermes:process", RELEASED),
    ("hermes:skills", RELEASED),
    ("hermes:storage", RELEASED),
    ("hermes:tools", EXTENDED_IN_DRAFT),
    ("hermes:types", RELEASED),
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

/// What the host does with a component that was built for a later version of the contract than its own, if semantic
/// versioning does not promise that the two fit, as with pre-releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaterVersions {
    /// Refuses it.
    Refused,
    /// Serves what it knows of the later version. The plugin's manifest lists this host's version in `api`.
    Accepted,
}

/// How a version of a package fits the ones that the host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The host serves all of it.
    Served,
    /// A later minor version or patch of a release: the host serves what it knows of it.
    Later,
    /// A later version of the same major version where one of the two is a pre-release, which promises nothing. The host
    /// serves what it knows of it, if the plugin says that it works with the host's version.
    Ahead {
        /// The newest version that the host serves.
        served: &'static str,
    },
    /// The host does not know the package.
    Unknown,
    /// Another major version, or a pre-release that the host does not serve any more.
    Incompatible {
        /// The newest version that the host serves.
        served: &'static str,
    },
}

/// The versions of a package that the host serves, the newest one first.
fn versions(package: &str) -> Option<&'static [&'static str]> {
    SERVED.iter().find(|(name, _)| *name == package).map(|(_, versions)| *versions)
}

/// The newest version of a package that the host serves.
pub(crate) fn served(package: &str) -> Option<&'static str> {
    versions(package)?.first().copied()
}

/// The versions of the contract as a whole that the host serves, the newest one first.
pub fn served_contracts() -> &'static [&'static str] {
    versions("hermes:plugin").unwrap_or_default()
}

/// How a version of a package fits this host.
pub(crate) fn fit(package: &str, version: &str) -> Fit {
    versions(package).map_or(Fit::Unknown, |versions| fit_to(versions, version))
}

/// How a version fits the versions that the host serves. They begin with the newest.
fn fit_to(versions: &'static [&'static str], version: &str) -> Fit {
    let served = versions.first().copied().unwrap_or_default();
    if versions.contains(&version) {
        return Fit::Served;
    }
    let (Ok(found), Ok(newest)) = (Version::parse(version), Version::parse(served)) else {
        return Fit::Incompatible { served };
    };
    let is_released = found.pre.is_empty() && newest.pre.is_empty();
    let same_major = found.major == newest.major && (found.major > 0 || found.minor == newest.minor);
    match found.cmp(&newest) {
        _ if !same_major => Fit::Incompatible { served },
        Ordering::Greater if is_released => Fit::Later,
        Ordering::Greater => Fit::Ahead { served },
        Ordering::Less | Ordering::Equal if is_released => Fit::Served,
        Ordering::Less | Ordering::Equal => Fit::Incompatible { served },
    }
}

/// The name under which the host serves an interface, if that is another one and wasmtime does not find it by itself.
/// wasmtime links releases of one major version with each other, and a pre-release only by its exact name.
pub(crate) fn adapted(name: &Name<'_>) -> Option<String> {
    let versions = versions(name.package)?;
    let newest = version_to_link(versions, name.version)?;
    Some(format!("{}/{}@{newest}", name.package, name.interface))
}

fn version_to_link(versions: &'static [&'static str], version: &str) -> Option<&'static str> {
    let newest = versions.first().copied()?;
    let is_pre_release = |version: &str| Version::parse(version).is_ok_and(|version| !version.pre.is_empty());
    let fits = matches!(fit_to(versions, version), Fit::Served | Fit::Ahead { .. });
    (fits && version != newest && (is_pre_release(version) || is_pre_release(newest))).then_some(newest)
}

/// Whether interfaces of this version are drafts.
pub(crate) fn is_draft(version: &str) -> bool {
    Version::parse(version).is_ok_and(|version| version.pre.split('.').next() == Some(DRAFT))
}

/// Identifies what the host serves: code that was adapted for another host is not used.
pub(crate) fn fingerprint() -> String {
    format!("{SERVED:?}")
}

/// The release that came of a pre-release, if the host serves it: a plugin that was built for the pre-release can be built for it.
pub(crate) fn release_of(version: &str, served: &str) -> Option<Version> {
    let (Ok(mut found), Ok(served)) = (Version::parse(version), Version::parse(served)) else { return None };
    if found.pre.is_empty() || found.major != served.major {
        return None;
    }
    found.pre = semver::Prerelease::EMPTY;
    found.build = semver::BuildMetadata::EMPTY;
    (found <= served).then_some(found)
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
        for version in FOLDERS {
            files(&wit.join(version), version, &mut found);
        }
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

    /// The folders of `wit/`, with the text of the contract as it was at one time, the oldest first.
    const FOLDERS: &[&str] = &["1.0.0", "1.1.0"];

    /// The packages of a folder: name, version, and the text without comments, versions and blanks.
    fn packages(folder: &str) -> BTreeMap<String, (String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit").join(folder);
        let files = fs::read_dir(folder.join("deps")).unwrap().map(|file| file.unwrap().path());
        let texts = files.chain([folder.join("worlds.wit")]).map(|path| fs::read_to_string(path).unwrap());
        let package = |text: String| {
            let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
            let (name, version) = lines.next().unwrap().strip_prefix("package ").unwrap().split_once('@').unwrap();
            let version = version.trim_end_matches(';').to_owned();
            let declarations: Vec<_> = lines.map(without_versions).collect();
            (name.to_owned(), (version, declarations.join("\n")))
        };
        texts.map(package).collect()
    }

    /// A line without the versions of packages, such as `@1.0.0`.
    fn without_versions(line: &str) -> String {
        let mut parts = line.split('@');
        let first = parts.next().unwrap_or_default().to_owned();
        let is_version = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
        // The point behind a version belongs to `.{`.
        parts.fold(first, |line, part| line + part.trim_start_matches(is_version))
    }

    #[test]
    fn a_later_text_has_every_declaration_of_an_earlier_one() {
        for pair in FOLDERS.windows(2) {
            let (earlier, later) = (packages(pair[0]), packages(pair[1]));
            for (name, (_, text)) in &earlier {
                let (_, now) = later.get(name).unwrap_or_else(|| panic!("{} has no {name}", pair[1]));
                for declaration in text.lines() {
                    assert!(now.lines().any(|line| line == declaration), "{name} lost {declaration:?}");
                }
            }
        }
    }

    #[test]
    fn a_released_package_has_the_same_text_in_every_folder() {
        let mut released: BTreeMap<(String, String), String> = BTreeMap::new();
        for folder in FOLDERS {
            for (name, (version, text)) in packages(folder) {
                let first = released.entry((name.clone(), version)).or_insert_with(|| text.clone());
                assert_eq!(*first, text, "{name} in {folder}");
            }
        }
    }

    #[test]
    fn every_folder_is_served_with_its_versions() {
        for folder in FOLDERS {
            for (name, (version, _)) in packages(folder) {
                assert_eq!(fit(&name, &version), Fit::Served, "{name} {version}");
            }
        }
    }

    #[test]
    fn names_are_divided_into_package_interface_and_version() {
        let name = Name { package: "hermes:tools", interface: "tools", version: "1.2.0-draft" };
        assert_eq!(Name::parse("hermes:tools/tools@1.2.0-draft"), Some(name));
        for other in ["wasi:io/streams@0.2.6", "hermes:tools", "hermes:tools/tools", "tools"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_version_fits_by_its_major_version_and_a_pre_release_by_the_list() {
        const RELEASE: &[&str] = &["1.4.2"];
        const FIRST: &[&str] = &["1.0.0", "1.0.0-rc.1"];
        const CANDIDATE: &[&str] = &["1.0.0-rc.1"];
        const DRAFT: &[&str] = &["1.1.0-draft", "1.0.0-rc.1"];
        const YOUNG: &[&str] = &["0.1.0"];
        let incompatible = |versions: &[&'static str]| Fit::Incompatible { served: versions[0] };
        let ahead = |versions: &[&'static str]| Fit::Ahead { served: versions[0] };
        for (version, served, expected) in [
            ("1.4.2", RELEASE, Fit::Served),
            ("1.0.0", RELEASE, Fit::Served),
            ("1.5.0", RELEASE, Fit::Later),
            ("1.0.0-rc.1", RELEASE, incompatible(RELEASE)),
            ("2.0.0", RELEASE, incompatible(RELEASE)),
            ("0.1.0", RELEASE, incompatible(RELEASE)),
            ("one", RELEASE, incompatible(RELEASE)),
            ("0.1.3", YOUNG, Fit::Later),
            ("0.2.0", YOUNG, incompatible(YOUNG)),
            ("1.0.0-rc.1", FIRST, Fit::Served),
            ("1.0.0-rc.2", FIRST, incompatible(FIRST)),
            ("1.1.0", FIRST, Fit::Later),
            ("1.1.0-draft", FIRST, ahead(FIRST)),
            ("1.0.0-rc.1", CANDIDATE, Fit::Served),
            ("1.0.0-alpha.1", CANDIDATE, incompatible(CANDIDATE)),
            ("1.0.0-rc.2", CANDIDATE, ahead(CANDIDATE)),
            ("1.0.0", CANDIDATE, ahead(CANDIDATE)),
            ("1.1.0-draft", CANDIDATE, ahead(CANDIDATE)),
            ("2.0.0-rc.1", CANDIDATE, incompatible(CANDIDATE)),
            ("1.0.0-rc.1", DRAFT, Fit::Served),
            ("1.0.0", DRAFT, incompatible(DRAFT)),
            ("1.1.0", DRAFT, ahead(DRAFT)),
        ] {
            assert_eq!(fit_to(served, version), expected, "{version} on a host that serves {served:?}");
        }
    }

    #[test]
    fn a_pre_release_leads_to_the_release_that_came_of_it() {
        for (version, served, expected) in [
            ("1.0.0-rc.1", "1.0.0", Some("1.0.0")),
            ("1.0.0-rc.2", "1.1.0", Some("1.0.0")),
            ("1.1.0-rc.1+mine", "1.1.0", Some("1.1.0")),
            ("1.2.0-draft", "1.1.0", None),
            ("1.2.0-alpha", "1.2.0-draft", None),
            ("0.9.0-rc.1", "1.0.0", None),
            ("1.0.0", "1.1.0", None),
            ("one", "1.1.0", None),
        ] {
            let expected = expected.map(|release| release.parse().unwrap());
            assert_eq!(release_of(version, served), expected, "{version} on a host that serves {served}");
        }
    }

    #[test]
    fn a_draft_is_a_version_with_the_pre_release_draft() {
        for (version, expected) in [
            ("1.1.0-draft", true),
            ("1.1.0-draft.2", true),
            ("1.1.0-drafts", false),
            ("1.1.0-rc.1.draft", false),
            ("1.1.0+draft", false),
            ("draft", false),
        ] {
            assert_eq!(is_draft(version), expected, "{version}");
        }
    }

    #[test]
    fn a_version_is_renamed_only_if_wasmtime_does_not_link_it() {
        const RELEASE: &[&str] = &["1.4.2", "1.0.0-rc.1"];
        const CANDIDATE: &[&str] = &["1.0.0-rc.1"];
        for (version, served, expected) in [
            ("1.4.2", RELEASE, None),
            ("1.0.0", RELEASE, None),
            ("1.5.0", RELEASE, None),
            ("1.0.0-rc.1", RELEASE, Some("1.4.2")),
            ("1.0.0-rc.2", RELEASE, None),
            ("1.5.0-draft", RELEASE, Some("1.4.2")),
            ("2.0.0", RELEASE, None),
            ("1.0.0-rc.1", CANDIDATE, None),
            ("1.0.0", CANDIDATE, Some("1.0.0-rc.1")),
        ] {
            assert_eq!(version_to_link(served, version), expected, "{version} on a host that serves {served:?}");
        }
        let name = |text| Name::parse(text).unwrap();
        assert_eq!(adapted(&name("hermes:oracle/oracle@1.0.0-rc.2")), None);
    }

    /// The table of packages in `wit/README.md`: each with the interfaces that its text has.
    #[test]
    fn the_page_lists_the_interfaces_of_every_package() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let page = fs::read_to_string(wit.join("README.md")).unwrap();
        let (_, table) = page.split_once("## Packages").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let named = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
        let rows = table.lines().filter(|line| line.starts_with("| `")).map(|line| {
            let cells: Vec<_> = line.split(" | ").collect();
            (named(cells[0]).pop_first().unwrap(), named(cells[1]))
        });
        let folder = wit.join(CONTRACT);
        let files = fs::read_dir(folder.join("deps")).unwrap().map(|file| file.unwrap().path());
        let texts = files.chain([folder.join("worlds.wit")]).map(|path| fs::read_to_string(path).unwrap());
        let written = texts.map(|text| {
            let name = text.strip_prefix("package ").unwrap().split('@').next().unwrap().to_owned();
            let interfaces = text.lines().filter_map(|line| line.strip_prefix("interface ")?.strip_suffix(" {"));
            (name, interfaces.map(str::to_owned).collect::<BTreeSet<_>>())
        });
        // `types` has no row: it is the package that the line above the table names.
        let written: BTreeMap<_, _> = written.filter(|(name, _)| name != "hermes:types").collect();
        assert_eq!(rows.collect::<BTreeMap<_, _>>(), written);
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
        let served: Vec<_> = SERVED.iter().map(|(name, versions)| format!("package {name}@{};", versions[0])).collect();
        assert_eq!(written, served);
    }
}
