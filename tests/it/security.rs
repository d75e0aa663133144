//! `docs/use/security.md` names files and tests of every boundary. They exist, and the tests are attacks.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

/// The boundaries that the page must have.
const BOUNDARIES: [&str; 14] = [
    "import",
    "manifest",
    "archive and source",
    "signature",
    "consent",
    "approval",
    "file",
    "program",
    "network",
    "plugin calls and budgets",
    "model replies",
    "prompt",
    "terminal",
    "native libraries",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/use/security.md")).unwrap()
}

/// The cells of the table of boundaries.
fn rows(page: &str) -> Vec<Vec<String>> {
    let (_, table) = page.split_once("## Boundaries").unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| **"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The paths in a text, each with the name of a test in it or without.
fn paths(text: &str) -> Vec<(String, Option<String>)> {
    let path = Regex::new(r"`((?:host|tests|plugins|fuzz|docs|sdk|wit)/[^`:]+)(?:::([a-z0-9_]+))?`").unwrap();
    let found = path.captures_iter(text);
    found.map(|found| (found[1].to_owned(), found.get(2).map(|test| test.as_str().to_owned()))).collect()
}

/// The texts of a file, or of all Rust files below a folder.
fn source(path: &Path) -> String {
    if !path.is_dir() {
        return std::fs::read_to_string(path).unwrap_or_default();
    }
    std::fs::read_dir(path).unwrap().map(|entry| source(&entry.unwrap().path())).collect()
}

#[test]
fn every_boundary_has_a_row_with_files_and_tests() {
    let page = page();
    let rows = rows(&page);
    let named: Vec<String> = rows.iter().map(|row| row[0].split("**").nth(1).unwrap().to_owned()).collect();
    for boundary in BOUNDARIES {
        assert!(named.iter().any(|name| name == boundary), "no row of {boundary}: {named:?}");
    }
    for row in rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(!paths(&row[1]).is_empty() && !paths(&row[2]).is_empty(), "{}: no file or no test", row[0]);
    }
}

#[test]
fn every_named_file_and_test_exists() {
    let page = page();
    let mut missing = BTreeSet::new();
    for (path, test) in paths(&page) {
        let place = root().join(&path);
        if !place.exists() {
            missing.insert(path);
        } else if let Some(test) = test
            && !source(&place).contains(&format!("fn {test}("))
        {
            missing.insert(format!("{path}::{test}"));
        }
    }
    assert_eq!(missing, BTreeSet::new());
    for row in rows(&page) {
        let tested = paths(&row[2]).iter().any(|(path, _)| {
            source(&root().join(path)).contains("#[test]") || source(&root().join(path)).contains("#[tokio::test")
        });
        assert!(tested, "{}: none of its tests has a test", row[0]);
    }
}

#[test]
fn a_vulnerability_is_reported_in_private_and_without_an_address() {
    let page = page();
    let (_, report) = page.split_once("## Reporting a vulnerability").unwrap();
    assert!(report.contains("Report a vulnerability") && !page.contains('@') && !page.contains("mailto"));
    for other in ["README.md", "ARCHITECTURE.md", "SECURITY.md"] {
        let text = std::fs::read_to_string(root().join(other)).unwrap();
        assert!(text.contains("docs/use/security.md"), "{other} does not link docs/use/security.md");
    }
}
