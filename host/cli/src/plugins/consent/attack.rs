//! Attacks on the consent screen: rows that a plugin forges, hides or pushes away.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::invariants::in_its_column;

const TITLES: Titles<'static> = Titles { none: "none", some: "requested by the plugin" };
const ROWS: usize = 24;

fn sheet(columns: usize) -> ConsentScreen {
    ConsentScreen::new(Console::plain(true), Some(columns))
}

fn permissions(json: &serde_json::Value) -> Permissions {
    serde_json::from_value(json.clone()).unwrap()
}

/// The agreement on a terminal with 80 columns.
fn asked(json: &serde_json::Value, native: Option<&str>) -> Vec<String> {
    let mut sheet = sheet(80);
    sheet.agreement(&permissions(json), &LimitSet::default(), native, TITLES);
    sheet.lines()
}

#[test]
fn a_description_cannot_forge_a_row() {
    let signed = "signed by key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    for padding in [
        "\u{2800}".repeat(57),
        " ".repeat(57),
        "\u{a0}".repeat(57),
        "\u{3000}".repeat(29),
        "\u{3164}".repeat(29),
        "\n".to_owned(),
        "\r\n  ".to_owned(),
        "\u{2028}".to_owned(),
        "\u{85}".to_owned(),
        "\u{b}".to_owned(),
        "\u{1b}[1E".to_owned(),
        "\u{9b}1E".to_owned(),
        "\u{200b}".repeat(100),
        ". ".repeat(28),
        "x".repeat(57),
        format!("{} ", "x".repeat(67)),
        "漢".repeat(28),
        "👩\u{200d}💻".repeat(20),
        "\u{e0041}".repeat(40),
        "e\u{301}\u{301}\u{301}\u{301}".repeat(40),
    ] {
        for width in [20, 36, 37, 40, 80, 81, 132] {
            let mut sheet = sheet(width);
            let margin = sheet.margin();
            sheet.row("description", &format!("Looks at tea{padding}  {signed}{padding}permissions none"));
            in_its_column(&sheet.lines(), width, margin, &["description"]);
        }
    }
}

#[test]
fn names_sources_and_fields_cannot_forge_a_row() {
    let mut sheet = sheet(80);
    for label in ["author", "license", "repository", "source", "resolved", "unknown"] {
        sheet.row(label, &format!("{} 1. ask nothing {}", "word ".repeat(13), "y".repeat(300)));
    }
    in_its_column(&sheet.lines(), 80, MARGIN, &["author", "license", "repository", "source", "resolved", "unknown"]);
}

#[test]
fn a_source_is_never_cut() {
    let host = "@127.0.0.1:8080/mine.tar.gz";
    let mut sheet = sheet(80);
    sheet.whole("source", &format!("http://github.com%2Fhermes%2F{}{host}", "a".repeat(3_000)));
    let lines = sheet.lines();
    in_its_column(&lines, 80, MARGIN, &["source"]);
    let shown: String = lines.iter().map(|line| line[MARGIN..].to_owned()).collect();
    assert!(shown.ends_with(host) && !shown.contains("more character"), "{shown}");
}

#[test]
fn text_without_a_grant_is_cut_and_counted() {
    let mut sheet = sheet(80);
    sheet.row("description", &"\u{2800}a".repeat(500));
    sheet.list("unknown", &vec!["field".to_owned(); 10_000]);
    let lines = sheet.lines();
    assert!(lines.len() <= 16, "{}", lines.len());
    assert!(lines.iter().any(|line| line.contains("more characters")), "{lines:?}");
    assert!(lines.last().unwrap().ends_with("and 9995 more"), "{lines:?}");
}

#[test]
fn dangerous_permissions_come_last_numbered_after_their_count() {
    let lines = asked(
        &serde_json::json!({
            "history": true, "sql": true, "llm": true, "process": ["sh"], "hooks": true,
            "http": [{"url": "https://api.example.org/", "methods": ["POST"]}],
            "documents": ["a.md", "b.md"],
        }),
        Some("it can do everything"),
    );
    assert!(lines[0].ends_with("requested by the plugin: 9, 5 of them dangerous"), "{lines:?}");
    let count = lines.iter().position(|line| line.trim_start().starts_with("dangerous 5 with access")).unwrap();
    let text = lines[count..].join("\n");
    for row in ["5. read and search your conversations", "POST requests", "program sh", "9. run as a native library"] {
        assert!(text.contains(row), "{row} is not in {text}");
    }
    for row in ["1. ask your models", "keep a database", "document b.md"] {
        assert!(lines[..count].join("\n").contains(row), "{row}");
    }
    in_its_column(&lines, 80, MARGIN, &["permissions", "dangerous"]);
    let numbers: Vec<usize> =
        lines.iter().filter_map(|line| line.trim_start().split_once(". ")?.0.parse().ok()).collect();
    assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
}

#[test]
fn two_hundred_rows_do_not_push_a_permission_off_the_screen() {
    let many = |pattern: &str| (0..64).map(|at| pattern.replace('%', &at.to_string())).collect::<Vec<_>>();
    let http: Vec<_> = many("https://%.example.org/")
        .into_iter()
        .map(|url| serde_json::json!({"url": url, "methods": ["POST"]}))
        .collect();
    let lines = asked(
        &serde_json::json!({
            "history": true, "documents": many("%.md"), "process": many("/bin/%"), "env": many("NAME_%"), "http": http,
        }),
        None,
    );
    assert!(lines[0].contains("257"), "{}", lines[0]);
    let screen = lines[lines.len() - (ROWS - 2)..].join("\n");
    for row in [
        "in short 193 dangerous permissions",
        "1 × history: read and search your conversations",
        "64 × http: send POST requests to https://0.example.org/",
        "64 × process: run the program",
        "64 × env: read the variable NAME_0",
    ] {
        assert!(screen.contains(row), "{row} is not in {screen}");
    }
    // Everything is listed above, nothing is left out.
    assert!(lines.iter().any(|line| line.contains("NAME_63")) && lines.iter().any(|line| line.contains("63.md")));
    in_its_column(&lines, 80, MARGIN, &["permissions", "dangerous", "in short", "-"]);
}

#[test]
fn one_very_long_row_does_not_push_the_others_off_the_screen() {
    let long = format!("https://{}.example.org/{}", "a".repeat(60), "b/".repeat(2_000));
    let lines =
        asked(&serde_json::json!({"hooks": true, "history": true, "http": [{"url": long, "methods": ["GET"]}]}), None);
    let screen = lines[lines.len() - 6..].join("\n");
    for row in ["in short 3", "1 × history", "1 × hooks", "1 × http"] {
        assert!(screen.contains(row), "{row} is not in {screen}");
    }
    in_its_column(&lines, 80, MARGIN, &["permissions", "dangerous", "in short", "-"]);
}

#[test]
fn limits_are_no_place_to_hide_a_permission() {
    let limits = hermes_app::plugins::LIMITS;
    let limits = limits.iter().fold(LimitSet::default(), |set, limit| set.and(limit.limit, limit.most));
    let mut sheet = sheet(80);
    sheet.agreement(&permissions(&serde_json::json!({"history": true})), &limits, None, TITLES);
    let lines = sheet.lines();
    assert!(lines.last().unwrap().contains("read and search your conversations"), "{lines:?}");
}

#[test]
fn no_permission_is_one_line() {
    assert_eq!(asked(&serde_json::json!({}), None), ["permissions none"]);
}
