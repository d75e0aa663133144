//! Projects in other languages than Rust: their files, how they are built, and the error for a missing tool.
//!
//! These tests download nothing. `cargo xtask languages` builds real projects with the tools of each language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_tests::{Home, staged_guest};

const KINDS: [&str; 6] = ["context-engine", "memory-provider", "tools", "skills", "hooks", "embedder"];
const LANGUAGES: [&str; 4] = ["python", "javascript", "c", "go"];

fn project(home: &Home, language: &str, kind: &str) -> PathBuf {
    let name = format!("my-{kind}");
    home.hermes(&["plugins", "new", &name, "--kind", kind, "--lang", language]).run().success();
    home.workspace().join(name)
}

/// The paths of all files below a folder, without the contract and its imports in Go, which grow with it.
fn paths(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if !name.starts_with("wit/") && !name.starts_with("bindings/imports/") {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_project_contains_code_tests_the_sdk_and_a_build() {
    let mut text = String::new();
    for language in LANGUAGES {
        let home = Home::new();
        for kind in KINDS {
            let folder = project(&home, language, kind);
            text.push_str(&format!("{language}, {kind}\n"));
            paths(&folder).iter().for_each(|path| text.push_str(&format!("  {path}\n")));
            assert!(folder.join("wit/1.1.0/worlds.wit").is_file());
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn python_reads_every_file_of_a_new_project() {
    let home = Home::new();
    for kind in KINDS {
        let folder = project(&home, "python", kind);
        for path in paths(&folder).iter().filter(|path| path.ends_with(".py")) {
            let script = "import sys; compile(open(sys.argv[1], encoding='utf-8').read(), sys.argv[1], 'exec')";
            let mut python = Command::new("python3");
            let Ok(output) = python.args(["-c", script, path]).current_dir(&folder).output() else {
                return hermes_test_data::not_installed("python3");
            };
            assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn a_missing_tool_is_named_with_its_remedy() {
    for language in LANGUAGES {
        let home = Home::new();
        let new = home.hermes(&["plugins", "new", "mine", "--kind", "tools", "--lang", language]);
        let new = new.env("PATH", "/nowhere").run().success();
        assert!(new.stderr.contains("was not found; install "), "{new}");
        let developer = home.hermes(&["plugins", "dev", "mine"]).env("PATH", "/nowhere").spawn();
        developer.wait_for_stderr("cannot be run: ");
        developer.wait_for_stderr("install ");
        developer.interrupt();
        developer.wait().success();
    }
}

/// The unit tests run with the sanitizers of the compiler, so that a template also frees what it should.
#[test]
fn the_projects_in_c_pass_their_unit_tests() {
    let home = Home::new();
    for kind in KINDS {
        let folder = project(&home, "c", kind);
        let Ok(output) = Command::new("make").arg("test").current_dir(&folder).output() else {
            return hermes_test_data::not_installed("make");
        };
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
        assert!(output.status.success() && said.contains("all tests passed"), "{kind}: {said}");
    }
}

/// The same answers of a service are the same errors as in the other SDKs: what the user can put right waits.
const HELPERS_IN_C: &str = r#"
#include <stdio.h>
#include <stdlib.h>

#include "testing.h"

static void fails(uint16_t status, uint8_t kind, const char *code) {
    hermes_http_http_request_t request = hermes_request("GET", "https://example.org/v1/");
    hermes_http_http_response_t response;
    hermes_error_t error;
    hermes_header(&request, "Authorization", hermes_secret("api_key", "Bearer "));
    testing_answer(status, "{}");
    assert(hermes_send(&request, &response, &error) && !hermes_checked(&response, &error));
    assert(error.kind.tag == kind && hermes_is(error.code, code) && hermes_contains(error.message, hermes_view("example.org")));
    hermes_types_types_error_free(&error);
}

int main(void) {
    fails(401, HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE, "auth");
    fails(403, HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE, "auth");
    fails(429, HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE, "status-429");
    fails(503, HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE, "status-503");
    fails(404, HERMES_TYPES_TYPES_ERROR_KIND_FAILED, "status-404");

    project_string_t json = hermes_view("{\"list\": [1, {\"deep\": \"\\u00fc\"}, []], \"list\": [\"a\", {\"deep\": \"\\u00fc\"}]}");
    hermes_json_t list = hermes_json_get(json, "list"), item;
    project_string_t rest = list.raw;
    assert(list.kind == HERMES_LIST && hermes_json_next(&rest, &item) && hermes_is(hermes_seen(item.text), "a"));
    free(item.text.bytes);
    assert(hermes_json_next(&rest, &item) && item.kind == HERMES_OBJECT);
    hermes_json_t deep = hermes_json_get(item.raw, "deep");
    assert(hermes_is(hermes_seen(deep.text), "\xc3\xbc") && !hermes_json_next(&rest, &item));
    hermes_text_t said = { 0 };
    hermes_say_json(&said, hermes_view("a\"\n"));
    assert(hermes_is(hermes_seen(said), "\"a\\\"\\u000a\""));
    free(said.bytes);
    free(deep.text.bytes);
    testing_reset();
    puts("all tests passed");
    return 0;
}
"#;

#[test]
fn the_helpers_in_c_say_what_those_of_other_languages_say() {
    let home = Home::new();
    let folder = project(&home, "c", "tools");
    fs::write(folder.join("tests/test_rules.c"), HELPERS_IN_C).unwrap();
    let Ok(output) = Command::new("make").arg("test").current_dir(&folder).output() else {
        return hermes_test_data::not_installed("make");
    };
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
    assert!(output.status.success() && said.contains("all tests passed"), "{said}");
}

#[test]
fn a_mistake_with_memory_in_c_is_found_by_the_unit_tests() {
    let home = Home::new();
    let folder = project(&home, "c", "tools");
    let source = folder.join("src/plugin.c");
    let text = fs::read_to_string(&source).unwrap();
    for (from, to, names) in [
        (".toolset = hermes_string(\"text\")", ".toolset = hermes_view(\"text\")", "tools_tool_free"),
        (
            "    if (done) return hermes_answer(ret, answer);",
            "    if (done) { hermes_answer(ret, answer); free(answer.bytes); return true; }",
            "attempting double-free",
        ),
        ("    exports_hermes_tools_tools_invocation_free(invocation);\n", "", "LeakSanitizer"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&source, text.replacen(from, to, 1)).unwrap();
        let Ok(output) = Command::new("make").arg("test").current_dir(&folder).output() else {
            return hermes_test_data::not_installed("make");
        };
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat();
        if !said.contains("-fsanitize=address") {
            return hermes_test_data::not_installed("a C compiler with AddressSanitizer");
        }
        assert!(!output.status.success() && said.contains(names) && said.contains("src/plugin.c"), "{to}: {said}");
    }
}

#[test]
fn node_reads_every_file_of_a_new_project() {
    let home = Home::new();
    for kind in KINDS {
        let folder = project(&home, "javascript", kind);
        for path in paths(&folder).iter().filter(|path| path.ends_with(".js") || path.ends_with(".mjs")) {
            let Ok(output) = Command::new("node").args(["--check", path]).current_dir(&folder).output() else {
                return hermes_test_data::not_installed("node");
            };
            assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn the_javascript_sdk_keeps_the_contract() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut node = Command::new("node");
    node.args(["--import", "./sdk/javascript/testing.js", "--test", "tests/sdk/javascript"]).current_dir(repository);
    let Ok(output) = node.output() else { return hermes_test_data::not_installed("node") };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("# pass 27"), "{said}");
}

#[test]
fn the_python_sdk_keeps_the_contract() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut python = Command::new("python3");
    python.args(["-B", "-m", "unittest", "discover", "tests/sdk/python"]).current_dir(repository);
    let Ok(output) = python.output() else { return hermes_test_data::not_installed("python3") };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("Ran 20 tests"), "{said}");
}

/// The SDK's TypeScript declares every interface and every function of the contract.
#[test]
fn the_types_for_javascript_contain_the_whole_contract() {
    let home = Home::new();
    let folder = project(&home, "javascript", "tools");
    let script = "import { declarations } from './vendor/hermes-plugin/types.js'; import fs from 'node:fs'; \
                  const at = 'wit/1.1.0/deps/'; \
                  console.log(declarations(fs.readdirSync(at).map((file) => fs.readFileSync(at + file, 'utf8'))));";
    let mut node = Command::new("node");
    let Ok(output) = node.args(["--input-type=module", "-e", script]).current_dir(&folder).output() else {
        return hermes_test_data::not_installed("node");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let types = String::from_utf8(output.stdout).unwrap();
    let mut functions = 0;
    for file in fs::read_dir(folder.join("wit/1.1.0/deps")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let version = text.lines().next().and_then(|package| package.strip_suffix(';')?.split('@').nth(1)).unwrap();
        for line in text.lines().map(str::trim) {
            if let Some(interface) = line.strip_prefix("interface ") {
                let name = interface.trim_end_matches(" {");
                assert!(types.contains(&format!("/{name}@{version}\" {{")), "{name}");
            } else if let Some((name, _)) = line.split_once(": func(") {
                let camel: Vec<String> = name
                    .split('-')
                    .enumerate()
                    .map(|(at, word)| if at == 0 { word.to_owned() } else { word[..1].to_uppercase() + &word[1..] })
                    .collect();
                assert!(types.contains(&format!("    {}(", camel.concat())), "{name}");
                functions += 1;
            }
        }
    }
    assert!(functions > 40, "{functions}");
}

#[test]
fn plugins_dev_runs_the_build_of_the_project() {
    let home = Home::new();
    let (_, component) = staged_guest("hostile");
    let folder = project(&home, "python", "tools");
    fs::write(folder.join("ready"), component).unwrap();
    let script =
        "import os, shutil\nos.makedirs('build', exist_ok=True)\nshutil.copyfile('ready', 'build/my-tools.wasm')\n";
    fs::write(folder.join("build.py"), script).unwrap();
    if Command::new("python3").arg("--version").output().is_err() {
        return hermes_test_data::not_installed("python3");
    }
    let developer = home.hermes(&["plugins", "dev", "my-tools", "--yes"]).spawn();
    developer.wait_for_stdout("built `my-tools`");
    fs::write(folder.join("ready"), "broken").unwrap();
    developer.wait_for_stderr("cannot be used");
    fs::write(folder.join("build.py"), "import sys\nsys.exit('the compiler found a mistake')\n").unwrap();
    developer.wait_for_stderr("the compiler found a mistake");
    developer.wait_for_stderr("failed (exit status: 1)");
    developer.interrupt();
    developer.wait().success();
}
