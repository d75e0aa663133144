//! Attacks on the consent screen at a terminal: what a user sees last before the question.

use hermes_tests::{Home, staged_guest};
use serde_json::json;

/// Rows of the terminal that an attacker counts on.
const ROWS: usize = 24;

/// The screen of an installation, up to the question, and its lines. The question is denied.
fn shown(manifest: &serde_json::Value) -> Vec<String> {
    let home = Home::new();
    home.config("{}\n");
    // JSON is YAML.
    home.write_workspace("mine/plugin.yaml", manifest.to_string());
    home.write_workspace("mine/mine.wasm", staged_guest("keeper").1);
    let mut terminal = home.hermes(&["plugins", "install", "./mine"]).at_terminal();
    terminal.wait_for("? [y/N] ", 1);
    terminal.press("n\r");
    terminal.wait_for("nothing was changed", 1);
    assert_eq!(terminal.wait().code(), Some(1));
    assert!(!home.path().join("plugins/mine").exists());
    let text = terminal.shown().replace('\r', "");
    let end = text.find("? [y/N] ").unwrap();
    text[..end].lines().map(str::to_owned).collect()
}

fn manifest(more: serde_json::Value) -> serde_json::Value {
    let mut manifest = json!({"name": "mine", "version": "1.0.0"});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    manifest
}

/// Checks that the columns of the labels contain only labels of Hermes, and that no line is wrapped by the terminal.
fn no_forged_row(lines: &[String]) {
    const LABELS: [&str; 13] = [
        "plugin",
        "description",
        "source",
        "author",
        "license",
        "repository",
        "digest",
        "signed by",
        "exports",
        "ignored",
        "permissions",
        "dangerous",
        "in short",
    ];
    let question = lines.len() - 1;
    for line in lines[..question].iter().filter(|line| !line.starts_with("note:") && !line.starts_with("warning:")) {
        let label: String = line.chars().take(12).collect();
        let label = label.trim();
        let is_number = label.strip_suffix('.').is_some_and(|number| number.parse::<usize>().is_ok());
        assert!(label.is_empty() || label == "-" || is_number || LABELS.contains(&label), "{label:?} in {line:?}");
        assert!(line.chars().count() < 80, "{line:?}");
    }
}

#[test]
fn a_description_padded_with_blanks_forges_no_row() {
    let forged = format!("{}\u{2800} signed by the official key", "\u{2800}".repeat(56));
    for description in [
        format!("Looks at tea{forged}"),
        format!("Looks at tea{}  signed by the official key", "\u{3164}".repeat(28)),
        format!("Looks at tea {} permissions none", "x".repeat(54)),
        "Looks at tea\u{2028}  signed by the official key".to_owned(),
        "Looks at tea\u{202e}yek laiciffo eht yb dengis".to_owned(),
        "Looks at tea\u{e0041}\u{e0042}\u{200b}\u{feff}".to_owned(),
    ] {
        let lines = shown(&manifest(json!({"description": description, "author": description})));
        no_forged_row(&lines);
        let signed: Vec<&String> = lines.iter().filter(|line| line.starts_with("  signed by ")).collect();
        assert_eq!(signed.len(), 1, "{lines:?}");
        assert!(signed[0].contains("nobody"), "{lines:?}");
        let odd = |c: char| !c.is_ascii() && c != '×' && c != '…';
        assert!(!lines.iter().any(|line| line.chars().any(odd)), "{lines:?}");
    }
}

#[test]
fn two_hundred_permissions_leave_the_dangerous_ones_above_the_question() {
    let many = |pattern: &str| (0..64).map(|at| pattern.replace('%', &at.to_string())).collect::<Vec<_>>();
    let lines = shown(&manifest(json!({"permissions": {
        "history": true,
        "documents": many("%.md"),
        "env": many("NAME_%"),
        "process": many("tool-%"),
        "http": [{"url": "https://sink.example.org/", "methods": ["POST"]}],
    }})));
    no_forged_row(&lines);
    let screen = lines[lines.len() - ROWS + 1..].join("\n");
    for row in [
        "in short 130 dangerous permissions",
        "history: read and search your conversations",
        "http: send POST requests to https://sink.example.org/",
        "64 × process",
        "64 × env",
    ] {
        assert!(screen.contains(row), "{row} is not on the last screen:\n{screen}");
    }
    assert!(lines.iter().any(|line| line.contains("194, 130 of them dangerous")), "{lines:?}");
}

#[test]
fn unknown_fields_and_long_texts_push_nothing_away() {
    let mut more = json!({"description": "tea ".repeat(120), "permissions": {"history": true}});
    for at in 0..500 {
        more[format!("signed by key {at}")] = json!(true);
    }
    let lines = shown(&manifest(more));
    no_forged_row(&lines);
    assert!(lines.len() < 40, "{} lines", lines.len());
    assert!(lines.iter().any(|line| line.ends_with("and 495 more")), "{lines:?}");
}
