//! `hermes plugins doctor` explains everything that keeps a plugin or a tool from a session, with cause and fix.

use hermes_tests::{Home, Reply, Server, renamed, staged_guest};
use serde_json::{Value, json};

use crate::fixtures::grant_untried;

/// A home where bundled plugins need no compilation.
fn warm() -> Home {
    Home::with(&Server::answering(|_, _| Reply::text("Nobody asks.")))
}

/// Its report and exit code.
fn examined(home: &Home) -> (Value, Option<i32>) {
    let output = home.hermes(&["plugins", "doctor", "--json"]).run();
    let report = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"));
    (report, output.status.code())
}

fn block<'a>(report: &'a Value, name: &str) -> &'a Value {
    let blocks = report["plugins"].as_array().unwrap();
    blocks.iter().find(|block| block["name"] == name).unwrap_or_else(|| panic!("`{name}` is not in {report:#}"))
}

/// Its findings, each as `severity case`.
fn cases(report: &Value, name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = block(report, name)["findings"].as_array().unwrap();
    findings.iter().map(|found| format!("{} {}", text(&found["severity"]), text(&found["case"]))).collect()
}

/// Everything reported about a plugin.
fn findings_of(report: &Value, name: &str) -> String {
    block(report, name)["findings"].to_string()
}

#[test]
fn a_new_home_has_nothing_wrong_and_is_not_made() {
    let home = Home::new();
    let (report, code) = examined(&home);
    assert_eq!((&report["problems"], code), (&json!(0), Some(0)), "{report:#}");
    assert!(block(&report, "files")["tools"].as_array().unwrap().contains(&json!("read_file")), "{report:#}");
    for (name, part) in [("audit", "plugins.enabled"), ("lossless", "context.engine is `compressor`")] {
        assert_eq!(cases(&report, name), ["note off"]);
        assert!(findings_of(&report, name).contains(part) && block(&report, name)["on"] == false, "{report:#}");
    }
    assert!(findings_of(&report, "mem0").contains("requests to the address in `host` of its section"), "{report:#}");
    assert!(findings_of(&report, "lossless").contains("`outline`"), "tools that are off with it are named: {report:#}");
    assert!(!home.path().exists());
}

#[test]
fn every_problem_of_a_plugin_is_reported_with_a_fix() {
    let home = warm();
    home.write("plugins/stray/notes.txt", "no plugin");
    home.write("plugins/broken/plugin.yaml", "name: broken\nversion: one\n");
    home.write("plugins/tools/unbuilt/plugin.yaml", "name: unbuilt\n");
    home.write("plugins/newer/plugin.yaml", "name: newer\napi: ^9\n");
    home.write("plugins/junk/plugin.yaml", "name: junk\nshape: round\n");
    home.write("plugins/junk/junk.wasm", "no component");
    for name in ["junk", "changed", "revoked", "gone", "sly"] {
        if name != "junk" {
            home.put_guest("keeper", &format!("plugins/{name}"), name);
        }
        if name == "sly" {
            let manifest = home.read("plugins/sly/plugin.yaml");
            home.write("plugins/sly/plugin.yaml", manifest + "provides: [hooks]\n");
        }
        grant_untried(&home, name);
    }
    home.write("plugins/changed/more.txt", "added");
    home.hermes(&["plugins", "revoke", "revoked"]).run().success();
    std::fs::remove_dir_all(home.path().join("plugins/gone")).unwrap();
    home.put_guest("keeper", "plugins/handmade", "handmade");
    home.put_guest("clerk", "plugins/files", "files");
    home.install_guest("clerk", "meek", json!({}));
    home.hermes(&["plugins", "revoke", "meek", "sql"]).run().success();
    let (manifest, component) = staged_guest("courier");
    home.write("plugins/courier/plugin.yaml", renamed(&manifest, "courier") + "requires_env: [HERMES_T_REGION]\n");
    home.write("plugins/courier/courier.wasm", component);
    home.grant("courier");
    home.set("plugins.entries.courier", json!({"region": "${COURIER_REGION}"}));
    home.set("plugins.enabled", json!(["courier", "meek", "junk", "adit"]));
    home.set("context.engine", json!("compresor"));
    home.set("memory.provider", json!("local"));

    let (report, code) = examined(&home);
    assert_eq!(code, Some(1));
    for (name, expected, parts) in [
        ("stray", &["problem no-manifest"][..], &["plugin.yaml", "move the folder away"][..]),
        ("broken", &["problem manifest"], &["broken/plugin.yaml", "line 2", "write a version such as 1.2.0"]),
        ("unbuilt", &["problem no-component"], &["build it"]),
        ("newer", &["problem contract"], &["^9", "update"]),
        (
            "junk",
            &["problem component", "note field"],
            &["not a WebAssembly component", "plugins disable junk", "`shape` (line 2)"],
        ),
        ("changed", &["problem altered"], &["changed since you allowed it", "plugins grant changed"]),
        ("revoked", &["problem revoked"], &["plugins grant revoked"]),
        ("gone", &["problem not-installed"], &["put the folder back"]),
        ("sly", &["problem claims"], &["provides hooks", "correct `provides`"]),
        ("handmade", &["problem ungranted"], &["plugins grant handmade"]),
        ("files", &["problem twice"], &["plugins.settings.files.source: installed"]),
        ("meek", &["note permission"], &["keep a database of its own", "plugins grant meek"]),
        (
            "courier",
            &["problem variable", "problem variable", "problem secret"],
            &["COURIER_REGION", "HERMES_T_REGION", "COURIER_TOKEN", ".env"],
        ),
        ("compresor", &["problem unknown"], &["context.engine", "correct it to `compressor`"]),
        ("adit", &["problem unknown"], &["plugins.enabled", "correct it to `audit`"]),
        ("local", &["problem other-kind"], &["memory.provider", "skills"]),
        ("compressor", &["note off"], &["context.engine is `compresor`"]),
    ] {
        assert_eq!(cases(&report, name), expected, "{name}: {:#}", block(&report, name));
        let found = findings_of(&report, name);
        assert!(parts.iter().all(|part| found.contains(part)), "{name}: {parts:?} are not all in {found}");
    }
    for finding in report["plugins"].as_array().unwrap().iter().flat_map(|block| block["findings"].as_array().unwrap())
    {
        let is_told = ["what", "why", "fix"].iter().all(|part| !finding[part].as_str().unwrap().is_empty());
        assert!(is_told, "{finding:#}");
    }

    let stdout = home.hermes(&["plugins", "doctor"]).run().exits(1).stdout;
    let count = |label: &str| stdout.lines().filter(|line| line.trim_start().starts_with(label)).count();
    let (problems, notes) = (count("problem:"), count("note:"));
    assert_eq!((count("why:"), count("fix:")), (problems + notes, problems + notes), "{stdout}");
    assert!(stdout.ends_with(&format!("{problems} problems, {notes} notes\n")), "{stdout}");

    // The general doctor reports problems of plugins too.
    let stdout = home.hermes(&["doctor"]).run().exits(1).stdout;
    for part in ["no context engine `compresor`", "`handmade`: it cannot run", "`adit`: it does not exist", "`stray`"] {
        assert!(stdout.contains(part), "`{part}` is not in\n{stdout}");
    }
}

#[test]
fn a_missing_or_forbidden_tool_is_reported() {
    let home = warm();
    for name in ["one", "two"] {
        home.install_guest("clerk", name, json!({}));
    }
    home.set("plugins.enabled", json!(["one", "two"]));
    home.set("approvals.deny", json!(["one/query"]));
    let (report, code) = examined(&home);
    assert_eq!(code, Some(1));
    // Neither of two strangers gets a tool that both offer, until the user chooses.
    for (name, other) in [("one", "two"), ("two", "one")] {
        assert_eq!(cases(&report, name), ["problem tool"; 7], "{report:#}");
        let findings = block(&report, name)["findings"].as_array().unwrap();
        let search = findings.iter().find(|found| found["tool"] == "search").unwrap().to_string();
        assert!(search.contains(&format!("`{other}` offers a tool with the same name")), "{search}");
        assert!(search.contains(&format!("`tools: {{search: {name}}}` under `plugins`")), "{search}");
    }

    let tools = ["query", "execute", "repeat", "store", "peruse", "chatter", "search"];
    let chosen: serde_json::Map<String, Value> =
        tools.map(|tool| (tool.to_owned(), json!("one"))).into_iter().collect();
    home.set("plugins.tools", Value::Object(chosen));
    let (report, code) = examined(&home);
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(block(&report, "one")["tools"].as_array().unwrap().len(), tools.len());
    assert_eq!(cases(&report, "one"), ["note denied"]);
    assert!(findings_of(&report, "one").contains("approvals.deny lists `one/query`"), "{report:#}");
    assert!(cases(&report, "two").is_empty(), "{report:#}");

    home.set("plugins.enabled", json!(["two"]));
    home.set("approvals.deny", json!(["two"]));
    let (report, code) = examined(&home);
    assert_eq!((code, cases(&report, "two")), (Some(0), vec!["note denied".to_owned()]), "{report:#}");
    assert_eq!(cases(&report, "one"), ["note off"]);
    assert!(findings_of(&report, "one").contains("`search`"), "{report:#}");
}

#[test]
fn a_deny_rule_that_forbids_nothing_is_a_failure_with_the_nearest_tool() {
    let home = warm();
    home.install_guest("clerk", "one", json!({}));
    home.set("plugins.enabled", json!(["one"]));
    for (entry, fix) in [
        ("files/write_fil", "correct it to `files/write_file`"),
        ("one/qury", "correct it to `one/query`"),
        ("fils/write_file", "correct it to `files/write_file`"),
        ("terminal/process:bsh", "correct it to `terminal/process:bash`"),
        ("hermes/clarfy", "correct it to `hermes/clarify`"),
    ] {
        home.set("approvals.deny", json!([entry]));
        let stdout = home.hermes(&["doctor"]).run().exits(1).stdout;
        let failed =
            stdout.lines().position(|line| line.starts_with("fail approvals")).unwrap_or_else(|| panic!("{stdout}"));
        let lines: Vec<&str> = stdout.lines().skip(failed).take(2).collect();
        assert!(lines[0].contains(&format!("`{entry}`")) && lines[1].contains(fix), "{lines:?}");
        let (report, code) = examined(&home);
        assert_eq!(code, Some(1), "{report:#}");
        assert!(report.to_string().contains("useless-rule"), "{report:#}");
    }
    home.set(
        "approvals.deny",
        json!(["files/write_file", "one/query", "terminal", "hermes/clarify", "files/files:unread"]),
    );
    let stdout = home.hermes(&["doctor"]).run().stdout;
    assert!(!stdout.contains("fail approvals"), "{stdout}");
}

#[test]
fn a_broken_skill_is_reported_and_the_model_never_sees_it() {
    let server = Server::answering(|_, _| Reply::text("Hm."));
    let home = Home::with(&server);
    home.write("skills/bad/SKILL.md", "---\nname: Bad Name!!\ndescription\n---\nno\n");
    home.write("skills/dull/SKILL.md", "---\nname: dull\n---\n# Dull\n");
    home.write("skills/good/SKILL.md", "---\nname: good\ndescription: Does good.\n---\n");
    let (report, code) = examined(&home);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(cases(&report, "local"), ["problem skill"; 2]);
    let findings = findings_of(&report, "local");
    assert!(findings.contains("skill in bad: its name `Bad Name!!`"), "{findings}");
    assert!(findings.contains("skill in dull: it has no description"), "{findings}");
    let stdout = home.hermes(&["doctor"]).run().stdout;
    assert!(stdout.contains("`local`: one of its skills has a mistake"), "{stdout}");
    home.hermes(&["-z", "Hello."]).run().success();
    let prompt = server.last_turn().system_text();
    assert!(prompt.contains("Does good.") && !prompt.contains("Bad Name") && !prompt.contains("dull"), "{prompt}");

    home.write("skills/bad/SKILL.md", "---\nname: better\ndescription: Not bad any more.\n---\n");
    std::fs::remove_dir_all(home.path().join("skills/dull")).unwrap();
    let (report, code) = examined(&home);
    assert_eq!((code, cases(&report, "local")), (Some(0), Vec::new()), "{report:#}");
}

#[test]
fn info_shows_kind_permissions_and_usage_of_a_plugin() {
    let server = Server::answering(|_, _| Reply::text("Fine."));
    let home = Home::with(&server);
    home.install_guest("clerk", "clerk", json!({}));
    home.hermes(&["plugins", "revoke", "clerk", "sql"]).run().success();
    home.set("plugins.enabled", json!(["clerk"]));
    home.hermes(&["-z", "hi"]).run().success();
    let stdout = home.hermes(&["plugins", "info", "clerk"]).run().success().stdout;
    for part in [
        "exports     tools\n",
        "signed by   nobody: the plugin is not signed",
        "tools       query, execute, repeat, store, peruse, chatter, search\n",
        "KiB, blake3:",
        "permission  read and search your conversations\n",
        "not granted keep a database of its own\n",
        "to the first response\n",
        "; limit 64MiB per instance\n",
        "0 failures\n",
    ] {
        assert!(stdout.contains(part), "`{part}` is not in\n{stdout}");
    }
    let stdout = home.hermes(&["plugins", "info", "clerk", "--json"]).run().success().stdout;
    let stdout: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stdout["exports"], stdout["tools"].as_array().unwrap().len()), (&json!(["tools"]), 7), "{stdout:#}");
    assert_eq!(stdout["permissions"]["granted"], json!({"history": true}), "{stdout:#}");
    assert!(stdout["load"]["ms"].is_number() && stdout["load"]["first_answer_ms"].is_number(), "{stdout:#}");
    assert_eq!((&stdout["memory"]["limit"], &stdout["errors"]), (&json!(64 << 20), &json!([])), "{stdout:#}");
    assert!(stdout["memory"]["peak"].as_u64().unwrap() > 0 && stdout["bytes"].as_u64().unwrap() > 0, "{stdout:#}");
}
