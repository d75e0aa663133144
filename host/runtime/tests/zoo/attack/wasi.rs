//! Plugins that take from WASI what its empty world has: handles, random bytes, sleep, sockets, and the exit.

use hermes_runtime::{Limit, Tier};
use hermes_zoo::Shell;

use crate::{Fixture, tight};

/// The packages of WASI, as far as the attacks need them.
const PACKAGES: &str = "
package wasi:io@0.2.6 {
  interface poll { resource pollable { ready: func() -> bool; } poll: func(in: list<borrow<pollable>>) -> list<u32>; }
  interface error { resource error; }
  interface streams { resource input-stream; resource output-stream; }
}
package wasi:clocks@0.2.6 {
  interface monotonic-clock {
    use wasi:io/poll@0.2.6.{pollable};
    subscribe-duration: func(when: u64) -> pollable;
    subscribe-instant: func(when: u64) -> pollable;
  }
}
package wasi:random@0.2.6 {
  interface random { get-random-bytes: func(len: u64) -> list<u8>; }
  interface insecure { get-insecure-random-bytes: func(len: u64) -> list<u8>; }
}
package wasi:cli@0.2.6 {
  interface exit { exit: func(status: result); }
  interface environment {
    get-environment: func() -> list<tuple<string, string>>;
    get-arguments: func() -> list<string>;
    initial-cwd: func() -> option<string>;
  }
  interface stdin { use wasi:io/streams@0.2.6.{input-stream}; get-stdin: func() -> input-stream; }
  interface terminal-stdout {
    use terminal-output.{terminal-output};
    get-terminal-stdout: func() -> option<terminal-output>;
  }
  interface terminal-output { resource terminal-output; }
}
package wasi:filesystem@0.2.6 {
  interface types { resource descriptor; }
  interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
}
package wasi:sockets@0.2.6 {
  interface network {
    resource network;
    enum error-code {
      unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout, concurrency-conflict,
      not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable, address-in-use,
      remote-unreachable, connection-refused, connection-reset, connection-aborted, datagram-too-large,
      name-unresolvable, temporary-resolver-failure, permanent-resolver-failure,
    }
    enum ip-address-family { ipv4, ipv6 }
  }
  interface instance-network { use network.{network}; instance-network: func() -> network; }
  interface tcp { resource tcp-socket; }
  interface tcp-create-socket {
    use network.{error-code, ip-address-family};
    use tcp.{tcp-socket};
    create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
  }
  interface ip-name-lookup {
    use network.{network, error-code};
    resource resolve-address-stream;
    resolve-addresses: func(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>;
  }
}";

/// A tool that runs `wat` with these functions of WASI, such as `wasi:cli/exit` and `exit`.
fn tool(wat: &str, functions: &[(&str, &str)]) -> Shell {
    let imports: String = functions.iter().map(|(interface, _)| format!("import {interface}@0.2.6; ")).collect();
    let shell =
        Shell::with_tool(wat).on("greedy", &format!("world greedy {{ include tools-plugin; {imports} }}{PACKAGES}"));
    functions
        .iter()
        .fold(shell, |shell, (interface, function)| shell.import(interface.split_once('/').unwrap().1, function))
}

fn forever(body: &str) -> String {
    format!("(loop $l {body} (br $l))")
}

const SUBSCRIBE: (&str, &str) = ("wasi:clocks/monotonic-clock", "subscribe-duration");
const POLL: (&str, &str) = ("wasi:io/poll", "poll");
const STDIN: (&str, &str) = ("wasi:cli/stdin", "get-stdin");
const NETWORK: (&str, &str) = ("wasi:sockets/instance-network", "instance-network");
const SOCKET: (&str, &str) = ("wasi:sockets/tcp-create-socket", "create-tcp-socket");
const LOOKUP: (&str, &str) = ("wasi:sockets/ip-name-lookup", "resolve-addresses");
const RANDOM: (&str, &str) = ("wasi:random/random", "get-random-bytes");
const INSECURE: (&str, &str) = ("wasi:random/insecure", "get-insecure-random-bytes");

/// WAT that waits for a timer of this many nanoseconds.
fn wait(nanoseconds: &str) -> String {
    format!(
        "(i32.store (i32.const 2048) (call $monotonic-clock/subscribe-duration (i64.const {nanoseconds})))
         (call $poll/poll (i32.const 2048) (i32.const 1) (i32.const 4096))"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn greed_ends_at_a_limit_that_the_error_names_and_the_next_call_works() {
    for (name, shell, says) in [
        ("a sleep of five hundred years", tool(&wait("-1"), &[SUBSCRIBE, POLL]), &["tool_time"][..]),
        (
            "naps without end",
            tool(&forever(&wait("1")), &[SUBSCRIBE, POLL]),
            &["exceeded its limit", "did not answer", "crashed"],
        ),
        ("standard inputs without end", tool(&forever("(drop (call $stdin/get-stdin))"), &[STDIN]), &["`handles`"]),
        (
            "networks without end",
            tool(&forever("(drop (call $instance-network/instance-network))"), &[NETWORK]),
            &["`handles`"],
        ),
        (
            "sockets without end",
            tool(&forever("(call $tcp-create-socket/create-tcp-socket (i32.const 0) (i32.const 4096))"), &[SOCKET]),
            &["`handles`", "`host_calls`", "`cpu`"],
        ),
        (
            "all random bytes at once",
            tool("(call $random/get-random-bytes (i64.const -1) (i32.const 4096))", &[RANDOM]),
            &["crashed", "exceeded its limit"],
        ),
        (
            "two mebibytes of insecure random bytes",
            tool("(call $insecure/get-insecure-random-bytes (i64.const 2097152) (i32.const 4096))", &[INSECURE]),
            &["crashed", "exceeded its limit"],
        ),
        (
            "random bytes without end",
            tool(&forever("(call $random/get-random-bytes (i64.const 65536) (i32.const 4096))"), &[RANDOM]),
            &["exceeded its limit"],
        ),
        (
            "a poll of nothing",
            tool("(call $poll/poll (i32.const 0) (i32.const 0) (i32.const 4096))", &[SUBSCRIBE, POLL]),
            &["crashed"],
        ),
        (
            "a poll of handles that it does not have",
            tool(
                "(i32.store (i32.const 2048) (i32.const 77))
                 (call $poll/poll (i32.const 2048) (i32.const 1) (i32.const 4096))",
                &[SUBSCRIBE, POLL],
            ),
            &["crashed"],
        ),
        (
            "a poll of handles behind its memory",
            tool("(call $poll/poll (i32.const -64) (i32.const 1000) (i32.const 4096))", &[SUBSCRIBE, POLL]),
            &["crashed"],
        ),
        ("the exit", tool("(call $exit/exit (i32.const 0))", &[("wasi:cli/exit", "exit")]), &["calling `exit`"]),
    ] {
        // A sleep ends at the time of a call; nothing else may come to that on a busy machine.
        let limits = tight().and(Limit::ToolTime, if says == ["tool_time"] { 1_500 } else { 60_000 });
        let fixture = Fixture::within(&shell.build(), Tier::Tools, &limits);
        let error = fixture.tool("bad").await.expect_err(name);
        assert!(error.cause.is_failure(), "{name}: {error}");
        let error = error.to_string();
        assert!(says.iter().any(|part| error.contains(part)), "{name}: none of {says:?} in {error:?}");
        assert_eq!(fixture.tool("good").await.as_deref().unwrap_or_default(), "good", "{name}");
        assert!(fixture.recipe.tally.figures().memory_peak <= 32 << 20, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_world_is_empty() {
    /// WAT that crashes unless the byte at this place of the answer has this value.
    fn expect(at: u32, value: u32) -> String {
        format!("(if (i32.ne (i32.load8_u (i32.const {at})) (i32.const {value})) (then unreachable))")
    }
    let list_is_empty = "(if (i32.load (i32.const 4100)) (then unreachable))";
    let environment = |function| {
        let call = format!("(call $environment/{function} (i32.const 4096))");
        (call, vec![("wasi:cli/environment", function)])
    };
    let (variables, of_variables) = environment("get-environment");
    let (arguments, of_arguments) = environment("get-arguments");
    let (folder, of_folder) = environment("initial-cwd");
    for (name, wat, functions) in [
        ("variables", format!("{variables} {list_is_empty}"), of_variables),
        ("arguments", format!("{arguments} {list_is_empty}"), of_arguments),
        ("a working folder", format!("{folder} {}", expect(4096, 0)), of_folder),
        (
            "folders",
            format!("(call $preopens/get-directories (i32.const 4096)) {list_is_empty}"),
            vec![("wasi:filesystem/preopens", "get-directories")],
        ),
        (
            "a terminal",
            format!("(call $terminal-stdout/get-terminal-stdout (i32.const 4096)) {}", expect(4096, 0)),
            vec![("wasi:cli/terminal-stdout", "get-terminal-stdout")],
        ),
        (
            "names of the network",
            // The name is in the answer of the tool: `good`.
            format!(
                "(i32.store (i32.const 2048) (i32.const 0x61636f6c))
                 (i32.store (i32.const 2052) (i32.const 0x736f686c)) (i32.store8 (i32.const 2056) (i32.const 0x74))
                 (call $ip-name-lookup/resolve-addresses (call $instance-network/instance-network)
                   (i32.const 2048) (i32.const 9) (i32.const 4096)) {}",
                expect(4096, 1)
            ),
            vec![NETWORK, LOOKUP],
        ),
    ] {
        let answer = Fixture::new(&tool(&wat, &functions).build(), Tier::Tools).tool("bad").await;
        assert_eq!(answer.as_deref().unwrap_or_default(), "good", "{name}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_at_the_start_ends_the_plugin_and_not_the_host() {
    for body in ["lifecycle/configure", "lifecycle/session-start"] {
        let shell = tool("nop", &[("wasi:cli/exit", "exit")]);
        let shell = shell.body(body, "(call $exit/exit (i32.const 0)) unreachable");
        let fixture = Fixture::new(&shell.build(), Tier::Tools);
        for _ in 0..2 {
            let error = fixture.tool("good").await.unwrap_err();
            assert!(error.cause.is_failure() && error.to_string().contains("calling `exit`"), "{body}: {error}");
        }
    }
}
