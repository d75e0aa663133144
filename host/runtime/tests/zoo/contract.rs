//! Plugins that were built for another text of the contract.

use hermes_runtime::Tier;
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
    use hermes:types/types@1.0.0-rc.1.{error};
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
    assert!(error.to_string().contains("hermes:http/http@1.0.0-rc.1#count"), "{error}");
}

#[test]
fn another_pre_release_is_refused_with_both_versions() {
    for (version, remedy) in [("1.0.0-rc.2", "update Hermes"), ("1.0.0-alpha.1", "update the plugin")] {
        let component = Shell::with_tool("nop").version(version).build();
        let Err(error) = runtime().load(&component) else { panic!("{version} was loaded") };
        let error = error.to_string();
        for part in [version, "1.0.0-rc.1", remedy] {
            assert!(error.contains(part), "{version}: no {part:?} in {error:?}");
        }
    }
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
