//! Circles of files inside a crate: files that use one another, directly or over others. They can only be read, tested and changed
//! together, so arrows inside a crate point down as they do between crates.
//!
//! A file uses another if it names it by a path that begins with `crate`, `super` or `self`, also in a comment. A file's own
//! ancestors are left out, and so are tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// The crates that have circles: how many, and how many files are in the largest one. Both numbers may only fall, and a new
/// crate has none.
const CIRCLES: &[(&str, usize, usize)] = &[("host/models", 2, 2), ("plugins/memory/chronicle", 1, 2)];

/// Paths to other files.
static PATHS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(crate|super|self)((?:::\w+)+)").unwrap());

/// A `use` of the crate's own names.
static TREES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\buse\s+((?:crate|super|self)::[^;]+);").unwrap());
/// Files of tests, and bindings, which are generated.
static LEFT_OUT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|/)(tests?|testing|attack|invariants|bindings)(/|\.rs$)").unwrap());

/// Files that use one another.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    files: Vec<String>,
    /// One use that closes the circle.
    closed_by: String,
}

/// The texts of a crate's files by their names below `src`.
type Files = BTreeMap<String, String>;

#[test]
fn the_number_of_circles_of_files_only_falls() {
    let mut crates = BTreeMap::new();
    for folder in ["host", "sdk", "plugins"] {
        find_crates(&root().join(folder), folder, &mut crates);
    }
    assert!(crates.len() > 40, "{:?}", crates.keys());
    let mut wrong = String::new();
    for (name, files) in &crates {
        let found = circles(files);
        let (number, largest) = (found.len(), found.iter().map(|circle| circle.files.len()).max().unwrap_or(0));
        let allowed =
            CIRCLES.iter().find(|(of, ..)| of == name).map_or((0, 0), |(_, number, largest)| (*number, *largest));
        if (number, largest) == allowed {
            continue;
        }
        let _ = write!(wrong, "\n{name} has {number} circles, the largest of {largest} files");
        if number <= allowed.0 && largest <= allowed.1 {
            wrong.push_str(": lower the table");
            continue;
        }
        let _ = write!(wrong, ", and the table allows {} of {}: untie them:", allowed.0, allowed.1);
        for Circle { files, closed_by } in found {
            let _ = write!(wrong, "\n  {}; {closed_by}", files.join(", "));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let unknown: Vec<&str> =
        CIRCLES.iter().map(|(name, ..)| *name).filter(|name| !crates.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "the table names crates that do not exist: {unknown:?}");
}

#[test]
fn circles_are_counted_without_parents_and_tests() {
    let of = |files: &[(&str, &str)]| {
        circles(&files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    };
    // Two files that use each other, one of them over a folder, and the root that uses both.
    let two = of(&[
        ("lib.rs", "mod ring;\nmod other;\npub use self::ring::Ring;\npub use self::other::chain::Link;"),
        ("ring.rs", "use crate::other::chain::Link;"),
        ("other/mod.rs", "mod chain;"),
        ("other/chain.rs", "fn f() -> crate::ring::Ring {}"),
    ]);
    let closed_by = "ring.rs is used in other/chain.rs as `crate::ring::Ring`".to_owned();
    assert_eq!(two, [Circle { files: vec!["other/chain.rs".to_owned(), "ring.rs".to_owned()], closed_by }]);
    // A circle of three brothers.
    let three = of(&[
        ("main.rs", ""),
        ("a.rs", "use super::b::B;"),
        ("b.rs", "use super::c::C;"),
        ("c.rs", "/// As [`super::a`] does."),
    ]);
    assert_eq!(three.iter().map(|circle| circle.files.len()).collect::<Vec<_>>(), [3]);
    // Over lists in braces, and over two folders up.
    let braces = of(&[
        ("lib.rs", ""),
        ("a.rs", "use crate::{\n    c::D,\n    b::{self, e::{F, g as h}},\n};"),
        ("b/e.rs", "use super::super::a::A;"),
    ]);
    assert_eq!(braces.iter().map(|circle| circle.files.len()).collect::<Vec<_>>(), [2]);
    // A parent and its child, a chain, and a test.
    assert_eq!(of(&[("a.rs", "mod b;\nuse self::b::B;"), ("a/b.rs", "use super::A;\nuse crate::a::C;")]), []);
    assert_eq!(of(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::Root;")]), []);
    assert_eq!(of(&[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")]), []);
}

/// The circles of a crate, in the order of their files.
fn circles(files: &Files) -> Vec<Circle> {
    let modules: BTreeMap<Vec<&str>, &str> = files.keys().map(|name| (module(name), name.as_str())).collect();
    let uses: BTreeMap<&str, BTreeMap<&str, String>> =
        files.iter().map(|(name, text)| (name.as_str(), uses(name, text, &modules))).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|name| (*name, reached(name, &uses))).collect();
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (&name, reached_from) in &reached {
        if !reached_from.contains(name) || seen.contains(name) {
            continue;
        }
        let circle: Vec<&str> = reached_from.iter().copied().filter(|other| reached[other].contains(name)).collect();
        seen.extend(&circle);
        let closed = circle.last().into_iter().flat_map(|last| circle.iter().map(move |user| (*last, *user)));
        let closed_by = closed
            .filter_map(|(last, user)| uses[user].get(last).map(|path| format!("{last} is used in {user} as `{path}`")))
            .next()
            .unwrap_or_default();
        circles.push(Circle { files: circle.into_iter().map(str::to_owned).collect(), closed_by });
    }
    circles
}

/// The files that a file uses, directly or over others.
fn reached<'a>(name: &str, uses: &BTreeMap<&str, BTreeMap<&'a str, String>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = uses[name].keys().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(uses[next].keys());
        }
    }
    reached
}

/// The files that a file names, each with a path that names it.
fn uses<'a>(name: &str, text: &str, modules: &BTreeMap<Vec<&str>, &'a str>) -> BTreeMap<&'a str, String> {
    let own = module(name);
    let without_tests = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut uses = BTreeMap::new();
    let in_trees = TREES.captures_iter(without_tests).flat_map(|found| branches(&found[1]));
    let written = PATHS.find_iter(without_tests).map(|found| found.as_str().to_owned());
    for named in in_trees.chain(written) {
        let mut names = named.split("::").map(str::trim).peekable();
        let mut base = match names.next() {
            Some("crate") => &own[..0],
            Some("super") => &own[..own.len().saturating_sub(1)],
            _ => &own[..],
        };
        while names.next_if_eq(&"super").is_some() {
            base = &base[..base.len().saturating_sub(1)];
        }
        let path: Vec<&str> = base.iter().copied().chain(names).collect();
        let used = (1..=path.len()).rev().find_map(|length| modules.get_key_value(&path[..length]));
        if let Some((module, used)) = used
            && !own.starts_with(module)
        {
            uses.entry(*used).or_insert_with(|| named.clone());
        }
    }
    uses
}

/// The paths of a `use`: `a::{b, c::{d, e}}` has `a::b`, `a::c::d` and `a::c::e`.
fn branches(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return vec![path.strip_suffix("::self").unwrap_or(path).to_owned()];
    };
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let (mut depth, mut begin, mut found) = (0_u32, 0, Vec::new());
    for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let branch = inside[begin..at].trim();
                if !branch.is_empty() {
                    found.extend(branches(&format!("{}{branch}", stem.trim())));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The module of a file: `a/b.rs` and `a/b/mod.rs` are `a::b`, and the root of a crate has no name.
fn module(name: &str) -> Vec<&str> {
    let name = name.strip_suffix(".rs").unwrap_or(name);
    if ["lib", "main"].contains(&name) {
        return Vec::new();
    }
    name.strip_suffix("/mod").unwrap_or(name).split('/').collect()
}

/// Finds the folders `src` in a folder, and adds the files of each.
fn find_crates(folder: &Path, name: &str, crates: &mut BTreeMap<String, Files>) {
    for (path, own) in entries(folder).into_iter().filter(|(path, _)| path.is_dir()) {
        match own.as_str() {
            "src" => {
                let files = crates.entry(name.to_owned()).or_default();
                read(&path, "", files);
                files.retain(|file, _| !LEFT_OUT.is_match(&format!("{name}/src/{file}")));
            }
            "target" => {}
            _ => find_crates(&path, &format!("{name}/{own}"), crates),
        }
    }
}

/// Reads the files of a folder below `src`.
fn read(folder: &Path, within: &str, files: &mut Files) {
    for (path, own) in entries(folder) {
        if path.is_dir() {
            read(&path, &format!("{within}{own}/"), files);
        } else if own.ends_with(".rs") {
            files.insert(format!("{within}{own}"), std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The entries of a folder with their names, without links and hidden ones.
fn entries(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()));
    named.filter(|(path, name)| !path.is_symlink() && !name.starts_with('.')).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
