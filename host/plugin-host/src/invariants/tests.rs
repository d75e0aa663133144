use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::digest::Digest;

/// Words of manifests and locks, and hostile words.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec![
            "mine", "a-b_c", "1.2.3", "^0.1", ">=0.1, <0.2", "x.wasm", "true", "false", "null", "~", "5", "64MiB", "2s",
            "GET", "POST", "HEAD", "workspace", "skills", "read", "write", "A_KEY", "B", "compression", "NOTES.md", "git",
            "/usr/bin/env", "https://example.org/", "https://*.example.org/v1", "http://localhost:1/", "http://10.0.0.1/",
            "http://example.org/",
        ]).prop_map(str::to_owned),
        2 => select(vec![
            "..", ".", "../x", "/etc", "a/b", "a/../b", "a\\\\b", "C:x", "c:", "\"\\0\"", "\"a\\u0000b\"", "\"\\e[2J\"", "\u{202e}",
            "-x", ".git", "*x", "&x", "'", "|", ">-", "{}", "[]", "[a, b]", "{a: b}", "!!int x", "1e999", "0x1F", "-0",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

fn section(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    vec((select(names), word()), 0..4).prop_map(|fields| {
        let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    })
}

fn list(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec(item, 0..3).prop_map(|items| format!("[{}]", items.join(", ")))
}

/// A section `permissions`, in one line.
fn rights() -> impl Strategy<Value = String> {
    let right = prop_oneof![
        section(&["tasks", "budget"]).prop_map(|section| format!("llm: {section}")),
        list(word()).prop_map(|tasks| format!("llm: {{tasks: {tasks}}}")),
        (select(vec!["llm", "history", "sql"]), any::<bool>()).prop_map(|(name, yes)| format!("{name}: {yes}")),
        (select(vec!["documents", "process", "env"]), list(word())).prop_map(|(name, list)| format!("{name}: {list}")),
        list(section(&["root", "access"])).prop_map(|list| format!("files: {list}")),
        list((word(), list(word())).prop_map(|(url, methods)| format!("{{url: {url}, methods: {methods}}}")))
            .prop_map(|list| format!("http: {list}")),
        list(section(&["name", "env", "audience"])).prop_map(|list| format!("secrets: {list}")),
    ];
    vec(right, 0..4).prop_map(|rights| format!("{{{}}}", rights.join(", ")))
}

fn schema() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        section(&["type", "pattern", "format", "minLength", "const", "enum", "required"]),
        select(vec!["{$ref: \"#\"}", "{$ref: \"#/properties/a\"}", "{type: object}", "{pattern: \"^(a+)+$\"}", "true"])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let name = select(vec!["not", "items", "if", "then", "additionalProperties", "propertyNames", "contains"]);
        let names = select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        prop_oneof![
            (name, inner.clone()).prop_map(|(name, inner)| format!("{{{name}: {inner}}}")),
            (names, vec(inner.clone(), 1..3)).prop_map(|(name, all)| format!("{{{name}: [{}]}}", all.join(", "))),
            (word(), inner.clone()).prop_map(|(name, inner)| format!("{{properties: {{{name}: {inner}}}}}")),
            inner.prop_map(|inner| format!("{{$defs: {{a: {inner}}}, $ref: \"#/$defs/a\"}}")),
        ]
    })
}

fn field() -> impl Strategy<Value = String> {
    let plain = select(vec![
        "version",
        "api",
        "description",
        "author",
        "license",
        "licence",
        "component",
        "repository",
        "publisher_key",
        "colour",
    ]);
    prop_oneof![
        (plain, word()).prop_map(|(name, value)| format!("{name}: {value}")),
        word().prop_map(|file| format!("native: {{x86_64-unknown-linux-gnu: {file}}}")),
        rights().prop_map(|rights| format!("permissions: {rights}")),
        schema().prop_map(|schema| format!("config: {schema}")),
        list(prop_oneof![word(), section(&["name", "prompt", "url", "secret"])])
            .prop_map(|list| format!("requires_env: {list}")),
        section(&["memory", "cpu", "host_calls", "x"]).prop_map(|limits| format!("limits: {limits}")),
        list(select(vec!["tools", "hooks", "x"]).prop_map(str::to_owned)).prop_map(|list| format!("provides: {list}")),
    ]
}

fn pin(folder: &str, granted: &str) -> String {
    let granted: serde_json::Value = serde_saphyr::from_str(granted).unwrap_or_default();
    let (folder, digest) = (json!(folder), Digest::of(b"x"));
    format!(
        r#""source": "/src", "folder": {folder}, "version": "1.0.0", "component": "{digest}", "digest": "{digest}", "granted": {granted}"#
    )
}

#[test]
fn a_written_lock_is_read() {
    let pin = pin("tools/mine", "{sql: true, http: [{url: \"https://example.org\"}]}");
    let text = format!(r#"{{"form": 1, "plugins": {{"mine": {{{pin}, "previous": {{{pin}}}}}}}}}"#);
    assert_eq!(Lock::parse(text.as_bytes(), Path::new("plugins.lock")).unwrap().plugins.len(), 1);
    lock(text.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_manifest_leaves_its_folder_or_its_requests(name in word(), fields in vec(field(), 0..5)) {
        manifest(&format!("name: {name}\n{}\n", fields.join("\n")));
        manifest(&format!("name: mine\n{}\n", fields.join("\n")));
    }

    #[test]
    fn the_lesser_of_request_and_grant_takes_effect(requested in rights(), granted in rights()) {
        permissions(&requested, &granted);
    }

    #[test]
    fn no_lock_leads_elsewhere_and_each_is_written_as_it_was_read(
        name in word(),
        folder in prop_oneof![word(), (word(), word()).prop_map(|(kind, name)| format!("{kind}/{name}"))],
        granted in rights(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let (plain, led) = (pin("tools/mine", &granted), pin(&folder, "~"));
        for (name, now, before) in [(name.as_str(), &plain, &plain), ("mine", &led, &plain), ("mine", &plain, &led)] {
            let name = json!(name);
            let mut text = format!(r#"{{"form": 1, "plugins": {{{name}: {{{now}, "previous": {{{before}}}}}}}}}"#).into_bytes();
            lock(&text);
            if let Some((at, byte)) = damage {
                let at = at.index(text.len());
                text[at] = byte;
                lock(&text);
                text.truncate(at);
                lock(&text);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_lock_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        lock(&bytes);
        lock(&[br#"{"form": 1, "plugins": "#, &bytes[..], b"}"].concat());
    }
}
