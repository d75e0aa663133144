//! Code generated from `wit/`: imports and shared types once, and a small world for each interface that a plugin can export.
//!
//! Separate worlds let a component export exactly the interfaces it implements: the linker merges the worlds whose export
//! macros are used.
#![allow(missing_docs, unsafe_code, unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit/1.0.0-rc.1",
    world: "imports",
    generate_all,
    generate_unused_types: true,
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    with: { "hermes:types/types@1.0.0-rc.1/error": crate::Error },
});

/// The shared types, with the SDK's own error type.
pub mod types {
    pub use super::hermes::types::types::*;
    pub use crate::error::Error;
}

macro_rules! world {
    ($module:ident, $inline:literal) => {
        pub mod $module {
            wit_bindgen::generate!({
                path: "../../wit/1.0.0-rc.1",
                inline: $inline,
                generate_all,
                generate_unused_types: true,
                additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
                pub_export_macro: true,
                export_macro_name: "export",
                with: {
                    "hermes:types/types@1.0.0-rc.1": crate::bindings::types,
                },
            });
        }
    };
}

world!(lifecycle, "package hermes:sdk; world lifecycle { export hermes:lifecycle/lifecycle@1.0.0-rc.1; }");
world!(
    context_engine,
    "package hermes:sdk; world context-engine { export hermes:context-engine/context-engine@1.0.0-rc.1; }"
);
world!(
    context_assist,
    "package hermes:sdk; world context-assist { export hermes:context-engine/context-assist@1.0.0-rc.1; }"
);
world!(
    memory_provider,
    "package hermes:sdk; world memory-provider { export hermes:memory/memory-provider@1.0.0-rc.1; }"
);
world!(memory_events, "package hermes:sdk; world memory-events { export hermes:memory/memory-events@1.0.0-rc.1; }");
world!(
    memory_prefetch,
    "package hermes:sdk; world memory-prefetch { export hermes:memory/memory-prefetch@1.0.0-rc.1; }"
);
world!(memory_mirror, "package hermes:sdk; world memory-mirror { export hermes:memory/memory-mirror@1.0.0-rc.1; }");
world!(memory_rewind, "package hermes:sdk; world memory-rewind { export hermes:memory/memory-rewind@1.0.0-rc.1; }");
world!(memory_upkeep, "package hermes:sdk; world memory-upkeep { export hermes:memory/memory-upkeep@1.0.0-rc.1; }");
world!(tools, "package hermes:sdk; world tools { export hermes:tools/tools@1.0.0-rc.1; }");
world!(skills, "package hermes:sdk; world skills { export hermes:skills/skills@1.0.0-rc.1; }");
world!(embedder, "package hermes:sdk; world embedder { export hermes:embeddings/embedder@1.0.0-rc.1; }");
world!(hooks, "package hermes:sdk; world hooks { export hermes:hooks/hooks@1.0.0-rc.1; }");

/// The imports, by interface.
pub mod imports {
    pub use super::hermes::embeddings::embeddings;
    pub use super::hermes::files::files;
    pub use super::hermes::history::history;
    pub use super::hermes::host::{clock, info, log, random, task};
    pub use super::hermes::http::http;
    pub use super::hermes::llm::{llm, llm_stream};
    pub use super::hermes::process::process;
    pub use super::hermes::storage::{documents, sql};
}
