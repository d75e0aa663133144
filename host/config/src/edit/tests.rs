#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::text::{at, list, read};
use super::*;

fn edit(text: &str) -> Edit {
    Edit { file: PathBuf::from("config.yaml"), before: text.to_owned(), text: text.to_owned() }
}

const FILE: &str = "\
# My own.
model:
  default: big   # the one I like
plugins:
  # Those that I use.
  enabled:
    - audit  # for work
    - notes
  entries:
    audit:
      level: 3

context: {engine: lossless} # for now
";

#[test]
fn lists_change_and_comments_stay() {
    let mut file = edit(FILE);
    file.add("plugins.enabled", "dice").unwrap();
    file.add("plugins.enabled", "notes").unwrap();
    file.add("plugins.disabled", "files").unwrap();
    assert_eq!(
        file.text,
        FILE.replace("    - notes\n", "    - notes\n    - dice\n")
            .replace("      level: 3\n", "      level: 3\n  disabled: [files]\n")
    );
    file.take("plugins.enabled", "dice").unwrap();
    file.take("plugins.disabled", "files").unwrap();
    assert_eq!(file.text, FILE);
    assert!(!file.is_changed());
}

#[test]
fn values_are_set_and_taken_away() {
    let mut file = edit(FILE);
    file.set("context.engine", &json!("compressor")).unwrap();
    file.set("memory.provider", &json!("mem0")).unwrap();
    file.set("plugins.entries.dice", &json!({"sides": 20})).unwrap();
    assert!(file.text.contains("engine: compressor} # for now"), "{}", file.text);
    assert!(file.text.contains("# the one I like") && file.text.contains("# Those that I use."), "{}", file.text);
    for (key, value) in [
        ("memory.provider", json!("mem0")),
        ("plugins.entries.dice.sides", json!(20)),
        ("plugins.entries.audit.level", json!(3)),
    ] {
        assert_eq!(at(&read(&file.text).unwrap(), &names(key)), Some(&value), "{key}");
    }
    file.set("context.engine", &json!("lossless")).unwrap();
    file.remove("memory.provider").unwrap();
    file.remove("plugins.entries.dice").unwrap();
    assert_eq!(file.text, FILE);
}

#[test]
fn files_of_odd_forms_are_changed_or_left() {
    for text in [
        "",
        "# nothing yet\n",
        "plugins:\n",
        "plugins: {}\n",
        "plugins:\n  enabled:\n",
        "plugins: {enabled: []}",
        "model: x",
        "---\nmodel: x\n",
        "plugins:\n  enabled: [a, b] # c\n",
        "plugins:\n- 1\n",
        "plugins:\n  enabled: |\n    a\n",
    ] {
        let mut file = edit(text);
        let known = list(text, &["plugins", "enabled"]);
        match file.add("plugins.enabled", "dice") {
            Ok(()) => {
                let mut wanted = known.clone();
                wanted.push(json!("dice"));
                assert_eq!(list(&file.text, &["plugins", "enabled"]), wanted, "{text:?} {:?}", file.text);
                for line in text.lines().filter(|line| line.starts_with('#')) {
                    assert!(file.text.contains(line), "{:?}", file.text);
                }
            }
            Err(_) => {
                assert_eq!(file.text, text);
                assert!(text.contains("- 1") || text.contains('|'), "{text:?}");
            }
        }
    }
}

/// Other margins than two blanks once took the whole section through a writer, and its comments with it; words that are
/// more than words were written bare.
#[test]
fn margins_comments_marks_and_line_ends_stay_as_they_are() {
    let dice = json!({"sides": {"count": 6, "names": ["y", "z"]}});
    for (text, added, set) in [
        (
            "plugins:\n enabled:\n - x # why\n\n# the end\n",
            "plugins:\n enabled:\n - x # why\n - \"y\"\n\n# the end\n",
            "plugins:\n enabled:\n - x # why\n entries:\n   dice:\n     sides:\n       count: 6\n       names: [\"y\", z]\n\n# the end\n",
        ),
        (
            "plugins:\n    # mine\n    entries:\n        a: {b: 1}\n# the end",
            "plugins:\n    # mine\n    entries:\n        a: {b: 1}\n    enabled: [\"y\"]\n# the end",
            "plugins:\n    # mine\n    entries:\n        a: {b: 1}\n        dice:\n          sides:\n            count: 6\n            names: [\"y\", z]\n# the end",
        ),
        (
            "plugins: {} # none yet\r\n",
            "plugins: # none yet\r\n  enabled: [\"y\"]\r\n",
            "plugins: # none yet\r\n  entries:\r\n    dice:\r\n      sides:\r\n        count: 6\r\n        names: [\"y\", z]\r\n",
        ),
        (
            "\u{feff}plugins: # mine\nmodel: x\n",
            "\u{feff}plugins: # mine\n  enabled: [\"y\"]\nmodel: x\n",
            "\u{feff}plugins: # mine\n  entries:\n    dice:\n      sides:\n        count: 6\n        names: [\"y\", z]\nmodel: x\n",
        ),
    ] {
        let mut file = edit(text);
        file.add("plugins.enabled", "y").unwrap();
        assert_eq!(file.text, added);
        let mut file = edit(text);
        file.set("plugins.entries.dice", &dice).unwrap();
        assert_eq!(file.text, set);
        file.remove("plugins.entries.dice").unwrap();
        assert_eq!(list(&file.text, &["plugins", "enabled"]), list(text, &["plugins", "enabled"]));
        assert_eq!(read(&file.text).unwrap()["model"], read(text).unwrap()["model"]);
    }
}

#[test]
fn an_impossible_change_says_what_to_write_by_hand() {
    let failure = edit("plugins: [a]\n").set("plugins.entries.dice", &json!({"sides": 6})).unwrap_err();
    let told = format!("{failure:?}");
    assert!(told.contains("plugins.entries.dice") && told.contains("sides"), "{told}");
    assert!(edit("a: [\n").remove("a").is_err());
}
