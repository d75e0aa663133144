#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use super::*;
use crate::Config;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_published_schema_is_current() {
    let file = root().join("docs/schema/config.schema.json");
    let current = format!("{:#}\n", schema());
    if std::env::var_os("HERMES_WRITE_SCHEMA").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let published = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(published == current, "run this test with HERMES_WRITE_SCHEMA=1 to write {}", file.display());
}

#[test]
fn the_schema_and_the_reader_agree() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for (text, fits) in [
        ("{}", true),
        ("model: name\n", true),
        ("model: {default: name, context_length: 12000, api_key: '${KEY}'}\n", true),
        ("model: {context_length: '${WINDOW}'}\n", true),
        ("model:\ncompression: {enabled: true, threshold: 0.5}\n", true),
        ("compression: {enabled: '${YES}', threshold: 1}\n", true),
        ("plugins: {enabled: [a], entries: {a: {b: 1}, c: }}\n", true),
        ("plugins: {settings: {a: {limits: {memory: 1GiB}, on_failure: stop, source: installed}, b: }}\n", true),
        (
            "auxiliary: {transient_retries: 2, any: {timeout: 5, fallback_chain: [{model: x}], extra_body: {a: 1}}}\n",
            true,
        ),
        ("auxiliary: {any: , transient_retries: }\n", true),
        ("platform_hints: {cli: more, serve: {replace: x}, cron: }\n", true),
        ("context_file_max_chars: 1000\n", true),
        ("model: {context_length: 10}\n", false),
        ("model: 5\n", false),
        ("context: {engine: 4}\n", false),
        ("compression: {threshold: 50}\n", false),
        ("compression: {threshold: 0}\n", false),
        ("compression: {enabled: 'yes'}\n", false),
        ("plugins: {enabled: a}\n", false),
        ("plugins: {enabled: [1]}\n", false),
        ("plugins: {entries: {a: 1}}\n", false),
        ("plugins: {settings: {a: {limits: {memroy: 1GiB}}}}\n", false),
        ("plugins: {settings: {a: {on_failure: explode}}}\n", false),
        ("auxiliary: {transient_retries: 7}\n", false),
        ("auxiliary: {any: {fallback_chain: x}}\n", false),
        ("auxiliary: {any: {fallback_chain: [{context_length: 3999}]}}\n", false),
        ("platform_hints: {cli: 3}\n", false),
        ("platform_hints: {cli: {instead: x}}\n", false),
        ("agent: {max_turns: 0}\n", false),
        (
            "logins: {work: {flow: device, client_id: a, client_secret: '${SECRET}', parameters: {audience: b}}, other: }\n",
            true,
        ),
        ("logins: {work: {flow: pkce, authorize_url: a, redirect_url: b}}\n", true),
        ("logins: {work: {flow: password}}\n", false),
        ("logins: {work: {client_id: 5}}\n", false),
        ("logins: {work: {parameters: {audience: 5}}}\n", false),
        ("model: {reasoning_effort: high, reasoning_efforts: {gpt-5.4: xhigh, o3: }}\n", true),
        ("auxiliary: {any: {reasoning_effort: none}}\n", true),
        ("auxiliary: {any: {reasoning_effort: }}\n", true),
        ("auxiliary: {any: {reasoning_effort: 5}}\n", false),
        ("auxiliary: {any: {reasoning_effort: much}}\n", false),
        ("model: {reasoning_effort: }\n", true),
        ("model: {reasoning_effort: much}\n", false),
        ("model: {reasoning_effort: false}\n", false),
        ("model: {reasoning_efforts: {o3: much}}\n", false),
        ("input: {while_busy: steer}\n", true),
        ("input: {while_busy: }\n", true),
        ("input: {while_busy: Steer}\n", false),
        ("input: {while_busy: 1}\n", false),
        ("- a\n", false),
    ] {
        let value: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(validator.is_valid(&value), fits, "{text}");
        let variable = |name: &str| match name {
            "WINDOW" => Some("12000".to_owned()),
            "YES" => Some("true".to_owned()),
            _ => None,
        };
        assert_eq!(Config::parse(text, Path::new("config.yaml"), &variable).is_ok(), fits, "{text}");
    }
    let unknown: Value = serde_saphyr::from_str("modle: x\n").unwrap();
    assert!(!validator.is_valid(&unknown));
}

/// Every configuration in the documentation fits, and has no unknown key.
#[test]
fn documented_configurations_fit() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let known = names(&TYPES);
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs/use", "docs/plugins", "docs/develop"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let Ok(value) = serde_saphyr::from_str::<Value>(block) else { continue };
            // Other blocks are manifests of plugins.
            let is_config = value.as_object().is_some_and(|keys| keys.keys().all(|key| known.contains(&key.as_str())));
            if !is_config {
                continue;
            }
            seen += 1;
            let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}\n{block}", page.display());
            let config = Config::parse(block, &page, &|_| Some("x".to_owned())).unwrap();
            assert_eq!(config.warnings(), [""; 0]);
        }
    }
    assert!(seen >= 5, "only {seen} examples were found");
}
