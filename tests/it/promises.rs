//! Every sentence of the contract is in a table of `tests/evidence/contract-promises`: a promise with the tests that fail when it is broken, a
//! duty of plugins, or a description. A new sentence needs a decision and, if it is a promise, a test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The folder of the contract's text.
const CONTRACT: &str = "wit/1.1.0";
const TABLES: &str = "tests/evidence/contract-promises";
/// Texts without a table.
const WITHOUT_TABLE: &[&str] = &[];

const DESCRIPTION: &str = "description";
const DUTY: &str = "duty of the plugin";

#[test]
fn every_sentence_of_the_contract_is_in_a_table() {
    let mut without_table = Vec::new();
    for text in texts() {
        let name = text.file_stem().unwrap().to_str().unwrap();
        let table = root().join(TABLES).join(format!("{name}.md"));
        if !table.exists() {
            without_table.push(name.to_owned());
            continue;
        }
        let listed: Vec<String> = rows(&table).into_iter().map(|(sentence, _)| sentence).collect();
        let written = sentences(&text);
        let differ = written.iter().zip(&listed).find(|(written, listed)| written != listed);
        assert_eq!(differ, None, "{name}: the sentence of the contract, and that of {TABLES}/{name}.md in its place");
        assert_eq!(written.len(), listed.len(), "{TABLES}/{name}.md lacks a sentence or has one too many at its end");
    }
    without_table.sort();
    assert_eq!(without_table, WITHOUT_TABLE);
}

#[test]
fn every_test_of_the_tables_exists_and_runs() {
    let test = Regex::new("^`(.+)::([a-z0-9_]+)`$").unwrap();
    let mut sources: HashMap<String, String> = HashMap::new();
    let (mut promises, mut wrong) = (0, Vec::new());
    for table in files(&root().join(TABLES)) {
        for (sentence, keeper) in rows(&table) {
            if [DESCRIPTION, DUTY].contains(&keeper.as_str()) {
                continue;
            }
            promises += 1;
            for named in keeper.split(", ") {
                let Some([path, name]) = test.captures(named).map(|found| found.extract().1) else {
                    wrong.push(format!("{sentence}: {named} is not a test"));
                    continue;
                };
                let read = || std::fs::read_to_string(root().join(path)).unwrap_or_default();
                let source = sources.entry(path.to_owned()).or_insert_with(read);
                if !has_test(source, name) {
                    wrong.push(format!("{sentence}: no test {named} runs"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(promises > 100, "{promises}");
}

/// Whether a file has a test of this name that is not ignored.
fn has_test(source: &str, name: &str) -> bool {
    let function = Regex::new(&format!(r"^\s*(pub )?(async )?fn {name}\b")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let Some(at) = lines.iter().position(|line| function.is_match(line)) else { return false };
    let attributes: Vec<&str> =
        lines[..at].iter().rev().map(|line| line.trim()).take_while(|line| line.starts_with(['#', '/'])).collect();
    attributes.iter().any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

#[test]
fn ignored_and_missing_tests_are_found() {
    let source = "#[test]\nfn one() {}\n#[tokio::test(start_paused = true)]\n/// Why.\nasync fn two() {}\n\
                  #[test]\n#[ignore]\nfn three() {}\nfn four() {}\n";
    assert_eq!(
        ["one", "two", "three", "four", "five"].map(|name| has_test(source, name)),
        [true, true, false, false, false]
    );
}

/// The texts of the contract.
fn texts() -> Vec<PathBuf> {
    let folder = root().join(CONTRACT);
    let mut texts = files(&folder.join("deps"));
    texts.extend([folder.join("worlds.wit"), root().join("wit/README.md")]);
    texts
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The rows of a table: a sentence, and what keeps it.
fn rows(table: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(table).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | "));
    rows.skip(1).map(|(sentence, keeper)| (sentence.to_owned(), keeper.to_owned())).collect()
}

/// The sentences of comments, or of a page of documentation.
fn sentences(text: &Path) -> Vec<String> {
    let lines = std::fs::read_to_string(text).unwrap();
    let is_page = text.extension().is_some_and(|extension| extension == "md");
    let paragraphs = if is_page { page(&lines) } else { comments(&lines) };
    let end = Regex::new(r"[.!?] [A-Z`0-9_]").unwrap();
    let mut sentences = Vec::new();
    for paragraph in paragraphs {
        let mut begin = 0;
        for found in end.find_iter(&paragraph) {
            sentences.push(paragraph[begin..=found.start()].to_owned());
            begin = found.start() + 2;
        }
        sentences.push(paragraph[begin..].to_owned());
    }
    sentences
}

/// Collects lines into paragraphs.
#[derive(Default)]
struct Paragraphs(Vec<Vec<String>>);

impl Paragraphs {
    fn begin(&mut self, line: &str) {
        self.0.push(vec![line.to_owned()]);
    }

    fn go_on(&mut self, line: &str) {
        match self.0.last_mut() {
            Some(paragraph) if !paragraph.is_empty() => paragraph.push(line.to_owned()),
            _ => self.begin(line),
        }
    }

    fn end(&mut self) {
        self.0.push(Vec::new());
    }

    fn joined(self) -> Vec<String> {
        self.0.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join(" ")).collect()
    }
}

/// The paragraphs of comments, with list items of their own.
fn comments(text: &str) -> Vec<String> {
    let mut paragraphs = Paragraphs::default();
    for line in text.lines() {
        match line.trim().strip_prefix("///").map(str::trim) {
            None | Some("") => paragraphs.end(),
            Some(line) => match line.strip_prefix("- ") {
                Some(item) => paragraphs.begin(item),
                None => paragraphs.go_on(line),
            },
        }
    }
    paragraphs.joined()
}

/// The paragraphs of a page: list items, rows of tables, and comments of code are paragraphs too.
fn page(text: &str) -> Vec<String> {
    let item = Regex::new(r"^(- |\d+\. )").unwrap();
    let mut paragraphs = Paragraphs::default();
    let mut is_code = false;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        let is_head = line.starts_with("|--") || lines.get(at + 1).is_some_and(|next| next.starts_with("|--"));
        if line.starts_with("```") {
            is_code = !is_code;
            paragraphs.end();
        } else if is_code {
            if let Some((_, comment)) = line.split_once("# ") {
                paragraphs.begin(comment);
            }
        } else if line.is_empty() || line.starts_with('#') || is_head {
            paragraphs.end();
        } else if let Some(row) = line.strip_prefix('|') {
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            paragraphs.begin(&cells.join(": "));
            paragraphs.end();
        } else if let Some(found) = item.find(line) {
            paragraphs.begin(&line[found.end()..]);
        } else {
            paragraphs.go_on(line);
        }
    }
    paragraphs.joined()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
