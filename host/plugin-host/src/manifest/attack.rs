//! Attacks by manifests: size, depth, repetition, and texts that look like something else.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use super::*;

/// Parses a manifest that must be refused soon, with a short message.
fn refused(text: &str) -> String {
    let begun = Instant::now();
    let error = match Manifest::parse(text) {
        Err(error) => error.to_string(),
        Ok(manifest) => panic!("accepted as {:?}", manifest.name),
    };
    assert!(begun.elapsed() < Duration::from_secs(600), "{:?}", begun.elapsed());
    assert!(!error.is_empty() && error.len() < 2 << 10, "{} bytes: {error}", error.len());
    error
}

#[test]
fn a_manifest_that_grows_when_it_is_read_is_refused() {
    let mut laughs = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for at in 1..12 {
        let before = format!("*a{}, ", at - 1).repeat(8);
        laughs.push_str(&format!("a{at}: &a{at} [{}]\n", before.trim_end_matches(", ")));
    }
    refused(&format!("name: mine\n{laughs}"));
    let merges: String = (1..30).map(|at| format!("m{at}: &m{at}\n  <<: [*m{0}, *m{0}]\n", at - 1)).collect();
    refused(&format!("name: mine\nm0: &m0 {{x: 1}}\n{merges}description: {{<<: *m29}}\n"));
    refused("name: mine\nconfig: &c\n  properties: {again: *c}\n");
}

#[test]
fn a_deep_or_large_manifest_is_refused() {
    refused(&format!("name: mine\nconfig: {}{}\n", "[".repeat(5_000), "]".repeat(5_000)));
    refused(&format!("name: mine\nconfig: {}1{}\n", "{a: ".repeat(5_000), "}".repeat(5_000)));
    refused(&format!(
        "name: mine\nconfig:\n{}",
        (0..200).map(|at| format!("{}a:\n", " ".repeat(at + 1))).collect::<String>()
    ));
    refused(&format!("name: mine\ndescription: {}\n", "x".repeat(65 << 10)));
    refused(&format!("name: mine\n{}", "# comment\n".repeat(10_000)));
    refused(&format!("name: mine\ndescription: {}\n", "tea ".repeat(200)));
}

#[test]
fn a_name_cannot_look_like_another_one_or_lead_elsewhere() {
    for name in [
        "../evil",
        "a/b",
        "a\\b",
        ".hidden",
        "files\u{200b}",
        "f\u{456}les",
        "files\u{202e}",
        "files ",
        "FILES",
        "files.",
        "a\u{0}b",
        "-rf",
        "~",
        "con:",
        "",
        "\u{e0066}files",
        "fi\u{fb01}les",
        "files\\n",
    ] {
        refused(&format!("name: {}\n", serde_json::to_string(name).unwrap()));
    }
    refused(&format!("name: {}\n", "a".repeat(65)));
    for name in ["null", "true", "[a]", "{a: b}", "!!binary aGk=", "&a x\nversion: *a"] {
        assert!(Manifest::parse(&format!("name: {name}\n")).map_or(true, |manifest| manifest.name.len() < 65));
    }
}

#[test]
fn a_file_of_the_plugin_cannot_be_a_file_of_the_user() {
    for file in [
        "../x.wasm",
        "/etc/passwd",
        "plugin.statement",
        "PLUGIN.yaml",
        "minisign.pub",
        "skills",
        "x.minisig",
        "a/b.wasm",
        "..",
        ".",
        "a\\b.wasm",
        "C:x.wasm",
        "",
        "x\u{0}.wasm",
        "\u{2f}x",
    ] {
        let quoted = serde_json::to_string(file).unwrap();
        refused(&format!("name: mine\ncomponent: {quoted}\n"));
        refused(&format!("name: mine\nnative: {{x86_64-unknown-linux-gnu: {quoted}}}\n"));
    }
}

#[test]
fn a_field_that_is_given_twice_is_refused() {
    for twice in [
        "name: mine\nname: other\n",
        "name: mine\npermissions: {sql: true}\npermissions: {history: true}\n",
        "name: mine\npermissions: {sql: true, sql: false}\n",
        "name: mine\nversion: 1.0.0\n\"version\": 2.0.0\n",
        "name: mine\nlimits: {memory: 64MiB, memory: 512MiB}\n",
        "name: mine\n---\nname: other\n",
    ] {
        refused(twice);
    }
}

#[test]
fn a_misspelt_or_nested_permission_grants_nothing() {
    for permissions in [
        "{History: true}",
        "{history: yes please}",
        "{history: 1}",
        "{all: true}",
        "{'*': true}",
        "{http: '*'}",
        "{http: [{url: '*'}]}",
        "{files: [{root: /}]}",
        "{files: [{root: workspace/.., access: write}]}",
        "{files: [{root: home, access: write}]}",
        "{http: [{url: 'https://*:8443/'}]}",
        "{http: [{url: 'https://*.'}]}",
        "{http: [{url: 'file:///etc/'}]}",
        "{http: [{url: 'https://user:pass@host.example/'}]}",
        "{env: ['A=B']}",
        "{env: ['PATH\\0']}",
        "{documents: ['../x']}",
        "{documents: ['.env']}",
        "{process: [\"\"]}",
        "{permissions: {history: true}}",
        "[history]",
        "history",
    ] {
        let text = format!("name: mine\npermissions: {permissions}\n");
        if let Ok(manifest) = Manifest::parse(&text) {
            panic!("{permissions} is accepted as {:?}", manifest.permissions);
        }
        refused(&text);
    }
}

#[test]
fn a_list_that_nobody_would_read_is_refused() {
    let many = (0..65).map(|at| format!("A{at}")).collect::<Vec<_>>().join(", ");
    for list in [format!("env: [{many}]"), format!("process: [{many}]"), format!("documents: [{many}]")] {
        assert!(refused(&format!("name: mine\npermissions: {{{list}}}\n")).contains("64"));
    }
}

#[test]
fn a_schema_that_fetches_or_never_ends_is_refused() {
    for config in [
        "{$ref: 'https://evil.example/schema.json'}",
        "{$ref: 'file:///etc/passwd'}",
        "{$ref: '#/nothing'}",
        "{properties: {a: {$ref: 'http://127.0.0.1/x'}}}",
        "{$schema: 'https://evil.example/meta'}",
        "{type: teapot}",
        "{pattern: '['}",
    ] {
        refused(&format!("name: mine\nconfig: {config}\n"));
    }
}

#[test]
fn a_version_or_range_without_end_is_refused() {
    refused(&format!("name: mine\nversion: 1.0.0-{}\n", "a.".repeat(40_000)));
    refused("name: mine\nversion: 99999999999999999999.0.0\n");
    refused("name: mine\nversion: 1.0\n");
    refused("name: mine\nversion: \"1.0.0\\n2.0.0\"\n");
    refused("name: mine\nversion: \"1.0.0\u{202e}\"\n");
    refused(&format!("name: mine\napi: \"{}\"\n", ">=1, ".repeat(5_000)));
}

#[test]
fn a_limit_out_of_its_range_is_refused() {
    for limit in
        ["memory: 99999GiB", "memory: -1", "memory: 0", "host_calls: 1e99", "nothing: 1", "memory: [1]", "memory: .inf"]
    {
        refused(&format!("name: mine\nlimits: {{{limit}}}\n"));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for text in
        ["\0", "\u{feff}", "%YAML 9.9\n---\nname: mine\n", "\t", "- a\n- b\n", "42", "!!python/object:os.system x"]
    {
        refused(text);
    }
}

#[test]
fn a_version_that_fills_listings_and_libraries_without_end_are_refused() {
    assert!(refused(&format!("name: mine\nversion: 1.0.0+{}\n", "a".repeat(60))).contains("64 characters"));
    let libraries: String = (0..17).map(|at| format!("  target-{at}: lib{at}.so\n")).collect();
    assert!(refused(&format!("name: mine\nnative:\n{libraries}")).contains("16 targets"));
}
