//! Files that are not plugins, or plugins for another host, are refused with a reason before any of their code runs.

use hermes_runtime::LoadError;
use hermes_zoo::Shell;
use proptest::prelude::*;

use crate::runtime;

fn refusal(bytes: &[u8]) -> String {
    match runtime().load(bytes) {
        Ok(loaded) => panic!("it was loaded as {:?}", loaded.exports().names()),
        Err(error) => error.to_string(),
    }
}

fn good() -> Vec<u8> {
    Shell::with_tool("nop").build()
}

const AMBIENT: &str = "
world more { include tools-plugin; import back-door; }
interface back-door { open: func() -> u32; }";

const ASYNC: &str = r#"(component
    (import "hermes:host/log@1.0.0" (instance))
    (core module $m (func (export "f")))
    (core instance $i (instantiate $m))
    (func $f async (canon lift (core func $i "f") async))
    (export "f" (func $f)))"#;

#[test]
fn a_file_that_is_not_a_plugin_of_this_contract_is_refused_with_the_reason() {
    let component = good();
    let old = Shell::with_tool("nop").version("0.0.9").build();
    let newer = Shell::with_tool("nop").version("2.0.0").build();
    let importing = |world: &str, wit: &str, interface: &str, function: &str| {
        let call = format!("(drop (call ${interface}/{function}))");
        Shell::with_tool(&call).on(world, wit).import(interface, function).build()
    };
    for (name, bytes, says) in [
        ("an empty file", Vec::new(), &["the file is empty"][..]),
        ("a script", b"#!/bin/sh\nrm -rf /\n".to_vec(), &["not a WebAssembly component"]),
        ("an archive", b"PK\x03\x04plugin.yaml".to_vec(), &["not a WebAssembly component"]),
        ("a core module", wat::parse_str("(module)").unwrap(), &["core module", "wasm32-wasip2"]),
        ("half a component", component[..component.len() / 2].to_vec(), &[]),
        ("one without its last byte", component[..component.len() - 1].to_vec(), &["not a WebAssembly component"]),
        ("one with something behind it", [&component[..], b"more"].concat(), &["not a WebAssembly component"]),
        ("an empty component", b"\0asm\x0d\0\x01\0".to_vec(), &["an interface of the contract"]),
        ("one of an old contract", old, &["0.0.9", "update the plugin"]),
        ("one of a newer contract", newer, &["2.0.0", "update Hermes"]),
        ("one of no kind", Shell::of("plugin").build(), &["exports none of"]),
        (
            "one without lifecycle",
            Shell::of("bare").wit("world bare { include imports; export hermes:tools/tools@1.1.0; }").build(),
            &["`lifecycle` is missing"],
        ),
        (
            "one that wants WASI's web",
            hermes_zoo::importing_more("wasi:http/outgoing-handler@0.2.0"),
            &["wasi:http/outgoing-handler"],
        ),
        (
            "one that wants files of another WASI",
            hermes_zoo::importing_more("wasi:filesystem/preopens@0.3.0"),
            &["wasi:filesystem/preopens@0.3.0"],
        ),
        (
            "one that wants more than WASI's clocks",
            hermes_zoo::importing_more("wasi:clocks/timezone@0.2.0"),
            &["wasi:clocks/timezone"],
        ),
        ("one with async functions", wat::parse_str(ASYNC).unwrap(), &["it has async functions"]),
        ("one that imports an unknown interface", importing("more", AMBIENT, "back-door", "open"), &["back-door"]),
    ] {
        let refusal = refusal(&bytes);
        for part in says {
            assert!(refusal.contains(part), "{name}: no {part:?} in {refusal:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_another_shape_is_reported_at_its_first_use_at_the_latest() {
    let odd = Shell::of("tools-plugin")
        .rewritten("catalog: func() -> result<list<tool>, error>;", "catalog: func() -> u32;")
        .build();
    match runtime().load(&odd) {
        Err(LoadError::Shape { why, .. }) => assert!(why.contains("tools"), "{why}"),
        Err(other) => panic!("{other}"),
        Ok(_) => {
            let fixture = crate::Fixture::new(&odd, hermes_runtime::Tier::Tools);
            let error = fixture.tool("good").await.unwrap_err();
            assert!(
                error.cause.is_failure() && error.to_string().contains("its export `tools` does not fit"),
                "{error}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), dressed: bool) {
        let header: &[u8] = if dressed { b"\0asm\x0d\0\x01\0" } else { b"" };
        let bytes = [header, &bytes].concat();
        prop_assert!(!refusal(&bytes).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// A damaged component either still loads as a plugin or is refused with a reason.
    #[test]
    fn a_damaged_component_never_harms_the_host(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = good();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match runtime().load(&bytes) {
            Ok(loaded) => prop_assert!(!loaded.exports().names().is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
