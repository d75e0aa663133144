//! Which crate may use which. Arrows point downwards only; the picture is in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;

/// Every package of the host's workspace, with the workspace packages that it may depend on. The dependencies of tests and
/// build scripts count too.
const ARROWS: &[(&str, &[&str])] = &[
    // A second front end: what it names is all that a front end needs.
    ("hermes-json-front", &["hermes-tests", "hermes-app", "hermes-protocol"]),
    // Its tests read stores to check that they are intact.
    (
        "hermes-tests",
        &[
            "hermes-zoo",
            "hermes-test-data",
            "hermes-install",
            "hermes-plugin-host",
            "hermes-store",
            "hermes-conversation",
        ],
    ),
    // It is on its way to name nothing below the application.
    (
        "hermes-cli",
        &[
            "hermes-console",
            "hermes-authoring",
            "hermes-protocol",
            "hermes-app",
            "hermes-peer",
            "hermes-config",
            "hermes-diagnostic",
            "hermes-conformance",
            "hermes-terminal",
        ],
    ),
    // A program of its own. Its runtimes start as those of `hermes` do; its benchmark starts components by itself.
    (
        "hermes-lab",
        &[
            "hermes-console",
            "hermes-app",
            "hermes-conformance",
            "hermes-engine-trials",
            "hermes-recordings",
            "hermes-test-data",
            "hermes-agent",
            "hermes-mcp",
            "hermes-models",
            "hermes-plugin-host",
            "hermes-ranking",
            "hermes-store",
            "hermes-testkit",
            "hermes-runtime",
            "hermes-conversation",
            "hermes-diagnostic",
        ],
    ),
    // Printing, for both programs. It knows the errors that commands still get from crates below the application.
    ("hermes-console", &["hermes-app", "hermes-config", "hermes-protocol", "hermes-terminal", "hermes-diagnostic"]),
    // The tools of plugin authors. The messages to authors are in `host/cli`.
    (
        "hermes-authoring",
        &[
            "hermes-app",
            "hermes-install",
            "hermes-plugin-host",
            "hermes-private-files",
            "hermes-runtime",
            "hermes-diagnostic",
        ],
    ),
    (
        "hermes-peer",
        &[
            "hermes-app",
            "hermes-capabilities",
            "hermes-config",
            "hermes-plugin-host",
            "hermes-skill-format",
            "hermes-runtime",
            "hermes-models",
            "hermes-notes",
            "hermes-prompt",
            "hermes-session-store",
            "hermes-conversation",
            "hermes-diagnostic",
            "hermes-private-files",
        ],
    ),
    (
        "hermes-app",
        &[
            "hermes-protocol",
            "hermes-zoo",
            "hermes-config",
            "hermes-agent",
            "hermes-install",
            "hermes-plugin-host",
            "hermes-prompt",
            "hermes-mcp",
            "hermes-models",
            "hermes-store",
            "hermes-session-store",
            "hermes-runtime",
            "hermes-capabilities",
            "hermes-recordings",
            "hermes-sandbox",
            "hermes-checkpoints",
            "hermes-notes",
            "hermes-conversation",
            "hermes-diagnostic",
            "hermes-private-files",
        ],
    ),
    // It holds engines to their trials.
    (
        "hermes-conformance",
        &[
            "hermes-test-data",
            "hermes-zoo",
            "hermes-engine-trials",
            "hermes-plugin-host",
            "hermes-testkit",
            "hermes-runtime",
            "hermes-bindings",
            "hermes-capabilities",
            "hermes-conversation",
            "hermes-diagnostic",
        ],
    ),
    // Trials of engines, for the conformance tests and the laboratory.
    (
        "hermes-engine-trials",
        &[
            "hermes-agent",
            "hermes-plugin-host",
            "hermes-store",
            "hermes-testkit",
            "hermes-runtime",
            "hermes-conversation",
        ],
    ),
    // Only its tests use the concrete store; the code knows the port.
    (
        "hermes-agent",
        &[
            "hermes-protocol",
            "hermes-test-data",
            "hermes-plugin-host",
            "hermes-prompt",
            "hermes-mcp",
            "hermes-models",
            "hermes-store",
            "hermes-capabilities",
            "hermes-checkpoints",
            "hermes-ranking",
            "hermes-session-store",
            "hermes-conversation",
            "hermes-private-files",
            "hermes-diagnostic",
        ],
    ),
    (
        "hermes-config",
        &["hermes-mcp", "hermes-plugin-host", "hermes-models", "hermes-diagnostic", "hermes-private-files"],
    ),
    (
        "hermes-install",
        &[
            "hermes-plugin-host",
            "hermes-runtime",
            "hermes-capabilities",
            "hermes-conversation",
            "hermes-private-files",
            "hermes-http-client",
            "hermes-skill-format",
            "hermes-diagnostic",
        ],
    ),
    (
        "hermes-plugin-host",
        &[
            "hermes-zoo",
            "hermes-test-data",
            "hermes-runtime",
            "hermes-capabilities",
            "hermes-conversation",
            "hermes-private-files",
            "hermes-diagnostic",
        ],
    ),
    (
        "hermes-mcp",
        &[
            "hermes-capabilities",
            "hermes-conversation",
            "hermes-private-files",
            "hermes-http-client",
            "hermes-diagnostic",
        ],
    ),
    ("hermes-prompt", &["hermes-test-data", "hermes-conversation", "hermes-private-files"]),
    (
        "hermes-models",
        &["hermes-test-data", "hermes-conversation", "hermes-diagnostic", "hermes-http-client", "hermes-private-files"],
    ),
    (
        "hermes-store",
        &[
            "hermes-test-data",
            "hermes-testkit",
            "hermes-session-store",
            "hermes-ranking",
            "hermes-conversation",
            "hermes-private-files",
            "hermes-diagnostic",
        ],
    ),
    // Stores and histories for tests, and the rules of the port.
    ("hermes-testkit", &["hermes-session-store", "hermes-runtime", "hermes-conversation"]),
    // It reads files of other agents, and knows neither engines nor stores.
    ("hermes-recordings", &["hermes-conversation", "hermes-diagnostic"]),
    ("hermes-session-store", &["hermes-conversation", "hermes-diagnostic"]),
    // Part of the build: it compiles the plugins that the binary bundles.
    ("hermes-precompile", &["hermes-runtime"]),
    (
        "hermes-runtime",
        &[
            "hermes-test-data",
            "hermes-zoo",
            "hermes-bindings",
            "hermes-capabilities",
            "hermes-plugin-abi",
            "hermes-conversation",
        ],
    ),
    // Hostile plugins for the tests of both; it knows the contract and nothing of the host.
    ("hermes-zoo", &[]),
    ("hermes-bindings", &[]),
    // Capabilities know neither wasmtime nor the bindings.
    (
        "hermes-capabilities",
        &["hermes-test-data", "hermes-charset", "hermes-http-client", "hermes-private-files", "hermes-sandbox"],
    ),
    ("hermes-sandbox", &[]),
    // It knows neither sessions nor models.
    ("hermes-terminal", &["hermes-conversation"]),
    // It knows neither plugins nor sessions.
    ("hermes-checkpoints", &["hermes-test-data", "hermes-private-files", "hermes-diagnostic"]),
    ("hermes-http-client", &[]),
    ("hermes-private-files", &[]),
    // The other side of it is the SDK's.
    ("hermes-plugin-abi", &[]),
    // The format of the built-in memory; the plugin `builtin` uses it too.
    ("hermes-notes", &[]),
    // The plugin `files` uses it too.
    ("hermes-charset", &[]),
    ("hermes-ranking", &[]),
    // The plugin `local` uses it too.
    ("hermes-skill-format", &[]),
    // What front ends and sessions say to each other: neither the loop nor wasmtime.
    ("hermes-protocol", &["hermes-conversation", "hermes-diagnostic"]),
    ("hermes-conversation", &[]),
    ("hermes-diagnostic", &[]),
    // It counts the tests without their data.
    ("xtask", &["hermes-test-data"]),
    // Where tests find their data.
    ("hermes-test-data", &[]),
];

#[test]
fn every_arrow_between_crates_points_down() {
    let metadata = metadata("Cargo.toml");
    let packages = metadata["packages"].as_array().unwrap();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(found, known, "a crate that comes or goes changes the table of arrows, and ARCHITECTURE.md");

    let mut forbidden = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let allowed = ARROWS.iter().find(|(of, _)| *of == name).unwrap().1;
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let is_path = !dependency["path"].is_null();
            if (is_path || known.contains(on)) && !allowed.contains(&on) {
                forbidden.push(format!("{name} -> {on} ({})", dependency["kind"].as_str().unwrap_or("normal")));
            }
        }
    }
    assert!(forbidden.is_empty(), "these arrows are not in the table: {}", forbidden.join(", "));
}

#[test]
fn the_table_has_no_cycle() {
    // The table has no cycle if every crate uses only crates below it.
    for (at, (name, allowed)) in ARROWS.iter().enumerate() {
        for on in *allowed {
            let below = ARROWS.iter().position(|(other, _)| other == on);
            assert!(below.is_some_and(|below| below > at), "{name} -> {on} does not point down");
        }
    }
}

/// But for the pure rules, with which an engine's tests check its plans.
#[test]
fn guests_use_nothing_of_the_host() {
    let metadata = metadata("plugins/Cargo.toml");
    let host = root().join("host").canonicalize().unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            if let Some(path) = dependency["path"].as_str() {
                let inside = Path::new(path).canonicalize().unwrap().starts_with(&host);
                if dependency["name"] == "hermes-conversation" && dependency["kind"] == "dev" {
                    continue;
                }
                assert!(!inside, "{} -> {}", package["name"], dependency["name"]);
            }
        }
    }
}

/// The path of a message in ARCHITECTURE.md names methods as `Type::method`. Each is in a file that implements the type.
#[test]
fn the_path_of_a_message_names_methods_that_exist() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, path) = page.split_once("## One message, from the terminal to the wire and back").unwrap();
    let path = path.split("\n## ").next().unwrap();
    let named = Regex::new("`([A-Z][A-Za-z]+)::([a-z_]+)`").unwrap();
    let named: Vec<(&str, &str)> = named.captures_iter(path).map(|found| found.extract().1.into()).collect();
    assert!(named.len() > 10, "{named:?}");
    let sources = sources(&root().join("host"));
    let absent = named.iter().filter(|(of, method)| {
        let of = Regex::new(&format!(r"(?m)^\s*(pub(\(\w+\))? )?(impl|trait)\b.*\b{of}\b")).unwrap();
        let method = Regex::new(&format!(r"\bfn {method}\b")).unwrap();
        !sources.iter().any(|text| of.is_match(text) && method.is_match(text))
    });
    assert_eq!(absent.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}

/// The texts of all Rust files below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") => {
            vec![std::fs::read_to_string(path).unwrap()]
        }
        false => Vec::new(),
    };
    entries.flat_map(read).collect()
}

fn metadata(manifest: &str) -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(root().join(manifest))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
