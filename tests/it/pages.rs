//! The pages of the repository: links lead somewhere, the index is complete, the map stays short, and what the pages name exists.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use regex::Regex;

/// Pages that the index names by their folder only.
const BY_FOLDER: [&str; 2] = ["docs/decisions", "docs/schema"];

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let code = Regex::new("`[^`\n]*`").unwrap();
    let mut broken = Vec::new();
    for page in pages() {
        let text = code.replace_all(&without_code(&read(&page)), "").into_owned();
        for target in link.captures_iter(&text).map(|found| found.extract::<1>().1[0]) {
            if target.contains(':') {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { joined(&page, path) };
            let is_there = root().join(&file).exists();
            if !is_there || (!heading.is_empty() && !headings(&read(&file)).contains(heading)) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn every_page_that_a_source_names_exists() {
    let named = Regex::new(r"(?:^|[^\w/.@-])((?:docs|tests/evidence)/[\w./-]+\.(?:md|json))\b").unwrap();
    let known: BTreeSet<PathBuf> = pages().into_iter().collect();
    let mut absent = BTreeSet::new();
    for file in files(&["rs", "md", "toml", "yaml", "json", "snap", "py", "js", "go", "sh"]) {
        for path in named.captures_iter(&read(&file)).map(|found| found[1].to_owned()) {
            let is_ours = ["docs/use/", "docs/plugins/", "docs/develop/", "docs/decisions/", "docs/schema/", "tests/"]
                .iter()
                .any(|folder| path.starts_with(folder));
            // Tests make files such as `docs/rules.md` in workspaces of their own.
            let name = Path::new(&path).file_name().unwrap();
            let has_moved = path.starts_with("docs/") && known.iter().any(|page| page.file_name() == Some(name));
            if (is_ours || has_moved) && !root().join(&path).exists() {
                absent.insert(format!("{}: {path}", file.display()));
            }
        }
    }
    assert_eq!(absent, BTreeSet::new());
}

#[test]
fn the_index_lists_every_page_once() {
    let index = read(Path::new("docs/README.md"));
    let link = Regex::new(r"(?m)^\| \[[^\]]+\]\(([^)]+)\) \| [^|]+ \|$").unwrap();
    let listed: Vec<String> = link.captures_iter(&index).map(|found| format!("docs/{}", &found[1])).collect();
    let listed_once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(listed.len(), listed_once.len(), "a page has two lines");
    for page in pages() {
        let page = page.to_str().unwrap().to_owned();
        if page.starts_with("docs/")
            && page != "docs/README.md"
            && !BY_FOLDER.iter().any(|folder| page.starts_with(folder))
        {
            assert!(listed.contains(&page), "docs/README.md has no line for {page}");
        }
    }
}

#[test]
fn the_map_of_the_code_stays_short() {
    let page = read(Path::new("ARCHITECTURE.md"));
    assert!(page.len() < 15_000, "ARCHITECTURE.md has {} bytes; move details into the crates' own docs", page.len());
    let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 200).collect();
    assert_eq!(long, [""; 0], "lines above 200 characters");
}

/// An item of these lists ends with `Tested by` and files or tests.
#[test]
fn every_test_of_an_invariant_exists() {
    let name = Regex::new(r"`([a-z0-9_]+)`").unwrap();
    let path = Regex::new(r"`([\w./-]+(?:\.rs|/))`").unwrap();
    let sources = files(&["rs"]);
    let code: String = sources.iter().map(|file| read(file)).collect();
    let (mut items, mut wrong) = (0, Vec::new());
    for page in ["ARCHITECTURE.md", "docs/develop/invariants.md"] {
        let text = read(Path::new(page));
        for item in text.split("\n- ").skip(1) {
            let item: Vec<&str> = item.split("\n\n").next().unwrap_or_default().split_whitespace().collect();
            let item = item.join(" ");
            let Some((_, tested)) = item.split_once("Tested by ") else { continue };
            items += 1;
            for named in name.captures_iter(tested).map(|found| found.extract::<1>().1[0]) {
                if !code.contains(&format!("fn {named}(")) {
                    wrong.push(format!("{page}: no test {named}"));
                }
            }
            for named in path.captures_iter(tested).map(|found| found.extract::<1>().1[0]) {
                if !root().join(named).exists() {
                    wrong.push(format!("{page}: no file {named}"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(items > 90, "{items}");
}

/// The lists of how to add something say which test fails if a step is forgotten.
#[test]
fn every_test_of_the_lists_of_additions_exists() {
    let name = Regex::new(r"`([a-z0-9]+(?:_[a-z0-9]+){3,})`").unwrap();
    let page = read(Path::new("docs/develop/adding.md"));
    let code: String = files(&["rs"]).iter().map(|file| read(file)).collect();
    let named: BTreeSet<&str> = name.captures_iter(&page).map(|found| found.extract::<1>().1[0]).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert_eq!(missing, Vec::<&&str>::new());
    assert!(named.len() > 20, "{named:?}");
}

/// The path of a link, from the root of the repository.
fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in page.parent().unwrap().join(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// The anchors of a page's headings, as forges derive them.
fn headings(page: &str) -> BTreeSet<String> {
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    without_code(page).lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

/// A page without its blocks of code.
fn without_code(page: &str) -> String {
    let mut is_code = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn pages() -> Vec<PathBuf> {
    let is_ours = |page: &PathBuf| {
        let is_root = page.parent() == Some(Path::new(""));
        is_root || ["docs", "tests/evidence"].iter().any(|folder| page.starts_with(folder))
    };
    files(&["md"]).into_iter().filter(is_ours).collect()
}

/// The files of the repository with one of these endings, without what was built, and without what is kept as it was.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let kind = entry.file_type().unwrap();
            let name = entry.file_name();
            if kind.is_dir() {
                let is_left_out = name == "target" || name.as_encoded_bytes().starts_with(b".");
                if !is_left_out && path != Path::new("tests/kept") {
                    folders.push(path);
                }
            } else if kind.is_file() && endings.iter().any(|ending| path.extension().is_some_and(|own| own == *ending))
            {
                found.push(path);
            }
        }
    }
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
