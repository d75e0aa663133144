//! A plugin's code, whatever it is made of, and what it exports.

use crate::component::Component;
use crate::limits::Tier;
use crate::native::Library;

/// Which interfaces a component exports beside `lifecycle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exports {
    /// `context-engine`.
    pub context_engine: bool,
    /// `context-assist`, which an engine may have.
    pub context_assist: bool,
    /// `memory-provider`.
    pub memory_provider: bool,
    /// `memory-events`, which a memory provider may have.
    pub memory_events: bool,
    /// `tools`.
    pub tools: bool,
    /// `skills`.
    pub skills: bool,
    /// `hooks`.
    pub hooks: bool,
}

impl Exports {
    /// How much its instances may use.
    pub fn tier(&self) -> Tier {
        if self.context_engine || self.memory_provider { Tier::Session } else { Tier::Tools }
    }

    /// The names of the contract, in its order.
    pub fn names(&self) -> Vec<&'static str> {
        [
            (self.context_engine, "context-engine"),
            (self.context_assist, "context-assist"),
            (self.memory_provider, "memory-provider"),
            (self.memory_events, "memory-events"),
            (self.tools, "tools"),
            (self.skills, "skills"),
            (self.hooks, "hooks"),
        ]
        .into_iter()
        .filter_map(|(there, name)| there.then_some(name))
        .collect()
    }
}

/// A plugin's code, ready for instances.
pub struct Loaded {
    pub(crate) code: Code,
    exports: Exports,
    source: [u8; 32],
}

/// What code can be.
pub(crate) enum Code {
    /// Compiled from WebAssembly: contained.
    Component(Box<Component>),
    /// A library of the process: trusted.
    Native(Library),
}

impl Loaded {
    pub(crate) fn component(component: Component, source: [u8; 32]) -> Self {
        Self { exports: component.exports(), code: Code::Component(Box::new(component)), source }
    }

    pub(crate) fn native(library: Library, source: [u8; 32]) -> Self {
        Self { exports: library.exports(), code: Code::Native(library), source }
    }

    /// The blake3 digest of the component or the library.
    pub fn source(&self) -> [u8; 32] {
        self.source
    }

    /// What it is.
    pub fn exports(&self) -> Exports {
        self.exports
    }

    /// Whether it is a native library, which nothing contains.
    pub fn is_native(&self) -> bool {
        matches!(self.code, Code::Native(_))
    }
}
