//! The paths that git's configuration names: programs that git runs, folders of hooks, and further configurations.
//!
//! No list of the settings that run programs is complete, so every path in every setting counts, except in settings that are known to
//! name none.

use std::path::{Path, PathBuf};

use super::repository::{Repository, text};

/// Why such paths are protected.
pub(super) const NAMED: &str = "the configuration of git names it, so that git may run it or take settings from it";
/// How many files are read through `include.path`, and how many paths count.
const MOST_FILES: usize = 50;
const MOST_PATHS: usize = 1_000;
/// Settings that name no file that git runs or reads: a section, and the end of the names, or all of them.
const NAME_NOTHING: &[(&str, &[&str])] = &[
    ("advice", &[]),
    ("branch", &[]),
    ("color", &[]),
    ("column", &[]),
    ("commit", &["gpgsign", "verbose", "cleanup"]),
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "quotepath",
            "worktree",
        ],
    ),
    ("extensions", &[]),
    ("fetch", &[]),
    ("gc", &[]),
    ("init", &["defaultbranch"]),
    ("maintenance", &[]),
    ("pack", &[]),
    ("pull", &[]),
    ("push", &[]),
    ("rebase", &[]),
    ("receive", &[]),
    ("remote", &["url", "pushurl", "fetch", "push", "tagopt", "prune"]),
    ("rerere", &[]),
    ("safe", &[]),
    ("submodule", &["url", "active", "branch", "path", "recurse"]),
    ("user", &[]),
];

/// The paths that the configurations of these repositories and of the user name, also those where nothing is. Relative ones count in
/// each work tree.
pub(super) fn named(repositories: &[Repository], granted: &[PathBuf]) -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let own = [".gitconfig", ".config/git/config"];
    let mut waiting: Vec<PathBuf> = home.iter().flat_map(|home| own.map(|name| home.join(name))).collect();
    let mut trees: Vec<PathBuf> = granted.to_vec();
    for repository in repositories.iter().filter(|repository| !repository.is_passage) {
        let folder = &repository.folder;
        waiting.extend(["config", "config.worktree"].map(|name| folder.join(name)));
        trees.push(folder.clone());
        trees.extend(folder.parent().filter(|_| folder.ends_with(".git")).map(Path::to_owned));
        let back = text(&folder.join("gitdir")).map(|back| folder.join(back.trim()));
        trees.extend(back.as_deref().and_then(Path::parent).map(Path::to_owned));
    }
    let (mut read, mut found): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    while let Some(config) = waiting.pop() {
        if read.len() > MOST_FILES || read.contains(&config) {
            continue;
        }
        read.push(config.clone());
        let Some(content) = text(&config) else { continue };
        let beside = config.parent().unwrap_or(&config);
        for Setting { section, name, value } in settings(&content) {
            if section == "core" && name == "worktree" {
                trees.push(beside.join(&value));
            }
            if names_nothing(&section, &name) {
                continue;
            }
            let is_include = section.starts_with("include") && name == "path";
            for (piece, is_whole) in pieces(&value) {
                let expanded = match (piece.strip_prefix("~/"), &home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => PathBuf::from(piece),
                };
                // A command may name a folder that it works on, as in `eslint src/`: that folder is no program.
                let is_place = is_whole && ["path", "dir", "file"].iter().any(|end| name.ends_with(end));
                for path in trees.iter().map(PathBuf::as_path).chain([beside]).map(|base| base.join(&expanded)) {
                    if is_include && is_whole {
                        waiting.push(path.clone());
                    }
                    let counts = match path.metadata() {
                        Ok(data) if data.is_dir() => is_place,
                        Ok(_) => true,
                        Err(_) => piece.contains('/') || is_place,
                    };
                    if counts && found.len() < MOST_PATHS {
                        found.push(path);
                    }
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn names_nothing(section: &str, name: &str) -> bool {
    let known = NAME_NOTHING.iter().find(|(known, _)| *known == section);
    known.is_some_and(|(_, names)| names.is_empty() || names.contains(&name))
}

/// What may be paths in a value: all of it, its words as a shell would find them, and its quoted parts.
fn pieces(value: &str) -> impl Iterator<Item = (&str, bool)> {
    let words = value.split(|c: char| c.is_whitespace() || "'\"!;&|()<>=`$,".contains(c));
    let quoted = value.split(['\'', '"']).map(str::trim);
    let parts = words.chain(quoted).filter(move |word| *word != value).map(|word| (word, false));
    parts.chain([(value, true)]).filter(|(piece, _)| !piece.is_empty())
}

/// A setting; its section and its name in lower case.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    name: String,
    value: String,
}

/// The settings of a configuration, as `git-config(1)` describes the syntax.
fn settings(content: &str) -> Vec<Setting> {
    let mut all = Vec::new();
    let mut section = String::new();
    let mut rest = content.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return all };
        if first == '#' || first == ';' {
            rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
        } else if first == '[' {
            let mut is_quoted = false;
            let end = rest.char_indices().find(|(_, c)| {
                is_quoted ^= *c == '"';
                *c == ']' && !is_quoted
            });
            let Some((end, _)) = end else { return all };
            let name = rest[1..end].split([' ', '\t', '.', '"']).next().unwrap_or_default();
            section = name.to_lowercase();
            rest = &rest[end + 1..];
        } else {
            let end = rest.find(['=', '\n']).unwrap_or(rest.len());
            let name = rest[..end].trim().to_lowercase();
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(behind) = rest.strip_prefix('=') {
                (value, rest) = value_of(behind);
            }
            all.push(Setting { section: section.clone(), name, value });
        }
    }
}

/// The value at the begin of a text, and what follows its line.
fn value_of(text: &str) -> (String, &str) {
    let (mut value, mut is_quoted, mut is_comment) = (String::new(), false, false);
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\n' => return (value.trim().to_owned(), &text[at + 1..]),
            _ if is_comment => {}
            '"' => is_quoted = !is_quoted,
            '\\' => match characters.next() {
                Some((_, '\n')) | None => {}
                Some((_, 'n' | 't' | 'b')) => value.push(' '),
                Some((_, escaped)) => value.push(escaped),
            },
            '#' | ';' if !is_quoted => is_comment = true,
            c => value.push(c),
        }
    }
    (value.trim().to_owned(), "")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let content = "# x\n[core] fsmonitor = \"a b\" c ; comment\n\thooksPath = d\\\ne\n[Filter \"x]y\"]\n\tClean = sh -c '\"f\" g'\nempty\n[a.b]c=d";
        let read: Vec<(String, String, String)> =
            settings(content).into_iter().map(|setting| (setting.section, setting.name, setting.value)).collect();
        let expected = [
            ("core", "fsmonitor", "a b c"),
            ("core", "hookspath", "de"),
            ("filter", "clean", "sh -c 'f g'"),
            ("filter", "empty", ""),
            ("a", "c", "d"),
        ];
        assert_eq!(
            read,
            expected.map(|(section, name, value)| (section.to_owned(), name.to_owned(), value.to_owned()))
        );
        // Nothing that is no configuration stops it.
        for odd in ["[", "[a", "=", "a", "\\", "[a]\n=", "\"", "[a]b=\\"] {
            settings(odd);
        }
    }

    #[test]
    fn every_path_of_a_setting_counts_but_those_of_settings_that_name_nothing() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let git = top.join(".git");
        fs::create_dir_all(git.join("objects")).unwrap();
        fs::create_dir(top.join("src")).unwrap();
        for name in ["tool.sh", "origin", "more.cfg", "clean.py", "a b.sh"] {
            fs::write(top.join(name), "").unwrap();
        }
        fs::write(top.join("more.cfg"), "[diff \"x\"]\n\ttextconv = ./tool.sh --quiet\n").unwrap();
        let config = "[core]\n\thooksPath = hooks-here\n\teditor = vi\n[include]\n\tpath = ../more.cfg\n[filter \"y\"]\n\tclean = python3 clean.py \
                      %f\n[branch \"main\"]\n\tremote = origin\n[gpg]\n\tprogram = sh 'a b.sh'\n[alias]\n\tx = \"!sh scripts/absent.sh\"\n\ty = \"!lint src/ deep\"\n";
        fs::write(git.join("config"), config).unwrap();
        let repository = Repository { folder: git.clone(), decisive: Vec::new(), is_passage: false };
        let found = named(&[repository], std::slice::from_ref(&top));
        let has = |name: &str| {
            let wanted = top.join(name);
            found.iter().any(|path| *path == wanted || path.canonicalize().is_ok_and(|real| real == wanted))
        };
        for name in ["a b.sh", "hooks-here", "more.cfg", "tool.sh", "clean.py", "scripts/absent.sh"] {
            assert!(has(name), "{name}: {found:?}");
        }
        for name in ["origin", "vi", "deep", "src"] {
            assert!(!has(name), "{name}: {found:?}");
        }
    }
}
