//! The files of a folder that make up a plugin: its manifest, its code, its skills, and documents. A component cannot read its
//! own folder, so nothing else is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hermes_plugin_host::artifact::{self, ArtifactError, Place, components};
use hermes_plugin_host::{MANIFEST, Manifest, SKILLS, skills_in};

use crate::error::{At, InstallError, Reason};
use crate::skills::SKILL;
use crate::statement::{self, STATEMENT, STATEMENT_SIGNATURE};

/// The file that contains the publisher's public key.
pub(crate) const KEY: &str = "minisign.pub";
/// The signature of a component that has another name.
/// The end of the name of a signature.
pub(crate) const SIGNATURE: &str = ".minisig";
pub(crate) const PLUGIN_SIGNATURE: &str = "plugin.minisig";
/// Beginnings of the names of documents, in lower case.
const DOCUMENTS: &[&str] = &["readme", "license", "licence", "copying", "notice", "changelog"];
const MOST_DOCUMENTS: usize = 16;
/// Most bytes of a document.
const MOST_DOCUMENT: u64 = 1 << 20;
/// Most files of a plugin's skills, and their bytes.
const MOST_SKILL_FILES: usize = 1_000;
const MOST_SKILL_BYTES: u64 = 16 << 20;
/// Most bytes of a signature.
const MOST_SIGNATURE: u64 = 64 << 10;
/// Most bytes of a component or a library, and of all of them together.
const MOST_CODE: u64 = 128 << 20;
const MOST_CODE_TOGETHER: u64 = 256 << 20;

/// The files of a plugin in a folder.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) manifest: Manifest,
    manifest_text: String,
    /// The component first, then all native libraries, so that the folder is the same on every machine.
    pub(crate) code: Vec<CodeFile>,
    /// The signed statement and its signature, by their names.
    statement: Vec<(String, PathBuf)>,
    documents: Vec<PathBuf>,
    /// The files of its skills, by their names below the plugin's folder.
    skills: Vec<(String, PathBuf)>,
}

/// A file with code.
#[derive(Debug)]
pub(crate) struct CodeFile {
    path: PathBuf,
    /// Its name after the installation.
    pub(crate) name: String,
    /// Its signatures of the old kind, by their names after the installation.
    signatures: Vec<(String, PathBuf)>,
}

impl Project {
    /// Reads a folder. A component without a manifest gets one with the given name, else with the name of its file.
    pub(crate) fn find(folder: &Path, place: Place, from: &str, name: Option<&str>) -> Result<Self, InstallError> {
        let no_plugin = |reason: Reason| InstallError::NoPlugin { from: from.to_owned(), reason };
        let path = folder.join(MANIFEST);
        let text = match read_small(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                manifest_for_lone_component(folder, name).map_err(no_plugin)?
            }
            Err(source) => return Err(InstallError::File { path, source }),
        };
        let manifest =
            Manifest::parse(&text).map_err(|source| InstallError::Manifest { from: from.to_owned(), source })?;
        let mut code = Vec::new();
        match artifact::find_component(folder, Some(&manifest), place) {
            Ok(path) => {
                let name = manifest.component.clone().unwrap_or_else(|| format!("{}.wasm", manifest.name));
                let signatures = [
                    (format!("{name}{SIGNATURE}"), with_ending(&path, SIGNATURE)),
                    (PLUGIN_SIGNATURE.to_owned(), folder.join(PLUGIN_SIGNATURE)),
                ];
                code.push(CodeFile { path, name, signatures: existing(signatures)? });
            }
            Err(_) if manifest.component.is_none() && !manifest.native.is_empty() => {}
            Err(ArtifactError::NoComponent) if !skills_in(folder).is_empty() => {}
            Err(error) => return Err(no_plugin(no_build(&error, folder))),
        }
        let libraries: BTreeSet<&String> = manifest.native.values().collect();
        for name in libraries {
            let library = artifact::find_library(folder, name, place);
            if let Some(path) = library.map_err(|error| no_plugin(no_build(&error, folder)))? {
                let signatures = existing([(format!("{name}{SIGNATURE}"), with_ending(&path, SIGNATURE))])?;
                code.push(CodeFile { path, name: name.clone(), signatures });
            }
        }
        if code.is_empty() && skills_in(folder).is_empty() {
            let named: Vec<&str> = manifest.native.values().map(String::as_str).collect();
            let why = format!("none of the native libraries in plugin.yaml ({}) exists", named.join(", "));
            return Err(no_plugin(Reason::new(why, "build them with `cargo build --release --features native`")));
        }
        if let Some(why) = unfit(&code)? {
            return Err(no_plugin(Reason::new(why, "put a smaller build, which is no link, in its place")));
        }
        Ok(Self {
            manifest,
            manifest_text: text,
            code,
            statement: existing([STATEMENT, STATEMENT_SIGNATURE].map(|name| (name.to_owned(), folder.join(name))))?,
            documents: documents(folder).at(folder)?,
            skills: skills(folder)?,
        })
    }

    /// The component, if the plugin has one.
    pub(crate) fn component(&self) -> Option<&Path> {
        let is_component = |file: &&CodeFile| file.name.ends_with(".wasm");
        self.code.iter().find(is_component).map(|file| file.path.as_path())
    }

    /// The name of the component after the installation, if the plugin has one.
    pub(crate) fn component_name(&self) -> Option<&str> {
        self.code.iter().map(|file| file.name.as_str()).find(|name| name.ends_with(".wasm"))
    }

    /// The files of the plugin, by name.
    pub(crate) fn files(&self) -> Result<Vec<(String, Vec<u8>)>, InstallError> {
        let mut files = vec![(MANIFEST.to_owned(), self.manifest_text.clone().into_bytes())];
        for CodeFile { path, name, signatures } in &self.code {
            files.push((name.clone(), read(path, MOST_CODE)?));
            for (name, path) in signatures {
                files.push((name.clone(), read(path, MOST_SIGNATURE)?));
            }
        }
        for (name, path) in &self.statement {
            files.push((name.clone(), read(path, statement::MOST_BYTES.max(MOST_SIGNATURE))?));
        }
        for document in &self.documents {
            let name = document.file_name().unwrap_or_default().to_string_lossy();
            if files.iter().all(|(known, _)| *known != name) {
                files.push((name.into_owned(), read(document, MOST_DOCUMENT)?));
            }
        }
        for (name, path) in &self.skills {
            files.push((name.clone(), read(path, MOST_SKILL_BYTES)?));
        }
        Ok(files)
    }

    /// Copies the files of the plugin into an empty folder, and syncs them. Returns exactly what was written.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<Vec<(String, Vec<u8>)>, InstallError> {
        let files = self.files()?;
        for (name, bytes) in &files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).at(parent)?;
            }
            let mut file = fs::File::create_new(&path).at(&path)?;
            std::io::Write::write_all(&mut file, bytes).and_then(|()| file.sync_all()).at(&path)?;
        }
        hermes_private_files::sync_folder(folder).at(folder)?;
        Ok(files)
    }
}

/// The signatures and statements among these that exist. One that is too large is an error: without it, a signed plugin would
/// pass for an unsigned one.
fn existing<const N: usize>(files: [(String, PathBuf); N]) -> Result<Vec<(String, PathBuf)>, InstallError> {
    let mut found = Vec::new();
    for (name, path) in files.into_iter().filter(|(_, path)| path.is_file()) {
        if fs::symlink_metadata(&path).at(&path)?.is_symlink() {
            let reason = Reason::new(format!("{name} is a link"), "put the file itself in its place");
            return Err(InstallError::Signature(reason));
        }
        let most = if name == STATEMENT { statement::MOST_BYTES } else { MOST_SIGNATURE };
        if fs::metadata(&path).at(&path)?.len() > most {
            let why = format!("{name} is larger than {} KiB", most >> 10);
            return Err(InstallError::Signature(Reason::new(why, "get the plugin from its publisher again")));
        }
        found.push((name, path));
    }
    Ok(found)
}

/// The files of the plugin's skills. Hidden files and links are left out.
pub(crate) fn skills(folder: &Path) -> Result<Vec<(String, PathBuf)>, InstallError> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let root = folder.join(SKILLS);
    let is_link = fs::symlink_metadata(&root).is_ok_and(|found| found.is_symlink());
    let mut folders = match is_link || skills_in(folder).is_empty() {
        true => Vec::new(),
        false => vec![(SKILLS.to_owned(), root)],
    };
    while let Some((prefix, folder)) = folders.pop() {
        for entry in fs::read_dir(&folder).at(&folder)? {
            let entry = entry.at(&folder)?;
            let path = entry.path();
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            // This is the type of the entry itself: links are not followed.
            let kind = entry.file_type().at(&path)?;
            if name.starts_with('.') {
                continue;
            }
            let name = format!("{prefix}/{name}");
            if kind.is_dir() {
                folders.push((name, path));
            } else if kind.is_file() {
                bytes += entry.metadata().at(&path)?.len();
                found.push((name, path));
            }
            if found.len() > MOST_SKILL_FILES || bytes > MOST_SKILL_BYTES {
                let why = format!(
                    "its skills have more than {MOST_SKILL_FILES} files, or more than {} MiB",
                    MOST_SKILL_BYTES >> 20
                );
                let reason = Reason::new(why, "ask its author for smaller skills");
                return Err(InstallError::NoPlugin { from: folder.display().to_string(), reason });
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn no_build(error: &ArtifactError, folder: &Path) -> Reason {
    Reason::new(error.to_string(), error.fix(folder))
}

fn documents(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let wanted = name == KEY || DOCUMENTS.iter().any(|document| name.starts_with(document));
        let meta = entry.metadata()?;
        if wanted && meta.is_file() && meta.len() <= MOST_DOCUMENT && entry.file_name().to_str().is_some() {
            found.push(entry.path());
        }
    }
    // Sort the key first, so that the limit on documents never drops it.
    found.sort_by_key(|path| (path.file_name() != Some(KEY.as_ref()), path.clone()));
    found.truncate(MOST_DOCUMENTS);
    found.sort();
    Ok(found)
}

/// Why the code cannot be copied: it is too large, or it is a link, which could lead to any file of the user.
fn unfit(code: &[CodeFile]) -> Result<Option<String>, InstallError> {
    let mut together = 0;
    for file in code {
        if fs::symlink_metadata(&file.path).at(&file.path)?.is_symlink() {
            return Ok(Some(format!("`{}` is a link ({})", file.name, file.path.display())));
        }
        let bytes = fs::metadata(&file.path).at(&file.path)?.len();
        together += bytes;
        if bytes > MOST_CODE {
            return Ok(Some(format!("`{}` is larger than {} MiB", file.name, MOST_CODE >> 20)));
        }
    }
    let is_too_large = together > MOST_CODE_TOGETHER;
    Ok(is_too_large.then(|| format!("its components and libraries are larger than {} MiB", MOST_CODE_TOGETHER >> 20)))
}

/// Reads a file of the plugin. It may have changed since it was found.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, InstallError> {
    hermes_private_files::read_regular(path, most).at(path)
}

fn read_small(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    // One byte more than a manifest may have, so that a longer one is reported as too long.
    hermes_private_files::open_regular(path)?.take((64 << 10) + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// A manifest for a component that has none.
fn manifest_for_lone_component(folder: &Path, name: Option<&str>) -> Result<String, Reason> {
    let found = components(folder);
    let [component] = found.as_slice() else {
        let fix = if folder.join("Cargo.toml").is_file() {
            "write a plugin.yaml with at least `name` and `version` beside Cargo.toml"
        } else {
            "give the folder that contains plugin.yaml, for a repository as SOURCE#FOLDER"
        };
        return Err(Reason::new("there is no plugin.yaml", fix));
    };
    let stem = component.file_stem().map(|stem| stem.to_string_lossy().to_lowercase().replace([' ', '.'], "-"));
    let name = name.map(str::to_owned).or(stem).unwrap_or_default();
    let file = component.file_name().unwrap_or_default().to_string_lossy();
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    Ok(format!("name: {}\nversion: 0.0.0\ncomponent: {}\n", quoted(&name), quoted(&file)))
}

/// Finds the folder of the plugin in an unpacked archive: the top folder, or the only folder in it.
pub(crate) fn root_of(folder: &Path) -> Result<PathBuf, InstallError> {
    let holds = |folder: &Path| [MANIFEST, "Cargo.toml", SKILL].iter().any(|name| folder.join(name).is_file());
    if holds(folder) || !components(folder).is_empty() {
        return Ok(folder.to_owned());
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    match folders.as_slice() {
        [only] => Ok(only.clone()),
        _ => Ok(folder.to_owned()),
    }
}

/// A path with an ending appended to its whole name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_diagnostic::Diagnose as _;

    use super::*;
    use crate::testing::folder;

    fn staged(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let from = folder(files);
        let project = Project::find(from.path(), Place::Local, "here", None).map_err(|error| error.sentence())?;
        let to = tempfile::tempdir().unwrap();
        project.copy_to(to.path()).map_err(|error| error.sentence())?;
        let mut names: Vec<_> =
            fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        Ok(names)
    }

    #[test]
    fn skills_are_copied_with_code_and_without() {
        let skill = [
            ("plugin.yaml", "name: mine\n"),
            ("skills/tea/SKILL.md", "s"),
            ("skills/tea/more/leaves.md", "l"),
            ("skills/tea/.git/config", "no"),
            ("skills/drinks/coffee/SKILL.md", "s"),
        ];
        let names = |files: &[(&str, &str)]| -> Result<Vec<String>, String> {
            let from = folder(files);
            let project = Project::find(from.path(), Place::Local, "here", None).map_err(|error| error.sentence())?;
            Ok(project.files().unwrap().into_iter().map(|(name, _)| name).collect())
        };
        let skills = ["skills/drinks/coffee/SKILL.md", "skills/tea/SKILL.md", "skills/tea/more/leaves.md"];
        assert_eq!(names(&skill).unwrap(), [&["plugin.yaml"], skills.as_slice()].concat());
        assert_eq!(staged(&skill).unwrap(), ["plugin.yaml", "skills"]);
        let with_code = [skill.as_slice(), &[("mine.wasm", "x")]].concat();
        assert_eq!(names(&with_code).unwrap(), [&["plugin.yaml", "mine.wasm"], skills.as_slice()].concat());
        // A project that was not built is not a plugin of skills.
        for unbuilt in
            [("Cargo.toml", "[package]\nname = \"mine\"\n"), ("plugin.yaml", "name: mine\ncomponent: a.wasm\n")]
        {
            assert!(names(&[skill.as_slice(), &[unbuilt]].concat()).is_err(), "{unbuilt:?}");
        }
        assert!(names(&[("plugin.yaml", "name: mine\n"), ("skills/readme.md", "r")]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_a_skill_is_not_followed() {
        let from = folder(&[("plugin.yaml", "name: mine\n"), ("skills/tea/SKILL.md", "s")]);
        std::os::unix::fs::symlink("/etc", from.path().join("skills/tea/etc")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", from.path().join("skills/tea/host")).unwrap();
        let project = Project::find(from.path(), Place::Local, "here", None).unwrap();
        assert_eq!(project.skills.len(), 1);
    }

    #[test]
    fn only_the_parts_of_a_plugin_are_copied() {
        let files = [
            ("plugin.yaml", "name: mine\n"),
            ("mine.wasm", "x"),
            ("mine.wasm.minisig", "s"),
            ("README.md", "r"),
            ("LICENSE-MIT", "l"),
            (".env", "KEY=1"),
            ("secret.txt", "no"),
            ("src/lib.rs", "no"),
        ];
        assert_eq!(
            staged(&files).unwrap(),
            ["LICENSE-MIT", "README.md", "mine.wasm", "mine.wasm.minisig", "plugin.yaml"]
        );
    }

    #[test]
    fn a_component_is_found_in_cargos_output_folder() {
        for built in ["target/wasm32-wasip2/release/my_tool.wasm", "target/wasm32-wasip2/debug/my_tool.wasm"] {
            for manifest in [
                "name: my-tool\n",
                "name: my-tool\ncomponent: my_tool.wasm\n",
                "name: other\ncomponent: my-tool.wasm\n",
            ] {
                let names = staged(&[("plugin.yaml", manifest), ("Cargo.toml", ""), (built, "x")]).unwrap();
                assert_eq!(names.len(), 2, "{built} {manifest}");
            }
        }
        let workspace = [
            ("plugin.yaml", "name: my-tool\n"),
            ("Cargo.toml", ""),
            ("target/wasm32-wasip2/release/a.wasm", "x"),
            ("target/wasm32-wasip2/release/my_tool.wasm", "x"),
        ];
        assert_eq!(staged(&workspace).unwrap(), ["my-tool.wasm", "plugin.yaml"]);
    }

    mod attack {
        use super::*;

        /// The reason why a folder is not a plugin. Finding it out must not take long.
        fn refused(folder: &Path) -> String {
            Project::find(folder, Place::Local, "here", None).unwrap_err().sentence()
        }

        #[test]
        fn code_without_end_is_refused_before_it_is_read() {
            let libraries: String = (0..3).map(|at| format!("  target-{at}: lib{at}.so\n")).collect();
            let from = folder(&[("plugin.yaml", &format!("name: mine\nnative:\n{libraries}"))]);
            for (at, mib) in [(0, 100), (1, 100), (2, 57)] {
                let file = fs::File::create(from.path().join(format!("lib{at}.so"))).unwrap();
                file.set_len(mib << 20).unwrap();
            }
            assert!(refused(from.path()).contains("larger than 256 MiB"));
            fs::File::create(from.path().join("lib2.so")).unwrap().set_len(129 << 20).unwrap();
            assert!(refused(from.path()).contains("`lib2.so` is larger than 128 MiB"));
        }

        #[cfg(unix)]
        #[test]
        fn a_link_takes_no_file_of_the_user_along() {
            use std::os::unix::fs::symlink;

            let private = folder(&[("key", "secret"), ("skills/notes/SKILL.md", "diary")]);
            let linked = |files: &[(&str, &str)], target: &str, link: &str| {
                let from = folder(files);
                symlink(private.path().join(target), from.path().join(link)).unwrap();
                from
            };
            let component = [(MANIFEST, "name: mine\n")];
            assert!(refused(linked(&component, "key", "mine.wasm").path()).contains("`mine.wasm` is a link"));
            let native = [(MANIFEST, "name: mine\nnative: {x: lib.so}\n"), ("mine.wasm", "x")];
            assert!(refused(linked(&native, "key", "lib.so").path()).contains("`lib.so` is a link"));
            let signed = [(MANIFEST, "name: mine\n"), ("mine.wasm", "x")];
            for link in [STATEMENT, STATEMENT_SIGNATURE, PLUGIN_SIGNATURE, "mine.wasm.minisig"] {
                assert!(refused(linked(&signed, "key", link).path()).contains("is a link"), "{link}");
            }
            let from = linked(&signed, "skills", SKILLS);
            let project = Project::find(from.path(), Place::Local, "here", None).unwrap();
            let names: Vec<String> = project.files().unwrap().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, [MANIFEST, "mine.wasm"]);
        }

        #[test]
        fn the_publishers_key_is_none_of_the_documents_that_are_left_out() {
            let names: Vec<String> = (0..20).map(|at| format!("README-{at}")).collect();
            let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "r")).collect();
            files.extend([(MANIFEST, "name: mine\n"), ("mine.wasm", "x"), (KEY, "key")]);
            assert!(staged(&files).unwrap().contains(&KEY.to_owned()));
        }

        #[cfg(unix)]
        #[test]
        fn a_pipe_or_a_device_in_the_place_of_a_file_does_not_block() {
            let pipe = |path: &Path| {
                assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
            };
            let from = folder(&[("mine.wasm", "x")]);
            pipe(&from.path().join(MANIFEST));
            assert!(refused(from.path()).contains("plugin.yaml"));
            let from = folder(&[(MANIFEST, "name: mine\n")]);
            pipe(&from.path().join("Cargo.toml"));
            assert!(!refused(from.path()).is_empty());
            // A workspace whose members cannot be listed soon.
            let from = folder(&[(MANIFEST, "name: mine\n"), ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n")]);
            fs::create_dir(from.path().join("a")).unwrap();
            pipe(&from.path().join("a/Cargo.toml"));
            assert!(!refused(from.path()).is_empty());
        }
    }

    #[test]
    fn the_error_for_a_missing_part_says_what_to_do() {
        for (files, part) in [
            (&[("x", "")][..], "no plugin.yaml"),
            (&[("plugin.yaml", "name: a\n")], "no .wasm"),
            (&[("plugin.yaml", "name: a\n"), ("Cargo.toml", "")], "cargo build --release --target wasm32-wasip2"),
            (&[("plugin.yaml", "name: a\n"), ("1.wasm", ""), ("2.wasm", "")], "component: FILE.wasm"),
            (&[("plugin.yaml", "name: a\ncomponent: b.wasm\n"), ("c.wasm", "")], "b.wasm"),
            (&[("plugin.yaml", "name: a\nnative: {x86_64-unknown-linux-gnu: liba.so}\n")], "--features native"),
            (&[("plugin.yaml", "name: A\n"), ("c.wasm", "")], "line 1"),
        ] {
            let error = staged(files).unwrap_err();
            assert!(error.contains(part), "{files:?}: {error}");
        }
        assert_eq!(staged(&[("lone.wasm", "x")]).unwrap(), ["lone.wasm", "plugin.yaml"]);
    }
}
