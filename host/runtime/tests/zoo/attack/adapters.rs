//! Versions that no release has, several versions of one interface, and interfaces that the host does not know.

use std::ops::ControlFlow;

use hermes_runtime::{LaterVersions, Limit, Tier};
use hermes_zoo::Shell;

use super::{importing, refusal};
use crate::{Fixture, runtime, tight};

fn error(bytes: &[u8], later: LaterVersions) -> String {
    match runtime().load_watched(bytes, later, &|_| ControlFlow::Continue(())) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_version_that_only_looks_like_ours_is_refused_also_for_a_manifest_that_accepts_later_ones() {
    for version in [
        "",
        "1",
        "1.0",
        "1.0.0-rc.01",
        "01.0.0",
        "1.0.0-rc.1 ",
        " 1.0.0-rc.1",
        "v1.0.0-rc.1",
        "1.0.0-RC.1",
        "1.0.0-rc",
        "1.0.0-rc.0",
        "-1.0.0",
        "1.0.0-rc.1@1.0.0-rc.1",
        "\u{ff11}.0.0",
        "18446744073709551616.0.0",
        "2.0.0-rc.1",
        "0.0.0",
        "*",
        ">=1.0.0",
    ] {
        // A package that is as 1.0.0 released it, and one that 1.1.0 extends.
        for (package, interface, ours) in [("hermes:host", "log", "1.0.0"), ("hermes:tools", "tools", "1.1.0")] {
            let component = importing([format!("{package}/{interface}@{version}").as_str()]);
            for later in [LaterVersions::Refused, LaterVersions::Accepted] {
                let error = error(&component, later);
                assert!(error.contains(&format!("supports {ours}")) && error.contains(package), "{version:?}: {error}");
            }
        }
    }
}

#[test]
fn a_later_version_in_one_place_makes_the_whole_plugin_later() {
    for names in [
        ["hermes:host/log@1.0.0", "hermes:files/files@1.1.0-rc.1"],
        ["hermes:files/files@1.1.0-draft", "hermes:host/log@1.0.0"],
        ["hermes:host/log@1.0.0", "hermes:files/files@1.0.0-rc.3"],
        ["hermes:host/log@1.0.0", "hermes:types/types@1.1.0-rc.1"],
        // Build metadata has no meaning in a version, so it must not circumvent the check.
        ["hermes:host/log@1.0.0", "hermes:files/files@1.1.0-draft+mine"],
    ] {
        let error = error(&importing(names), LaterVersions::Refused);
        assert!(error.contains("supports 1.0.0"), "{names:?}: {error}");
    }
    // One package of another major version is enough to refuse all of it.
    let names = ["hermes:host/log@1.0.0", "hermes:process/process@2.0.0"];
    assert!(error(&importing(names), LaterVersions::Accepted).contains("hermes:process 2.0.0"));
}

#[test]
fn two_versions_of_one_interface_are_refused_in_any_order_and_number() {
    for versions in [
        &["1.1.0-draft", "1.0.0"][..],
        &["1.0.0", "1.1.0-draft"],
        &["1.1.0-draft.2", "1.1.0-draft"],
        &["1.1.0-rc.1", "1.1.0-draft", "1.2.0", "1.0.1"],
    ] {
        let names: Vec<String> = versions.iter().map(|version| format!("hermes:process/process@{version}")).collect();
        let error = error(&importing(names.iter().map(String::as_str)), LaterVersions::Accepted);
        assert!(error.contains("`hermes:process/process`"), "{versions:?}: {error}");
    }
}

#[test]
fn a_package_whose_name_begins_like_one_of_ours_gets_nothing_of_it() {
    for name in [
        "hermes:hosts/log@1.0.0",
        "hermes:process-more/process@1.0.0",
        "hermes:http-http/http@1.0.0",
        "hermesx:host/log@1.0.0",
        "Hermes:host/log@1.0.0",
        "hermes-host:host/log@1.0.0",
        "hermes:host/log/log@1.0.0",
        "hermes:host/log",
        "hermes:host@1.0.0",
        "log",
    ] {
        refusal(name, &importing([name]));
    }
}

/// A world with an unknown interface of the contract that has this function.
fn oracle(types: &str, function: &str) -> String {
    format!(
        "world more {{ include tools-plugin; import hermes:oracle/oracle@1.0.0; }}
         package hermes:oracle@1.0.0 {{ interface oracle {{ {types} {function} }} }}"
    )
}

#[test]
fn an_unknown_function_whose_answer_the_host_cannot_give_is_refused_by_name() {
    for (name, types, function, call) in [
        ("a number", "", "ask: func() -> u32;", "(drop (call $oracle/ask))"),
        ("nothing", "", "ask: func();", "(call $oracle/ask)"),
        ("a result without an error", "", "ask: func() -> result<u32>;", "(call $oracle/ask (i32.const 4096))"),
        ("an error that is a number", "", "ask: func() -> result<u32, u32>;", "(call $oracle/ask (i32.const 4096))"),
        (
            "an error with a field that has no empty value",
            "enum kind { failed } record error { kind: kind, size: u64 }",
            "ask: func() -> result<u32, error>;",
            "(call $oracle/ask (i32.const 4096))",
        ),
        (
            "an error without a kind that the host knows",
            "enum kind { fine, granted } record error { kind: kind, message: string }",
            "ask: func() -> result<u32, error>;",
            "(call $oracle/ask (i32.const 4096))",
        ),
    ] {
        let component = Shell::with_tool(call).on("more", &oracle(types, function)).import("oracle", "ask").build();
        let error = refusal(name, &component);
        assert!(error.contains("hermes:oracle/oracle@1.0.0#ask"), "{name}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_an_unknown_function_count_like_any_other_call_of_the_host() {
    let wit = oracle(
        "enum kind { unsupported } record error { kind: kind, message: string }",
        "ask: func() -> result<u32, error>;",
    );
    let call = "(loop $l (call $oracle/ask (i32.const 4096)) (br $l))";
    let component = Shell::with_tool(call).on("more", &wit).import("oracle", "ask").build();
    let limits = tight().and(Limit::HostCalls, 200).and(Limit::Cpu, 30_000).and(Limit::ToolTime, 60_000);
    let fixture = Fixture::within(&component, Tier::Tools, &limits);
    let error = fixture.tool("bad").await.unwrap_err().to_string();
    assert!(error.contains("`host_calls`") && error.contains("200"), "{error}");
    assert_eq!(fixture.tool("good").await.unwrap(), "good");
}

#[test]
fn a_known_interface_with_another_shape_is_refused_before_it_runs() {
    let known = "has-secret: func(name: string) -> bool;";
    for (name, from, to, import, call) in [
        (
            "another result",
            known,
            "has-secret: func(name: string) -> u64;",
            "has-secret",
            "(i32.const 0) (i32.const 0)",
        ),
        ("another parameter", known, "has-secret: func(name: u64) -> bool;", "has-secret", "(i64.const 0)"),
        ("no parameter", known, "has-secret: func() -> bool;", "has-secret", ""),
    ] {
        let call = format!("(drop (call $http/{import} {call}))");
        let component = Shell::with_tool(&call).rewritten(from, to).import("http", import).build();
        let error = refusal(name, &component);
        assert!(error.contains("has-secret") || error.contains("hermes:http/http"), "{name}: {error}");
    }
}
