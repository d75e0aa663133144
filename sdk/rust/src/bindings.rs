//! Code generated from `wit/`: imports and shared types once, and a small world for each interface that a plugin can export.
//!
//! Separate worlds let a component export exactly the interfaces it implements: the linker merges the worlds whose export
//! macros are used.
#![allow(missing_docs, unsafe_code, unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "imports",
    generate_unused_types: true,
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    with: { "hermes:plugin/types@0.1.0/error": crate::Error },
});

/// The shared types, with the SDK's own error type.
pub mod types {
    pub use super::hermes::plugin::types::*;
    pub use crate::error::Error;
}

macro_rules! world {
    ($module:ident, $inline:literal) => {
        pub mod $module {
            wit_bindgen::generate!({
                path: "../../wit",
                inline: $inline,
                generate_unused_types: true,
                additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
                pub_export_macro: true,
                export_macro_name: "export",
                with: {
                    "hermes:plugin/types@0.1.0": crate::bindings::types,
                },
            });
        }
    };
}

world!(lifecycle, "package hermes:sdk; world lifecycle { export hermes:plugin/lifecycle@0.1.0; }");
world!(context_engine, "package hermes:sdk; world context-engine { export hermes:plugin/context-engine@0.1.0; }");
world!(context_assist, "package hermes:sdk; world context-assist { export hermes:plugin/context-assist@0.1.0; }");
world!(memory_provider, "package hermes:sdk; world memory-provider { export hermes:plugin/memory-provider@0.1.0; }");
world!(memory_events, "package hermes:sdk; world memory-events { export hermes:plugin/memory-events@0.1.0; }");
world!(tools, "package hermes:sdk; world tools { export hermes:plugin/tools@0.1.0; }");
world!(skills, "package hermes:sdk; world skills { export hermes:plugin/skills@0.1.0; }");
world!(hooks, "package hermes:sdk; world hooks { export hermes:plugin/hooks@0.1.0; }");
