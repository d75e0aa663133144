#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::invariants::at_most;

fn permissions(yaml: &str) -> Permissions {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"))
}

/// Permissions with every right, in the order of [`Right::ALL`].
const ALL: &str = r#"
llm: {tasks: [compression], budget: 20000}
embeddings: true
history: true
hooks: true
sql: true
documents: [NOTES.md]
files: [{root: workspace, access: write}, {root: skills}]
http:
  - {url: "https://api.example.org:443/v1/", methods: [GET, POST, DELETE]}
  - {url: "http://localhost:8080"}
  - {url: "http://192.168.0.7/hooks", methods: [PUT]}
  - {url: "${config.base_url}/v1/"}
process: [git, /usr/bin/env]
process_env: [SSH_AUTH_SOCK]
env: [EXAMPLE_REGION]
secrets: [{name: api_key, env: EXAMPLE_API_KEY, audience: "https://api.example.org/", writable: true}]
"#;

#[test]
fn every_requested_permission_has_a_line() {
    assert_eq!(
        permissions(ALL).lines(),
        [
            "ask your models for compression, up to 20000 tokens in a session",
            "send texts to your embedding model",
            "read and search your conversations",
            "see every tool call with its arguments and result, see the usage of every model reply, and stop tool calls",
            "keep a database of its own",
            "read and change your document NOTES.md",
            "read and change files in the folder where a session is started",
            "read files in your folder skills",
            "send GET, POST and DELETE requests to https://api.example.org/v1/ and below",
            "send GET requests to http://localhost:8080/ and below, on this machine",
            "send PUT requests to http://192.168.0.7/hooks/ and below, in your own network",
            "send GET requests to the address ${config.base_url}/v1/, once your configuration has one and you allow it",
            "run the program git, after asking you",
            "run the program /usr/bin/env, after asking you",
            "give the value of SSH_AUTH_SOCK to the programs that it runs",
            "read the variable EXAMPLE_REGION if your configuration uses it",
            "send the value of EXAMPLE_API_KEY in its requests to https://api.example.org/ and below, without seeing it, and \
             replace the value by a new one",
        ]
    );
    let asked = permissions(
        "http: [{url: \"${config.base_url}/v1/\"}]\nsecrets: [{name: k, env: K, audience: \"${config.base_url}\"}]",
    );
    let lines = |base: &str| asked.clone().resolve(&|_| Some(base.to_owned()), &|host| host == "nas.lan").lines();
    assert_eq!(
        lines("http://nas.lan:8000"),
        [
            "send GET requests to http://nas.lan:8000/v1/ and below, in your own network (from `base_url` in your configuration)",
            "send the value of K in its requests to http://nas.lan:8000/ and below, in your own network (from `base_url` in your \
             configuration), without seeing it",
        ]
    );
    assert_eq!(
        lines("http://example.org")[1],
        "send the value of K in its requests to http://example.org/ and below (from `base_url` in your configuration), which \
         stays closed because it is not encrypted, without seeing it"
    );
    assert_eq!(Permissions::default().lines(), Vec::<String>::new());
    assert_eq!(permissions("llm: true").lines(), ["ask your models"]);
    assert_eq!(
        permissions("http: [{url: \"https://*/\"}, {url: \"http://*/\"}]").lines(),
        [
            "send GET requests to any public host, over https",
            "send GET requests to any public host, over http, unencrypted"
        ]
    );
}

#[test]
fn an_invalid_permission_is_refused_with_a_reason_that_names_it() {
    for (yaml, part) in [
        ("network: true", "network"),
        ("llm: 1", "true, false, or a section"),
        ("llm: {task: [a]}", "task"),
        ("llm: {tasks: []}", "leave it out"),
        ("llm: {tasks: [\"a b\"]}", "a b"),
        ("llm: {budget: -1}", ""),
        ("documents: [../MEMORY.md]", "../MEMORY.md"),
        ("documents: [.env]", ".env"),
        ("files: [{root: /etc}]", "workspace"),
        ("files: [{root: skills, access: execute}]", "execute"),
        ("http: [\"https://example.org/\"]", ""),
        ("http: [{url: \"https://example.org/\", method: GET}]", "method"),
        ("http: [{url: \"https://example.org/\", methods: []}]", "leave it out"),
        ("http: [{url: \"https://example.org/\", methods: [get]}]", "capitals"),
        ("http: [{url: \"https://example.org/\", methods: [CONNECT]}]", "CONNECT"),
        ("http: [{url: \"https://example.org/?q=1\"}]", "a query"),
        ("http: [{url: \"https://*/v1/\"}]", "*"),
        ("http: [{url: \"${base_url}/v1/\"}]", "${config.base_url}"),
        ("http: [{url: \"https://${HOME}/\"}]", "${config.base_url}"),
        ("process: [\"git status\"]", "git status"),
        ("process: [\"../git\"]", "../git"),
        ("process: [\"/usr/../git\"]", "/usr/../git"),
        ("process: [\"\\e[2Jgit\"]", "\\u{1b}[2Jgit"),
        ("env: [\"A=B\"]", "A=B"),
        ("env: [1A]", "1A"),
        ("secrets: [{name: a, env: A}]", "audience"),
        ("secrets: [{name: a, env: A, audience: \"http://api.example.org/\"}]", "unencrypted"),
        ("secrets: [{name: a, env: A, audience: \"http://8.8.8.8/\"}]", "unencrypted"),
        ("secrets: [{name: a, env: A, audience: \"https://*/\"}]", "every host"),
    ] {
        let error = serde_saphyr::from_str::<Permissions>(yaml).unwrap_err().to_string();
        assert!(error.contains(part), "{yaml} gives {error:?}");
    }
    let many: Vec<String> = (0..65).map(|number| format!("V{number}")).collect();
    let error = serde_json::from_value::<Permissions>(json!({ "env": many })).unwrap_err().to_string();
    assert!(error.contains("more than 64"), "{error}");
}

#[test]
fn a_secret_may_be_unencrypted_only_in_the_users_own_network() {
    for audience in ["http://localhost:1/", "http://127.0.0.1/", "http://192.168.1.5:8123/", "http://[::1]/"] {
        let requested = permissions(&format!("secrets: [{{name: a, env: A, audience: \"{audience}\"}}]"));
        assert_eq!(requested.secrets.len(), 1, "{audience}");
    }
}

#[test]
fn a_wider_request_needs_consent_only_for_the_new_part() {
    for (requested, granted, more) in [
        ("llm: true", "llm: true", "{}"),
        ("llm: true", "llm: {tasks: [a]}", "llm: true"),
        ("llm: {tasks: [a, b]}", "llm: {tasks: [a]}", "llm: {tasks: [b]}"),
        ("llm: {budget: 10}", "llm: {budget: 5}", "llm: {budget: 10}"),
        ("llm: {budget: 5}", "llm: {budget: 10}", "{}"),
        ("files: [{root: skills, access: write}]", "files: [{root: skills}]", "files: [{root: skills, access: write}]"),
        ("files: [{root: skills}]", "files: [{root: skills, access: write}]", "{}"),
        ("http: [{url: \"https://a.example.org/v1\"}]", "http: [{url: \"https://*.example.org\"}]", "{}"),
        ("http: [{url: \"https://a.example.org\", methods: [HEAD]}]", "http: [{url: \"https://a.example.org\"}]", "{}"),
        (
            "http: [{url: \"https://a.example.org/\"}]",
            "http: [{url: \"https://a.example.org/v1\"}]",
            "http: [{url: \"https://a.example.org/\"}]",
        ),
        ("env: [A, B]", "env: [B, C]", "env: [A]"),
        // A variable for the configuration is none for programs.
        ("process_env: [A]", "env: [A]", "process_env: [A]"),
        (
            "secrets: [{name: k, env: K, audience: \"https://example.org/\"}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/v1\"}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/\"}]",
        ),
        (
            "secrets: [{name: k, env: K, audience: \"https://example.org/\", writable: true}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/\"}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/\", writable: true}]",
        ),
        (
            "secrets: [{name: k, env: K, audience: \"https://example.org/\"}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/\", writable: true}]",
            "{}",
        ),
        ("hooks: true", "history: true", "hooks: true"),
        ("http: [{url: \"${config.a}\"}]", "http: [{url: \"${config.a}\"}]", "{}"),
        ("http: [{url: \"${config.a}\"}]", "http: [{url: \"${config.b}\"}]", "http: [{url: \"${config.a}\"}]"),
        (
            "secrets: [{name: k, env: OTHER, audience: \"https://example.org/\"}]",
            "secrets: [{name: k, env: K, audience: \"https://example.org/\"}]",
            "secrets: [{name: k, env: OTHER, audience: \"https://example.org/\"}]",
        ),
    ] {
        assert_eq!(
            permissions(requested).widening(&permissions(granted)),
            permissions(more),
            "{requested} beyond {granted}"
        );
    }
}

#[test]
fn parser_schema_and_table_know_the_same_rights() {
    let names: Vec<&str> = Right::ALL.iter().map(|right| right.name()).collect();
    let written = serde_json::to_value(permissions(ALL)).unwrap();
    assert_eq!(written.as_object().unwrap().keys().collect::<Vec<_>>(), names);
    let schema = Permissions::schema();
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), names);
    let members = |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let own = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&schema["properties"]["llm"]["oneOf"][1]), own(&written["llm"]));
    for name in ["files", "http", "secrets"] {
        assert_eq!(members(&schema["properties"][name]["items"]), own(&written[name][0]), "{name}");
    }
    for right in Right::ALL {
        assert_eq!(Right::named(right.name()), Some(*right));
        assert!(right.denial("mine").contains("grant the plugin `mine` its permissions"));
        assert!(!right.lines(&permissions(ALL)).is_empty());
    }
}

#[test]
fn the_document_of_permissions_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins/permissions.md");
    let document = std::fs::read_to_string(path).unwrap();
    let table = right::table();
    assert!(document.contains(&table), "docs/plugins/permissions.md should have this table:\n{table}");
    for form in table.lines().skip(2).map(|row| row.rsplit(" | ").next().unwrap()) {
        for yaml in form.trim_end_matches(" |").split("` or `").map(|yaml| yaml.trim_matches('`')) {
            assert!(!permissions(yaml).is_empty(), "{yaml}");
        }
    }
}

fn some<T: std::fmt::Debug + Clone + 'static>(items: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
    let most = items.len();
    prop::sample::subsequence(items.to_vec(), 0..=most)
}

fn anything() -> impl Strategy<Value = Permissions> {
    let names = || some(&["A", "B", "C"]);
    let llm = prop::option::of((prop::option::of(some(&["a", "b", "c"])), prop::option::of(0u64..3)));
    let sites = [
        "https://example.org/",
        "https://*.example.org/",
        "https://api.example.org/v1/",
        "https://*.example.org/v1/",
        "${config.url}",
        "${config.url}/v1/",
    ];
    let base = prop::sample::select(vec!["", "https://example.org/", "https://api.example.org"]);
    let http = (prop::sample::select(sites.to_vec()), some(&["GET", "POST", "HEAD"]));
    let secret = (
        prop::sample::select(vec!["k", "l"]),
        prop::sample::select(vec!["K", "L"]),
        prop::sample::select(sites.to_vec()),
    );
    let file = (prop::sample::select(vec!["workspace", "skills"]), prop::sample::select(vec!["read", "write"]));
    let lists =
        (prop::collection::vec(file, 0..3), prop::collection::vec(http, 0..4), prop::collection::vec(secret, 0..3));
    (llm, any::<[bool; 5]>(), names(), names(), names(), lists, base).prop_map(
        |(llm, [history, sql, hooks, embeddings, writable], documents, process, env, (files, http, secrets), base)| {
            let llm = match llm {
                None => json!(false),
                Some((None, None)) => json!(true),
                Some((tasks, budget)) => {
                    let mut section = json!({});
                    if let Some(tasks) = tasks.filter(|tasks| !tasks.is_empty()) {
                        section["tasks"] = json!(tasks);
                    }
                    if let Some(budget) = budget {
                        section["budget"] = json!(budget);
                    }
                    section
                }
            };
            let http: Vec<Value> = http
                .into_iter()
                .filter(|(_, methods)| !methods.is_empty())
                .map(|(url, methods)| json!({ "url": url, "methods": methods }))
                .collect();
            let files: Vec<Value> =
                files.into_iter().map(|(root, access)| json!({ "root": root, "access": access })).collect();
            let secrets: Vec<Value> = secrets
                .into_iter()
                .map(|(name, env, audience)| json!({ "name": name, "env": env, "audience": audience, "writable": writable }))
                .collect();
            let asked: Permissions = serde_json::from_value(json!({
                "llm": llm, "embeddings": embeddings, "history": history, "hooks": hooks, "sql": sql, "documents": documents, "files": files,
                "http": http, "process": process, "process_env": env, "env": env, "secrets": secrets,
            }))
            .unwrap();
            asked.resolve(&|_| Some(base.to_owned()), &|_| false)
        },
    )
}

proptest! {
    #[test]
    fn the_effect_is_neither_more_than_requested_nor_more_than_granted(requested in anything(), granted in anything()) {
        let effective = requested.within(&granted);
        prop_assert!(at_most(&effective, &requested), "{effective:?}");
        prop_assert!(at_most(&effective, &granted), "{effective:?}");
    }

    #[test]
    fn a_full_grant_takes_effect_in_full(requested in anything(), granted in anything()) {
        prop_assert!(at_most(&requested, &requested));
        if at_most(&requested, &granted) {
            prop_assert!(at_most(&requested, &requested.within(&granted)));
        }
        let more = granted.and(&requested);
        prop_assert!(at_most(&requested, &more), "{more:?}");
    }

    #[test]
    fn nothing_is_gained_in_two_steps(one in anything(), two in anything(), three in anything()) {
        if at_most(&one, &two) && at_most(&two, &three) {
            prop_assert!(at_most(&one, &three));
        }
    }

    #[test]
    fn without_a_grant_nothing_takes_effect_and_everything_needs_consent(requested in anything()) {
        prop_assert!(requested.within(&Permissions::default()).is_empty());
        prop_assert_eq!(requested.widening(&Permissions::default()).is_empty(), requested.is_empty());
    }

    #[test]
    fn what_is_written_is_read_again(one in anything()) {
        let json = serde_json::to_string(&one).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Permissions>(&json).unwrap(), &one);
        let yaml = serde_saphyr::to_string(&one).unwrap();
        prop_assert_eq!(&serde_saphyr::from_str::<Permissions>(&yaml).unwrap(), &one);
    }
}
