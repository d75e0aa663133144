//! `search_files`: finds lines by regular expression, or files by name.

use hermes_plugin::Error;
use hermes_plugin::files::{self, Findings, Found, Kind, Pattern};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ROOT, count, number, parameters as schema, path};

const RESULTS: u64 = 50;
const MOST_RESULTS: u64 = 200;
/// Begins an expression that asks the host to say, too, what it did not search; see `wit/README.md`. Other hosts ignore it.
const UNSEARCHED: &str = "(?<unsearched>){0}";

pub(crate) const DESCRIPTION: &str = "Search the workspace: lines by a regular expression, or, with target `files`, files \
    by name. Lines come as `number|text` under the path of their file. Left out is what ignore files name, hidden \
    files unless glob or path name them, and binary files.";

pub(crate) fn parameters() -> Value {
    schema(
        json!({
            "pattern": {
                "type": "string",
                "description": "A regular expression for lines; for files a glob such as `*.rs`, or a part of the name.",
            },
            "target": { "type": "string", "enum": ["content", "files"], "description": "Default: content." },
            "path": { "type": "string", "description": "A folder or file; default: all." },
            "glob": { "type": "string", "description": "Only files such as `*.rs` or `src/**/*.toml`." },
            "ignore_case": { "type": "boolean" },
            "limit": { "type": "integer", "minimum": 1, "maximum": MOST_RESULTS },
            "offset": { "type": "integer", "minimum": 0, "description": "Results to skip." },
        }),
        &["pattern"],
    )
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    pattern: String,
    #[serde(default)]
    target: Option<Target>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: Option<bool>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
    #[serde(default, deserialize_with = "number")]
    offset: Option<u64>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Content,
    Files,
}

pub(crate) fn run(arguments: &Arguments) -> Result<String, Error> {
    if arguments.pattern.is_empty() {
        return Err(Error::invalid("pattern is empty: give what to search for"));
    }
    let target = arguments.target.unwrap_or_default();
    let mut root = ROOT;
    let within = match arguments.path.as_deref() {
        None | Some("") => Within::Folder(String::new()),
        Some(written) => {
            let path;
            (root, path) = path::locate_readable(written)?;
            match files::stat(root, &path)?.kind {
                Kind::Directory => Within::Folder(path),
                _ => Within::File(path),
            }
        }
    };
    let glob = match target {
        Target::Content => within.glob(arguments.glob.as_deref().unwrap_or("**/*")),
        Target::Files => within.glob(&name_glob(&arguments.pattern)),
    };
    let pattern = (target == Target::Content).then(|| Pattern {
        regex: format!("{UNSEARCHED}{}", arguments.pattern),
        ignore_case: arguments.ignore_case.unwrap_or_default(),
    });
    let limit = arguments.limit.unwrap_or(RESULTS).clamp(1, MOST_RESULTS) as u32;
    let offset = u32::try_from(arguments.offset.unwrap_or(0)).unwrap_or(u32::MAX);
    let findings = files::search(root, &glob, pattern.as_ref(), offset, limit)?;
    Ok(show(&findings, target, &glob, offset))
}

enum Within {
    Folder(String),
    File(String),
}

impl Within {
    /// The glob relative to the workspace root.
    fn glob(&self, glob: &str) -> String {
        match self {
            Self::File(path) => escape(path),
            Self::Folder(folder) => {
                let glob = glob.strip_prefix("./").unwrap_or(glob);
                let glob = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
                if folder.is_empty() { glob } else { format!("{}/{glob}", escape(folder)) }
            }
        }
    }
}

/// Turns plain text into a glob that matches it anywhere in the last path components; a glob stays as it is.
fn name_glob(pattern: &str) -> String {
    if pattern.contains(['*', '?', '[', '{']) { pattern.to_owned() } else { format!("**/*{}*", escape(pattern)) }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '*' | '?' | '[' | ']' | '{' | '}' | '!' => escaped.extend(['[', letter, ']']),
            '\\' => escaped.push_str("\\\\"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn show(findings: &Findings, target: Target, glob: &str, offset: u32) -> String {
    let what = if target == Target::Files { "file" } else { "line" };
    // With a pattern, line 0 says what was not searched.
    let is_note = |found: &&Found| target == Target::Content && found.line == 0;
    let (notes, results): (Vec<&Found>, Vec<&Found>) = findings.found.iter().partition(is_note);
    let notes: Vec<&str> = notes.iter().map(|found| found.text.as_str()).collect();
    let not_searched = match notes.as_slice() {
        [] => String::new(),
        notes => format!("\n[not searched: {}]", notes.join("; ")),
    };
    if results.is_empty() {
        return match offset {
            0 => format!("[no {what} found in {glob}; ignored and hidden files are left out]{not_searched}"),
            _ => format!("[no {what} after the first {offset}]{not_searched}"),
        };
    }
    let mut shown = String::new();
    let mut file = None;
    for found in &results {
        if file != Some(&found.path) {
            shown.push_str(&found.path);
            shown.push('\n');
            file = Some(&found.path);
        }
        if target == Target::Content {
            shown.push_str(&format!("{}|{}\n", found.line, found.text));
        }
    }
    let found = results.len() as u64;
    shown.push_str(&format!("[{}", count(found, what)));
    if findings.more {
        let next = u64::from(offset) + found;
        shown.push_str(&format!(", and there are more: continue with offset {next}, or narrow the search"));
    }
    shown.push(']');
    shown.push_str(&not_searched);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_relative_to_the_folder() {
        let root = || Within::Folder(String::new());
        let folder = || Within::Folder("src/[id]".into());
        for (within, glob, expected) in [
            (root(), "**/*", "**/*"),
            (root(), "*.rs", "**/*.rs"),
            (root(), "./src/*.rs", "src/*.rs"),
            (folder(), "*.rs", "src/[[]id[]]/**/*.rs"),
            (folder(), "a/*.rs", "src/[[]id[]]/a/*.rs"),
            (Within::File("a*b.txt".into()), "*.rs", "a[*]b.txt"),
        ] {
            assert_eq!(within.glob(glob), expected);
        }
    }

    #[test]
    fn a_plain_name_matches_anywhere_and_a_glob_as_written() {
        assert_eq!(name_glob("*.toml"), "*.toml");
        assert_eq!(name_glob("main"), "**/*main*");
        assert_eq!(name_glob("src/main"), "**/*src/main*");
    }

    fn found(path: &str, line: u32, text: &str) -> Found {
        Found { path: path.into(), line, text: text.into() }
    }

    #[test]
    fn lines_are_listed_under_their_file() {
        let findings = Findings {
            found: vec![found("a.rs", 1, "use x;"), found("a.rs", 7, "x()"), found("b.rs", 2, "x")],
            more: true,
        };
        assert_eq!(
            show(&findings, Target::Content, "**/*", 50),
            "a.rs\n1|use x;\n7|x()\nb.rs\n2|x\n[3 lines, and there are more: continue with offset 53, or narrow the search]"
        );
    }

    #[test]
    fn what_was_not_searched_is_said_in_one_line() {
        let notes = || [found("b.png", 0, "2 binary files"), found("c", 0, "c cannot be read")];
        let findings = Findings { found: [vec![found("a.rs", 1, "x")], notes().into()].concat(), more: false };
        assert_eq!(
            show(&findings, Target::Content, "**/*", 0),
            "a.rs\n1|x\n[1 line]\n[not searched: 2 binary files; c cannot be read]"
        );
        let none = Findings { found: notes().into(), more: false };
        assert_eq!(
            show(&none, Target::Content, "**/*", 0),
            "[no line found in **/*; ignored and hidden files are left out]\n[not searched: 2 binary files; c cannot be read]"
        );
    }

    #[test]
    fn files_are_listed_by_path_and_an_empty_result_says_what_was_skipped() {
        let findings = Findings { found: vec![found("a.rs", 0, ""), found("b.rs", 0, "")], more: false };
        assert_eq!(show(&findings, Target::Files, "*.rs", 0), "a.rs\nb.rs\n[2 files]");
        let none = Findings { found: Vec::new(), more: false };
        assert!(show(&none, Target::Content, "src/**/*", 0).contains("no line found in src/**/*; ignored"));
        assert_eq!(show(&none, Target::Files, "*.rs", 40), "[no file after the first 40]");
    }
}
