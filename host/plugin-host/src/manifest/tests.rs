#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::schema::FIELDS;
use super::*;

#[test]
fn a_name_is_enough() {
    let manifest = Manifest::parse("name: mine\n").unwrap();
    assert_eq!((manifest.name.as_str(), manifest.version.to_string().as_str()), ("mine", "0.0.0"));
    assert!(manifest.permissions.is_empty() && manifest.unknown.is_empty());
}

/// Every field once.
const FULL: &str = "name: mine
version: 1.2.0
api: ^1.0.0
description: What it does.
author: me
license: MIT
repository: https://example.org/mine
homepage: https://example.org
kind: tools
component: mine.wasm
native:
  x86_64-unknown-linux-gnu: libmine.so
permissions:
  llm: true
  sql: true
  files:
    - root: workspace
      access: write
config:
  type: object
  additionalProperties: false
  properties:
    region: {type: string}
    count: {type: integer, minimum: 1}
requires_env:
  - EXAMPLE_REGION
  - {name: EXAMPLE_KEY, prompt: Your key, url: \"https://example.org/keys\", secret: true}
limits: {memory: 512MiB, handles: 2000}
provides: [tools]
publisher_key: RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3
";

#[test]
fn every_field_is_read_and_fits_the_published_schema() {
    let manifest = Manifest::parse(FULL).unwrap();
    assert!(manifest.permissions.sql && !manifest.permissions.history);
    assert_eq!(manifest.permissions.files[0].access, crate::permission::Access::Write);
    assert_eq!(manifest.limits.get(hermes_runtime::Limit::Memory), Some(512 << 20));
    assert_eq!(manifest.claims_beyond(&["tools", "hooks"]), Vec::<String>::new());
    assert_eq!(manifest.claims_beyond(&["hooks"]), ["tools"]);
    let needs = &manifest.requires_env;
    assert_eq!((needs[0].name.as_str(), needs[0].secret), ("EXAMPLE_REGION", false));
    assert_eq!((needs[1].prompt.as_str(), needs[1].secret), ("Your key", true));
    assert!(manifest.unknown.is_empty(), "{:?}", manifest.unknown);

    let value: serde_json::Value = serde_saphyr::from_str(FULL).unwrap();
    for field in FIELDS.iter().filter(|field| field.name != "licence") {
        assert!(value.get(field.name).is_some(), "the full manifest lacks `{}`", field.name);
    }
    let validator = jsonschema::validator_for(&Manifest::schema()).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for bad in [
        json!({}),
        json!({"name": "../x"}),
        json!({"name": "a", "version": "1"}),
        json!({"name": "a", "provides": ["x"]}),
        json!({"name": "a", "limits": {"memroy": "1GiB"}}),
        json!({"name": "a", "limits": {"memory": 1}}),
        json!({"name": "a", "limits": {"cpu": 5}}),
        json!({"name": "a", "limits": {"parallel_calls": 1000}}),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

#[test]
fn the_published_schema_is_that_of_the_table() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/plugin.schema.json");
    let wanted = format!("{:#}\n", Manifest::schema());
    if std::env::var_os("HERMES_WRITE_SCHEMA").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        written, wanted,
        "write it again: HERMES_WRITE_SCHEMA=1 cargo test -p hermes-plugin-host published_schema"
    );
}

#[test]
fn unknown_fields_are_reported_with_their_lines() {
    let manifest = Manifest::parse("name: mine\ncolour: red\nversion: 1.0.0\nshape: [a, {b: c}]\n").unwrap();
    assert_eq!(manifest.unknown, ["`colour` (line 2)", "`shape` (line 4)"]);
}

#[test]
fn a_range_without_this_hosts_version_says_which_of_the_two_to_update() {
    let fix = |api: &str| match Manifest::parse(&format!("name: a\napi: \"{api}\"\n")) {
        Ok(manifest) => panic!("{api} was accepted as {:?}", manifest.api),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(api) && text.contains(hermes_runtime::CONTRACT), "{text}");
            error.why.fix().unwrap()
        }
    };
    for later in ["^1.2.0", "^2", "=1.2.0-rc.1"] {
        assert!(fix(later).starts_with("update Hermes"), "{later}");
    }
    for earlier in ["^0.1", "=1.0.0-alpha.1", "=1.0.0-rc.3", "<1.0.0"] {
        assert_eq!(fix(earlier), "update the plugin", "{earlier}");
    }
}

#[test]
fn a_range_for_the_release_does_not_include_a_host_of_its_candidate() {
    let served = ["1.1.0-rc.1", "1.0.0"].map(|version| version.parse().unwrap());
    for released in ["^1.1.0", ">=1.1.0, <2", "=1.1.0"] {
        let wrong = reading::check_range(&released.parse().unwrap(), &served, released).unwrap_err();
        assert!(wrong.to_string().contains("does not include 1.1.0-rc.1"), "{released}: {wrong}");
        assert!(wrong.fix().unwrap().starts_with("build the plugin against the candidate"), "{released}");
    }
    for covered in ["^1.0.0", "^1.1.0-rc.1"] {
        assert!(reading::check_range(&covered.parse().unwrap(), &served, covered).is_ok(), "{covered}");
    }
}

#[test]
fn only_a_manifest_that_lists_this_hosts_version_accepts_it_for_a_later_component() {
    let later = |text: &str| Manifest::parse(text).unwrap().later_versions();
    assert_eq!(later("name: a\n"), LaterVersions::Refused);
    assert_eq!(later("name: a\napi: ^1.0.0\n"), LaterVersions::Accepted);
}

#[test]
fn invalid_manifests_are_refused_with_a_position() {
    for (text, line, part) in [
        ("version: 1.0.0\n", None, "name"),
        ("name: ../evil\n", Some(1), "../evil"),
        ("name: Mine\n", Some(1), "Mine"),
        ("name: my.own\n", Some(1), "my.own"),
        ("name: a\nversion: one\n", Some(2), "one"),
        ("name: a\ncomponent: ../x.wasm\n", Some(2), "x.wasm"),
        ("name: a\ncomponent: \"C:x.wasm\"\n", Some(2), "C:x.wasm"),
        ("name: a\n\napi: soon\n", Some(3), "soon"),
        ("name: a\napi: ^7\n", Some(2), "^7"),
        ("name: a\npermissions:\n  files:\n    - root: /etc\n", Some(4), "/etc"),
        ("name: a\npermissions:\n  root: true\n", Some(3), "root"),
        ("name: a\nrequires_env: [A-B]\n", Some(2), "A-B"),
        ("name: a\nrequires_env: [{name: A, hidden: true}]\n", Some(2), "hidden"),
        (
            "name: a\npermissions:\n  env: [KEY]\n  secrets: [{name: k, env: KEY, audience: \"https://example.org\"}]\n",
            None,
            "KEY",
        ),
        ("name: a\npermissions:\n  env: true\n", Some(3), "a list"),
        ("name: a\nconfig: [1]\n", Some(2), "config"),
        ("name: a\nconfig: {type: nonsense}\n", Some(2), "config"),
        ("name: a\nconfig: {$ref: \"https://example.org/x.json\"}\n", Some(2), "config"),
        ("name: a\nlimits: {memory: [1]}\n", Some(2), "memory"),
        ("name: a\nprovides: [tols]\n", Some(2), "tols"),
        ("name: a\nlicense: x\nlicence: y\n", Some(3), "licence"),
        ("name: a\nname: b\n", Some(2), "name"),
        ("name: [a\n", None, ""),
        ("[]", None, ""),
        ("", None, ""),
    ] {
        let error = Manifest::parse(text).unwrap_err();
        assert!(error.to_string().contains(part), "{text:?} gives {error}");
        if let Some(line) = line {
            assert_eq!(error.line, line, "{text:?} gives {error}");
            assert!(error.to_string().starts_with(&format!("line {line}, column ")), "{error}");
        }
    }
}

#[test]
fn texts_that_expand_too_far_are_refused() {
    let mut aliases = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ('b'..='j').zip('a'..) {
        aliases += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(","));
    }
    for bomb in [
        format!("name: a\n{aliases}"),
        format!("name: a\nx: {}\n", "[".repeat(20_000)),
        format!("name: a\nx: {}1{}\n", "{a: ".repeat(2_000), "}".repeat(2_000)),
        format!("name: a\nx: [{}]\n", "1,".repeat(30_000)),
        format!("name: a\ndescription: {}\n", "x".repeat(600)),
        format!("name: a\nx: {}\n", "y".repeat(100_000)),
        "---\nname: a\n".repeat(2_000),
        format!("name: a\n{}", "? ".repeat(10_000)),
        format!("name: a\n{}x", "- ".repeat(10_000)),
        format!("name: a\nconfig: {{pattern: \"{}\"}}\n", "(a{1,1000}){1,1000}".repeat(3)),
    ] {
        assert!(Manifest::parse(&bomb).is_err(), "{}…", &bomb[..60]);
    }
}

/// Each definition refers twice to the next one: thirty definitions in two kilobytes once led to a billion steps.
#[test]
fn a_schema_with_too_many_references_is_refused() {
    let config = |steps: usize| {
        let step =
            |at: usize| format!("a{at}: {{allOf: [{{$ref: \"#/$defs/a{0}\"}}, {{$ref: \"#/$defs/a{0}\"}}]}}", at + 1);
        let steps: Vec<_> = (0..steps).map(step).chain([format!("a{steps}: {{type: object}}")]).collect();
        format!("name: a\nconfig: {{$ref: \"#/$defs/a0\", $defs: {{{}}}}}\n", steps.join(", "))
    };
    assert!(Manifest::parse(&config(30)).unwrap_err().to_string().contains("references"));
    let few = Manifest::parse(&config(15)).unwrap();
    assert!(few.misfits(&json!({})).is_empty());
    assert!(!few.misfits(&json!(1)).is_empty());
}

#[test]
fn the_users_section_is_checked_by_the_schema_and_not_quoted() {
    let manifest = Manifest::parse(FULL).unwrap();
    assert!(manifest.misfits(&json!({"region": "eu", "count": 2})).is_empty());
    let misfits = manifest.misfits(&json!({"region": 4_711, "count": 0, "token": "sk-secret"}));
    assert_eq!(misfits.len(), 3, "{misfits:?}");
    assert!(misfits.iter().any(|line| line.starts_with("plugins.entries.mine.count: ")), "{misfits:?}");
    assert!(!misfits.join(" ").contains("sk-secret") && !misfits.join(" ").contains("4711"), "{misfits:?}");
    let choice = "name: a\nconfig: {properties: {engine: {enum: [one, two, three, four, five]}}}\n";
    assert_eq!(
        Manifest::parse(choice).unwrap().misfits(&json!({"engine": "six"})),
        [r#"plugins.entries.a.engine: the value is not one of "one", "two", "three", "four" or "five""#]
    );
    assert!(Manifest::parse("name: a\n").unwrap().misfits(&json!({"x": 1})).is_empty());
}

#[test]
fn an_unknown_key_of_a_section_with_an_address_is_a_misfit_and_else_only_named() {
    let config = "config: {properties: {baseUrl: {type: string, default: \"https://a.org\"}, deep: {properties: {one: {}}}, \
                  free: {type: object, additionalProperties: {type: string}}}}\n";
    let with =
        Manifest::parse(&format!("name: a\npermissions: {{http: [{{url: \"${{config.baseUrl}}/v3\"}}]}}\n{config}"));
    let without = Manifest::parse(&format!("name: a\npermissions: {{http: [{{url: \"https://a.org\"}}]}}\n{config}"));
    let (with, without) = (with.unwrap(), without.unwrap());
    let section = json!({"base_url": "https://me.test", "deep": {"two": 1}, "free": {"x": "y"}});
    let lines = [
        "plugins.entries.a.base_url: the plugin has no such key (did you mean `baseUrl`?)",
        "plugins.entries.a.deep.two: the plugin has no such key",
    ];
    assert_eq!(with.unknown_keys(&section), lines);
    assert_eq!(without.unknown_keys(&section), lines);
    let misfits = with.misfits(&section);
    assert!(misfits.len() == 2 && misfits[0].starts_with(lines[0]) && misfits[0].ends_with("so it does not start"));
    assert_eq!(without.misfits(&section), Vec::<String>::new());
    assert_eq!(with.misfits(&json!({"baseUrl": "https://me.test", "free": {"x": "y"}})), Vec::<String>::new());
    let open =
        Manifest::parse(&format!("name: a\n{}", config.replace("config: {", "config: {additionalProperties: true, ")));
    assert_eq!(open.unwrap().unknown_keys(&section)[..], lines[1..]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(name: a\n)?[a-z&*:\\[\\]{}\"'|>#!\n -]{0,200}") {
        let _ = Manifest::parse(&text);
    }

    #[test]
    fn a_field_with_anything_in_it_is_read_or_refused(at in 0..FIELDS.len(), text in "[ -~]{0,60}") {
        let _ = Manifest::parse(&format!("name: a\n{}: {text}\n", FIELDS[at].name));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = Manifest::parse(&text);
        }
    }
}
