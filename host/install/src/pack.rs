//! Packs a project into an archive that installs as it is: the files that an installation copies, and no others.
//!
//! The same files always give the same bytes, whenever and wherever they are packed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use hermes_plugin_host::artifact::{ArtifactError, Place};
use hermes_plugin_host::{Language, Manifest, toolchain};
use sha2::{Digest as _, Sha256};

use crate::error::{At, InstallError, Reason};
use crate::project::{Project, no_build};
use crate::signature::{Evidence, check};

/// The time of every file in an archive: the beginning of 1980, the first that all formats can express.
const TIME: u64 = 315_532_800;

/// A packed plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The file name of the archive, `NAME-VERSION.tar.gz`.
    pub file_name: String,
    /// The archive.
    pub archive: Vec<u8>,
    /// The SHA-256 of the archive, in hexadecimal digits.
    pub sha256: String,
    /// The public key that signed the plugin; none if it is not signed.
    pub signer: Option<String>,
    /// What the manifest says about the plugin, by the names of the OCI's annotations.
    pub about: Vec<(&'static str, String)>,
    /// The files in it, sorted, with their sizes in bytes.
    pub files: Vec<(String, u64)>,
}

/// Packs the project in a folder. Builds nothing.
///
/// # Errors
///
/// Returns an error if the project has no build, or one that is older than its sources, or if a signature in the folder does
/// not belong to these files.
pub fn pack(folder: &Path) -> Result<Package, InstallError> {
    let from = folder.display().to_string();
    let project = Project::find(folder, Place::Local, &from, None)?;
    up_to_date(folder, &project)?;
    let mut files = project.files()?;
    files.sort();
    let signer = check(&Evidence {
        manifest: &project.manifest,
        files: &files,
        component: project.component_name(),
        archive: None,
        given: None,
        pinned: None,
        unchanged: false,
    })
    .map_err(for_the_author)?;
    let archive = archive(&files).at(folder)?;
    let sha256 = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    let Manifest { name, version, description, license, author, repository, .. } = &project.manifest;
    let about = [
        ("title", name.clone()),
        ("version", version.to_string()),
        ("description", description.clone()),
        ("licenses", license.clone()),
        ("authors", author.clone()),
        ("source", repository.clone()),
    ];
    Ok(Package {
        about: about.into_iter().filter(|(_, text)| !text.is_empty()).collect(),
        signer,
        file_name: format!("{name}-{version}.tar.gz"),
        archive,
        sha256,
        files: files.into_iter().map(|(name, bytes)| (name, bytes.len() as u64)).collect(),
    })
}

/// The files of the skills in a project's folder, by their names below it.
///
/// # Errors
///
/// When they are more than an installation copies, or cannot be read.
pub fn skill_files(folder: &Path) -> Result<Vec<(String, PathBuf)>, InstallError> {
    crate::project::skills(folder)
}

/// Words an error for the author, whose own files cannot be forged: a signature that does not fit is an old or a foreign one.
fn for_the_author(error: InstallError) -> InstallError {
    match error {
        InstallError::Signature(reason) => {
            let fix = "sign these files with `hermes plugins sign`, or remove the signature from the folder";
            InstallError::Signature(Reason::new(reason.why, fix))
        }
        other => other,
    }
}

fn archive(files: &[(String, Vec<u8>)]) -> std::io::Result<Vec<u8>> {
    let packed = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(packed);
    archive.mode(tar::HeaderMode::Deterministic);
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(TIME);
        archive.append_data(&mut header, name, bytes.as_slice())?;
    }
    let mut packed = archive.into_inner()?;
    packed.flush()?;
    packed.finish()
}

/// Refuses a build that is older than a source.
pub(crate) fn up_to_date(folder: &Path, project: &Project) -> Result<(), InstallError> {
    match outdated(folder, project) {
        None => Ok(()),
        Some(error) => {
            let from = folder.display().to_string();
            Err(InstallError::NoPlugin { from, reason: no_build(&error, folder) })
        }
    }
}

/// A component beside plugin.yaml that is older than a source. The other places were checked when it was found.
fn outdated(folder: &Path, project: &Project) -> Option<ArtifactError> {
    let artifact = project.component()?;
    let language = Language::of_project(folder).filter(|language| *language != Language::Rust)?;
    let source_file = toolchain::newer_source(folder, language, artifact)?;
    Some(ArtifactError::Outdated { artifact: artifact.to_owned(), source_file })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use hermes_diagnostic::Diagnose as _;

    use super::*;
    use crate::archive::{Caps, unpack};
    use crate::sign::{SigningKey, sign};
    use crate::testing::folder;

    #[test]
    fn a_signature_over_earlier_files_is_not_packed() {
        let from = folder(&FILES);
        for (name, bytes) in sign(from.path(), None).unwrap().files {
            fs::write(from.path().join(name), bytes).unwrap();
        }
        let refused = pack(from.path()).unwrap_err().sentence();
        assert!(refused.contains("plugin.statement.minisig is missing"), "{refused}");
        let key = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let text = key.sk.to_box(None).unwrap().into_string();
        let signing = SigningKey::read::<InstallError>(&text, || panic!("there is no password")).unwrap();
        for (name, bytes) in sign(from.path(), Some(&signing)).unwrap().files {
            fs::write(from.path().join(name), bytes).unwrap();
        }
        fs::write(from.path().join("README.md"), "# Changed\n").unwrap();
        let refused = pack(from.path()).unwrap_err().sentence();
        assert!(refused.contains("README.md has other content"), "{refused}");
        assert!(refused.contains("hermes plugins sign"), "{refused}");
    }

    #[test]
    fn a_foreign_signature_is_refused_in_words_for_the_author() {
        let signing = || {
            let key = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
            let text = key.sk.to_box(None).unwrap().into_string();
            SigningKey::read::<InstallError>(&text, || panic!("there is no password")).unwrap()
        };
        let from = folder(&FILES);
        for (name, bytes) in sign(from.path(), Some(&signing())).unwrap().files {
            fs::write(from.path().join(name), bytes).unwrap();
        }
        let others = sign(folder(&FILES).path(), Some(&signing())).unwrap().files;
        let (name, bytes) = others.into_iter().find(|(name, _)| name.ends_with(".minisig")).unwrap();
        fs::write(from.path().join(name), bytes).unwrap();
        let refused = pack(from.path()).unwrap_err().sentence();
        assert!(refused.contains("hermes plugins sign") && refused.contains("remove the signature"), "{refused}");
        assert!(!refused.contains("do not trust"), "{refused}");
    }

    fn set_time(path: &Path, ago: u64) {
        let time = SystemTime::now() - Duration::from_secs(ago);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    const FILES: [(&str, &str); 6] = [
        ("plugin.yaml", "name: my-tool\nversion: 1.2.0\n"),
        ("my_tool.wasm", "\0asm"),
        ("README.md", "# Mine\n"),
        ("LICENSE", "free"),
        (".env", "KEY=1"),
        ("notes/secret.txt", "no"),
    ];

    #[test]
    fn an_archive_contains_exactly_what_an_installation_copies() {
        let from = folder(&FILES);
        let key = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let text = key.sk.to_box(None).unwrap().into_string();
        let signing = SigningKey::read::<InstallError>(&text, || panic!("there is no password")).unwrap();
        for (name, bytes) in sign(from.path(), Some(&signing)).unwrap().files {
            fs::write(from.path().join(name), bytes).unwrap();
        }
        let package = pack(from.path()).unwrap();
        assert_eq!(package.signer, Some(key.pk.to_base64()));
        assert_eq!(package.file_name, "my-tool-1.2.0.tar.gz");
        let names: Vec<&str> = package.files.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "LICENSE",
            "README.md",
            "minisign.pub",
            "my-tool.wasm",
            "plugin.statement",
            "plugin.statement.minisig",
            "plugin.yaml",
        ];
        assert_eq!(names, expected);
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(&package.file_name);
        fs::write(&path, &package.archive).unwrap();
        let unpacked = place.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        unpack(&path, &unpacked, Caps::standard()).unwrap();
        let again = Project::find(&unpacked, Place::Fetched, "there", None).unwrap();
        let mut there = again.files().unwrap();
        there.sort();
        let mut here = Project::find(from.path(), Place::Local, "here", None).unwrap().files().unwrap();
        here.sort();
        assert_eq!(there, here);
        assert_eq!(pack(&unpacked).unwrap(), package, "what was unpacked packs to the same bytes");
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let (one, other) = (folder(&FILES), folder(&FILES));
        for (name, _) in FILES {
            set_time(&other.path().join(name), 1_000_000);
        }
        let package = pack(one.path()).unwrap();
        assert_eq!(pack(other.path()).unwrap(), package);
        assert_eq!(package.sha256.len(), 64);
        fs::write(other.path().join("README.md"), "# Yours\n").unwrap();
        assert_ne!(pack(other.path()).unwrap().sha256, package.sha256);
    }

    #[test]
    fn a_build_that_is_older_than_a_source_is_refused_in_every_language() {
        for (source, fix) in [
            ("engine.py", "build.py"),
            ("src/tool.js", "npm run build"),
            ("main.go", "build script"),
            ("engine.c", "make"),
        ] {
            let project = folder(&[("plugin.yaml", "name: mine\n"), ("mine.wasm", "x"), (source, "")]);
            if source.starts_with("src/") {
                fs::write(project.path().join("package.json"), "{}").unwrap();
                set_time(&project.path().join("package.json"), 100);
            }
            set_time(&project.path().join("mine.wasm"), 50);
            let refused = pack(project.path()).unwrap_err().sentence();
            assert!(refused.contains(source) && refused.contains("older") && refused.contains(fix), "{refused}");
            set_time(&project.path().join(source), 100);
            pack(project.path()).unwrap();
        }
        let others = folder(&[("plugin.yaml", "name: mine\n"), ("mine.wasm", "x"), ("package.json", "{}")]);
        set_time(&others.path().join("mine.wasm"), 50);
        set_time(&others.path().join("package.json"), 100);
        fs::create_dir(others.path().join("node_modules")).unwrap();
        fs::write(others.path().join("node_modules/dependency.js"), "").unwrap();
        pack(others.path()).unwrap();
    }

    #[test]
    fn a_folder_without_a_build_is_refused_with_the_remedy() {
        let rust = folder(&[("plugin.yaml", "name: mine\n"), ("Cargo.toml", ""), ("src/lib.rs", "")]);
        assert!(pack(rust.path()).unwrap_err().sentence().contains("cargo build"));
        let python = folder(&[("plugin.yaml", "name: mine\n"), ("mine.py", "")]);
        let refused = pack(python.path()).unwrap_err().sentence();
        assert!(refused.contains("build.py") && !refused.contains("cargo"), "{refused}");
    }
}
