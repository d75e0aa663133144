//! The tables of `hermes cache` and `hermes prompt`, and the report of `hermes doctor`.

use hermes_tests::{Home, Reply, Server};
use serde_json::json;

const MODEL: &str = "anthropic/claude-sonnet-4.5";

/// The words of a line, without bars.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().filter(|word| !is_bar(word)).collect()
}

fn is_bar(word: &str) -> bool {
    word.chars().all(|character| character == '·' || ('▁'..='▏').contains(&character))
}

#[test]
fn hermes_cache_shows_requests_breaks_and_missing_prices() {
    let server = Server::scripted([
        Reply::text("Yes.").usage(10_000, 2).cached(0, 9_900),
        Reply::text("Yes.").usage(10_050, 2).cached(9_900, 100),
        Reply::text("Yes.").usage(10_100, 2).cached(0, 0),
    ]);
    let home = Home::with(&server);
    home.set("model.provider", json!("openrouter"));
    for (at, model) in [MODEL, MODEL, "unheard/of"].into_iter().enumerate() {
        let arguments = ["-z", "Go on.", "--model", model, "--continue"];
        home.hermes(if at == 0 { &arguments[..4] } else { &arguments }).run().success();
    }
    let id = home.newest_session();
    let shown = home.hermes(&["cache"]).run().success().stdout;
    assert_eq!(shown, home.hermes(&["cache", &id]).run().success().stdout);
    let ledger = home.cache_json(&id);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains(&id), "{shown}");

    let bytes = |at: usize, member: &str| ledger["requests"][at][member].as_u64().unwrap();
    for (at, (read, why)) in
        [("0/10,000", "first-request"), ("9,900/10,050", ""), ("0/10,100", "model-change:")].into_iter().enumerate()
    {
        let number = (at + 1).to_string();
        let row = lines.iter().find(|line| words(line).first() == Some(&number.as_str())).expect(&shown);
        let words = words(row);
        let share = bytes(at, "prefix_bytes") as f64 * 100.0 / bytes(at, "bytes") as f64;
        assert_eq!(words[1], format!("{share:.1}%"), "{row}");
        assert_eq!(words[2].replace(',', ""), bytes(at, "bytes").to_string(), "{row}");
        assert_eq!(words[3], read, "{row}");
        assert_eq!(words[4].starts_with('$'), at < 2, "{row}");
        assert_eq!(words.get(5).copied().unwrap_or_default(), why, "{row}");
        let bar: Vec<char> = row.split_whitespace().find(|word| is_bar(word)).expect(row).chars().collect();
        let full = bar.iter().filter(|column| **column == '█').count() as f64;
        let columns = share / 100.0 * bar.len() as f64;
        assert!((columns - full).abs() <= 1.0, "a bar as long as what stayed: {row}");
    }
    assert!(shown.contains("3 requests, 1 break;"), "{shown}");
    // The sum is of two requests, and says so.
    let costs: f64 = ledger["requests"].as_array().unwrap().iter().filter_map(|request| request["cost"].as_f64()).sum();
    assert!((ledger["cost"].as_f64().unwrap() - costs).abs() < 1e-9);
    assert!(shown.contains(&format!("cost ${costs:.4};")), "{shown}");
    let unpriced = lines.iter().find(|line| line.contains("1 request ") && line.contains("price"));
    assert!(unpriced.is_some(), "nothing is said of the request without a known price:\n{shown}");
}

#[test]
fn the_prompt_is_shown_by_tier_and_layer_with_the_share_of_each() {
    let server = Server::scripted([]);
    let home = Home::with(&server);
    home.write_workspace("AGENTS.md", "Count every ferry.\n".repeat(100));
    let shown = home.hermes(&["prompt"]).run().success().stdout;
    let json = home.hermes(&["prompt", "--json"]).run().success().stdout;
    let prompt: serde_json::Value = serde_json::from_str(&json).unwrap();
    let layers = prompt["layers"].as_array().unwrap();

    let lines: Vec<&str> = shown.lines().collect();
    let tiers: Vec<&str> = lines.iter().filter(|line| !line.starts_with(' ')).map(|line| words(line)[0]).collect();
    assert_eq!(tiers, ["tools", "stable", "context", "volatile"], "{shown}");
    let number = |word: &str| word.replace(',', "").parse::<u64>().unwrap_or_else(|_| panic!("no number: {word}"));
    let (total, rows) = lines.split_last().unwrap();
    assert_eq!(rows.len(), layers.len() + 1, "a row for the tools and each layer:\n{shown}");
    assert!(rows.iter().all(|row| row.split_whitespace().filter(|word| is_bar(word)).count() == 1), "{shown}");
    let mut sum = prompt["tool_tokens"].as_u64().unwrap();
    for (row, layer) in rows[1..].iter().zip(layers) {
        let (name, tokens) = (layer["layer"].as_str().unwrap(), layer["tokens"].as_u64().unwrap());
        assert!(row.contains(name), "{name} is not in: {row}");
        assert_eq!(number(words(row).iter().rev().nth(1).unwrap()), tokens, "{row}");
        sum += tokens;
    }
    assert_eq!(number(words(total)[0]), sum, "{total}");
    let of_file = rows.iter().find(|row| row.contains("AGENTS.md")).expect(&shown);
    let share: f64 = words(of_file).last().unwrap().trim_end_matches('%').parse().unwrap();
    let tokens = number(words(of_file).iter().rev().nth(1).unwrap());
    assert!((share - tokens as f64 * 100.0 / sum as f64).abs() < 0.06, "{of_file}");
    assert!(server.requests().is_empty());
}

#[cfg(unix)]
#[test]
fn the_report_of_doctor_is_broken_between_words_below_what_was_found() {
    let home = Home::new();
    let mut terminal = home.hermes(&["doctor"]).at_terminal_of(60, 50);
    terminal.wait();
    let rows = terminal.rows();
    assert!(rows.iter().all(|row| row.chars().count() < 60), "{rows:#?}");
    let fix = rows.iter().position(|row| row.starts_with("               fix: run `hermes setup`")).unwrap();
    assert!(rows[fix + 1].starts_with("                    ") && rows[fix + 1].len() > 20, "{rows:#?}");
    let begins = |row: &String| ["ok   ", "warn ", "fail "].iter().any(|word| row.starts_with(word));
    assert!(rows.iter().all(|row| begins(row) || row.starts_with("               ")), "{rows:#?}");
}
