//! Plugins that were built for another text of the contract.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use hermes_runtime::{Instance, LaterVersions, Limits, Recipe, Tier};
use hermes_zoo::Shell;

use crate::{Fixture, runtime};

/// WAT that crashes unless the `result` at 4096 is an error of this kind.
fn expects(kind: u32) -> String {
    let byte_is = |at: u32, value: u32| {
        format!("(if (i32.ne (i32.load8_u (i32.const {at})) (i32.const {value})) (then unreachable))")
    };
    format!("{}{}", byte_is(4096, 1), byte_is(4100, kind))
}

/// The case `unsupported` of `error-kind`.
const UNSUPPORTED: u32 = 7;

const ORACLE: &str = "
world more { include tools-plugin; import hermes:oracle/oracle@1.0.0; }
package hermes:oracle@1.0.0 {
  interface oracle {
    use hermes:types/types@1.0.0.{error};
    ask: func() -> result<u32, error>;
  }
}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interface_of_a_later_contract_answers_that_it_is_unsupported() {
    let call = format!("(call $oracle/ask (i32.const 4096)) {}", expects(UNSUPPORTED));
    let component = Shell::with_tool(&call).on("more", ORACLE).import("oracle", "ask").build();
    let answer = Fixture::new(&component, Tier::Tools).tool("bad").await;
    assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_of_a_later_contract_answers_that_it_is_unsupported_and_the_others_work() {
    let call = format!(
        "(call $http/pieces (i32.const 4096)) {} (drop (call $http/has-secret (i32.const 0) (i32.const 0)))",
        expects(UNSUPPORTED)
    );
    let known = "has-secret: func(name: string) -> bool;";
    let component = Shell::with_tool(&call)
        .rewritten(known, &format!("{known} pieces: func() -> result<list<u8>, error>;"))
        .import("http", "pieces")
        .import("http", "has-secret")
        .build();
    let answer = Fixture::new(&component, Tier::Tools).tool("bad").await;
    assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{answer:?}");
}

#[test]
fn a_later_function_that_cannot_return_an_error_is_refused_by_name() {
    let known = "has-secret: func(name: string) -> bool;";
    let component = Shell::with_tool("(drop (call $http/count))")
        .rewritten(known, &format!("{known} count: func() -> u32;"))
        .import("http", "count")
        .build();
    let Err(error) = runtime().load(&component) else { panic!("it was loaded") };
    assert!(error.to_string().contains("hermes:http/http@1.0.0#count"), "{error}");
}

/// The error of loading, and whether the manifest of the plugin accepts this host.
fn refusal(component: &[u8], later: LaterVersions) -> String {
    match runtime().load_watched(component, later, &|_| ControlFlow::Continue(())) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_later_pre_release_is_refused_in_one_line_with_both_versions_and_the_remedy() {
    for (version, package, ours) in [("1.2.0-rc.1", "hermes:types", "1.0.0"), ("1.2.0-draft", "hermes:types", "1.0.0")]
    {
        let component = Shell::with_tool("nop").version(version).build();
        assert_eq!(
            refusal(&component, LaterVersions::Refused),
            format!(
                "it was built for {package} {version}, but this version of Hermes supports {ours}: update Hermes, or install an \
                 older release of the plugin"
            )
        );
    }
}

#[test]
fn a_candidate_of_a_release_is_refused_as_never_final_with_both_remedies() {
    for version in ["1.0.0-rc.1", "1.0.0-rc.2"] {
        let component = Shell::with_tool("nop").version(version).build();
        for later in [LaterVersions::Refused, LaterVersions::Accepted] {
            assert_eq!(
                refusal(&component, later),
                format!(
                    "it was built for hermes:types {version}, which was never final, but this version of Hermes supports 1.0.0: update \
                     the plugin, or build it again for 1.0.0"
                )
            );
        }
    }
}

#[test]
fn an_earlier_pre_release_and_another_major_version_are_refused_whatever_the_manifest_says() {
    for (version, remedy) in [
        ("1.0.0-alpha.1", "update the plugin"),
        ("0.9.0", "update the plugin"),
        ("2.0.0", "update Hermes"),
        ("2.0.0-draft", "update Hermes"),
    ] {
        let component = Shell::with_tool("nop").version(version).build();
        for later in [LaterVersions::Refused, LaterVersions::Accepted] {
            let error = refusal(&component, later);
            for part in [version, "supports 1.0.0", remedy] {
                assert!(error.contains(part), "{version}: no {part:?} in {error:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_of_a_later_version_runs_without_the_feature_if_its_manifest_accepts_this_host() {
    let added = "
world more { include tools-plugin; import hermes:host/oracle@1.2.0-draft; export hermes:tools/elicitation@1.2.0-draft; }";
    let call = format!(
        "(call $http/pieces (i32.const 4096)) {unsupported} (call $oracle/ask (i32.const 4096)) {unsupported} \
         (drop (call $http/has-secret (i32.const 0) (i32.const 0)))",
        unsupported = expects(UNSUPPORTED)
    );
    let known = "has-secret: func(name: string) -> bool;";
    let oracle = "interface oracle { use hermes:types/types@1.2.0-draft.{error}; ask: func() -> result<u32, error>; }";
    let package = "package hermes:host@1.2.0-draft;";
    let tools = "package hermes:tools@1.2.0-draft;";
    let component = Shell::with_tool(&call)
        .version("1.2.0-draft")
        .on("more", added)
        .rewritten(known, &format!("{known} pieces: func() -> result<list<u8>, error>;"))
        .rewritten(package, &format!("{package} {oracle}"))
        .rewritten(tools, &format!("{tools} interface elicitation {{ ask: func() -> u32; }}"))
        .import("http", "pieces")
        .import("http", "has-secret")
        .import("oracle", "ask")
        .build();
    let answer = Fixture::accepted(&component, Tier::Tools).tool("bad").await;
    assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{answer:?}");
    // The compiled code is in the cache now, and the manifest still decides.
    let error = refusal(&component, LaterVersions::Refused);
    assert!(error.contains("1.2.0-draft") && error.contains("supports 1.0.0"), "{error}");
}

#[test]
fn a_version_of_any_length_is_refused_in_a_short_line() {
    let version: &'static str = format!("1.1.0-{}", "a.".repeat(5_000) + "z").leak();
    let component = Shell::with_tool("nop").version(version).build();
    let error = refusal(&component, LaterVersions::Refused);
    assert!(error.contains("1.1.0-a.a") && error.len() < 400, "{} bytes: {error}", error.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_can_ask_what_the_host_has_and_has_granted() {
    // The fixture grants nothing but the history.
    for (feature, expected) in [
        ("hermes:host/log", 1),
        ("hermes:storage/documents", 1),
        ("hermes:llm/llm#count-tokens", 0),
        ("hermes:history/history", 1),
        ("hermes:history/history#parts", 1),
        ("hermes:history/history#all", 0),
        ("hermes:http/http", 0),
        ("hermes:host/log#read", 0),
        ("hermes:oracle/oracle", 0),
        ("", 0),
    ] {
        let mut shell = Shell::with_tool("nop").import("info", "has");
        let [at, length] = shell.memory().bytes(feature.as_bytes());
        let answer = shell.memory().output("good");
        let asked = format!("(call $info/has (i32.const {at}) (i32.const {length}))");
        let check = format!("(if (i32.ne {asked} (i32.const {expected})) (then unreachable))");
        let component = shell.body("tools/call", &format!("{check} (i32.const {answer})")).build();
        let answer = Fixture::new(&component, Tier::Tools).tool("good").await;
        assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{feature}: {answer:?}");
    }
}

#[test]
fn the_draft_has_everything_of_the_release() {
    assert_eq!(hermes_zoo::lost_in_draft(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_tool_has_the_time_that_it_asks_for() {
    let loaded = runtime().load(&crate::kept::component("rust-tools")).unwrap();
    let limits = Limits::of(loaded.exports().tier());
    let instance = Instance::new(Arc::new(Recipe::alone("rust-tools", loaded, limits)));
    let offered = instance.catalog().await.unwrap();
    assert_eq!(offered[0].extra, [("time-limit-ms".to_owned(), "90000".to_owned())]);
}

#[test]
fn the_kept_components_are_never_built_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kept");
    let found = crate::kept::KEPT.iter().map(|name| {
        let file = format!("{name}-0.1.0.tar.gz");
        let digest = blake3::hash(&std::fs::read(folder.join(&file)).unwrap()).to_hex();
        format!("{digest}  {file}")
    });
    let frozen = std::fs::read_to_string(folder.join("FROZEN")).unwrap();
    assert_eq!(found.collect::<Vec<_>>(), frozen.lines().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_of_the_draft_is_refused_or_runs_without_what_is_new() {
    let call = format!(
        "(call $notes/show (i32.const 0) (i32.const 0) (i32.const 4096)) {unsupported} \
         (call $history/count (i64.const 1) (i64.const 2) (i32.const 4096)) {unsupported}",
        unsupported = expects(UNSUPPORTED)
    );
    let component = Shell::with_tool(&call).of_draft().import("notes", "show").import("history", "count").build();
    assert_eq!(
        refusal(&component, LaterVersions::Refused),
        "it was built for hermes:history 1.2.0-draft, but this version of Hermes supports 1.0.0: update Hermes, or install an \
         older release of the plugin"
    );
    let answer = Fixture::accepted(&component, Tier::Tools).tool("bad").await;
    assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_small_kept_components_work() {
    let runtime = runtime();
    // The others take long to compile; end-to-end tests install and use them.
    for name in crate::kept::KEPT.into_iter().filter(|name| name.starts_with("c-") || name.starts_with("rust-")) {
        crate::kept::works(name, &runtime).await;
    }
}
