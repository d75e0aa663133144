//! Pins a program that plugins may change: the user approves its content, not its name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Folder, lookup};

/// The longest first line of a script.
const LINE: u64 = 512;
/// The most interpreters of interpreters. Linux has the limit 5.
const MAX_DEPTH: usize = 8;

/// What a program needs to find its interpreter.
pub(super) struct Start<'a> {
    /// The program, with links resolved.
    pub(super) program: &'a Path,
    /// The folder that it runs in.
    pub(super) folder: &'a Path,
    /// Its environment.
    pub(super) environment: &'a [(OsString, OsString)],
}

/// The hash of a program and its interpreters, if one of them is in a folder that plugins may change.
pub(super) fn of(start: &Start<'_>, folders: &[Folder]) -> io::Result<Option<String>> {
    let tops: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.path.canonicalize().ok()).collect();
    let chain = start.chain()?;
    let is_open = |file: &PathBuf| tops.iter().any(|top| file.starts_with(top));
    if chain.iter().any(is_open) { hash(&chain).map(Some) } else { Ok(None) }
}

/// Whether a program is still the one that was pinned.
pub(super) fn holds(start: &Start<'_>, pin: &str) -> bool {
    start.chain().and_then(|chain| hash(&chain)).is_ok_and(|now| now == pin)
}

fn hash(chain: &[PathBuf]) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for (at, file) in chain.iter().enumerate() {
        if at > 0 {
            // Its place counts as well: a link may lead elsewhere later.
            hasher.update(file.as_os_str().as_encoded_bytes());
        }
        hasher.update_reader(File::open(file)?)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

impl Start<'_> {
    /// The program, the interpreter that its first line names, the program that `env` finds for it, their interpreters, and so on.
    fn chain(&self) -> io::Result<Vec<PathBuf>> {
        let mut chain = vec![self.program.to_owned()];
        let mut at = 0;
        while at < chain.len() && at < MAX_DEPTH {
            for found in self.interpreters(&chain[at])? {
                if !chain.contains(&found) {
                    chain.push(found);
                }
            }
            at += 1;
        }
        Ok(chain)
    }

    /// What the first line of a script starts, with links resolved.
    fn interpreters(&self, script: &Path) -> io::Result<Vec<PathBuf>> {
        let file = match File::open(script) {
            Ok(file) => file,
            // The system runs a program that nobody may read, but no script.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut line = Vec::new();
        BufReader::new(file.take(LINE)).read_until(b'\n', &mut line)?;
        let Some(rest) = line.strip_prefix(b"#!") else { return Ok(Vec::new()) };
        let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
        let Some(interpreter) = words.next() else { return Ok(Vec::new()) };
        let interpreter = self.folder.join(interpreter);
        let real = interpreter.canonicalize().unwrap_or_else(|_| interpreter.clone());
        let is_env = [&interpreter, &real].into_iter().any(|path| path.file_name().is_some_and(|name| name == "env"));
        let mut found = vec![interpreter];
        if is_env {
            // Whether a word is an option, its value or the program depends on `env`: each word may be the program.
            found.extend(words.filter_map(|word| self.find(word)));
        }
        Ok(found.iter().filter_map(|path| path.canonicalize().ok()).collect())
    }

    /// The program of this name, as `env` finds it.
    fn find(&self, name: &OsStr) -> Option<PathBuf> {
        if name.as_bytes().contains(&b'/') {
            return Some(self.folder.join(name)).filter(|path| lookup::is_program(path));
        }
        let path = self.environment.iter().find(|(known, _)| known == "PATH").map(|(_, value)| value)?;
        std::env::split_paths(path)
            .map(|folder| self.folder.join(folder).join(name))
            .find(|path| lookup::is_program(path))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    struct Place {
        base: tempfile::TempDir,
        real: PathBuf,
        environment: Vec<(OsString, OsString)>,
    }

    impl Place {
        /// A workspace that plugins may change, with programs, before other folders in `PATH`.
        fn new() -> Self {
            let base = tempfile::tempdir().unwrap();
            let real = base.path().canonicalize().unwrap();
            let path =
                std::env::join_paths([real.join("work/bin"), real.join("own"), "/usr/bin".into(), "/bin".into()]);
            Self { base, environment: vec![("PATH".into(), path.unwrap())], real }
        }

        fn script(&self, path: &str, text: &str) {
            let path = self.base.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn pin(&self, program: &str) -> Option<String> {
            fs::create_dir_all(self.real.join("work")).unwrap();
            let folder =
                Folder { name: "workspace".to_owned(), path: self.base.path().join("work"), denied: Vec::new() };
            let program = self.real.join(program);
            let start = Start { program: &program, folder: &self.real.join("work"), environment: &self.environment };
            let pin = of(&start, &[folder]).unwrap();
            assert!(pin.as_ref().is_none_or(|pin| holds(&start, pin)));
            pin
        }

        /// The pin before and after another content of a file.
        fn pins(&self, program: &str, changed: &str) -> [Option<String>; 2] {
            let before = self.pin(program);
            self.script(changed, "#!/bin/sh\necho pwned\n");
            [before, self.pin(program)]
        }
    }

    #[test]
    fn the_interpreter_that_env_finds_is_pinned() {
        for line in ["/usr/bin/env planted", "/usr/bin/env -S FOO=1 planted -x", "/usr/bin/env -S -u BAR planted"] {
            let place = Place::new();
            place.script("work/bin/innocent", &format!("#!{line}\n"));
            place.script("work/bin/planted", "#!/bin/sh\necho original\n");
            let [before, after] = place.pins("work/bin/innocent", "work/bin/planted");
            assert!(before.is_some() && after.is_some() && before != after, "{line}");
        }
    }

    #[test]
    fn the_interpreter_in_the_workspace_of_a_script_elsewhere_is_pinned() {
        let place = Place::new();
        let interpreter = place.real.join("work/bin/interpreter");
        place.script("work/bin/interpreter", "#!/bin/sh\n");
        place.script("own/innocent", &format!("#!{}\n", interpreter.display()));
        place.script("own/relative", "#!bin/interpreter\n");
        symlink(&interpreter, place.real.join("own/linked")).unwrap();
        place.script("own/deep", &format!("#!{}\n", place.real.join("own/linked").display()));
        for program in ["own/innocent", "own/relative", "own/deep"] {
            place.script("work/bin/interpreter", "#!/bin/sh\n");
            let [before, after] = place.pins(program, "work/bin/interpreter");
            assert!(before.is_some() && after.is_some() && before != after, "{program}");
        }
    }

    #[test]
    fn an_interpreter_of_an_interpreter_is_pinned() {
        let place = Place::new();
        place.script("work/inner", "#!/bin/sh\n");
        place.script("own/outer", &format!("#!{}\n", place.real.join("work/inner").display()));
        place.script("own/innocent", &format!("#!{}\n", place.real.join("own/outer").display()));
        let [before, after] = place.pins("own/innocent", "work/inner");
        assert!(before.is_some() && before != after);
    }

    #[test]
    fn a_program_that_appears_earlier_in_the_path_changes_the_pin() {
        let place = Place::new();
        place.script("own/innocent", "#!/usr/bin/env sh\n");
        let [before, after] = place.pins("own/innocent", "work/bin/sh");
        assert!(before.is_none() && after.is_some(), "the workspace comes first in PATH");
    }

    #[test]
    fn a_program_outside_is_not_pinned_and_a_circle_ends() {
        let place = Place::new();
        place.script("own/innocent", "#!/bin/sh\n");
        assert_eq!(place.pin("own/innocent"), None);
        place.script("work/circle", &format!("#!{}\n", place.real.join("work/circle").display()));
        assert!(place.pin("work/circle").is_some());
    }
}
