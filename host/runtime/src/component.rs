//! A component that is compiled, linked and probed for what it exports.

use std::fs::File;

use hermes_bindings::exports::hermes::plugin as exported;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{InstancePre, Linker};

use crate::code_cache::Mapped;
use crate::context::Context;
use crate::error::LoadError;
use crate::imports;
use crate::limits::Tier;
use crate::stamp::OFFERED;

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
    pub(crate) pre: InstancePre<Context>,
    pub(crate) lifecycle: exported::lifecycle::GuestIndices,
    pub(crate) context_engine: Option<exported::context_engine::GuestIndices>,
    pub(crate) context_assist: Option<exported::context_assist::GuestIndices>,
    pub(crate) memory_provider: Option<exported::memory_provider::GuestIndices>,
    pub(crate) memory_events: Option<exported::memory_events::GuestIndices>,
    pub(crate) tools: Option<exported::tools::GuestIndices>,
    pub(crate) skills: Option<exported::skills::GuestIndices>,
    pub(crate) hooks: Option<exported::hooks::GuestIndices>,
    source: [u8; 32],
    /// Keeps the code it is mapped from.
    _lease: File,
}

impl Loaded {
    /// Refuses what asks for more than plugins get, links the rest and looks what it is.
    pub(crate) fn new(mapped: Mapped, linker: &Linker<Context>) -> Result<Self, LoadError> {
        let component = &mapped.component;
        let engine = component.engine();
        let kind = component.component_type();
        for (name, _) in kind.imports(engine) {
            if !imports::offers(name) {
                return Err(LoadError::Import { import: name.to_owned() });
            }
        }
        let shape = |why: String| LoadError::Shape { offered: OFFERED.to_owned(), why };
        let pre = linker.instantiate_pre(component).map_err(|error| match unknown_import(&format!("{error:#}")) {
            Some(import) => LoadError::Import { import },
            None => shape(format!("{error:#}")),
        })?;
        let exports = |interface: &str| {
            kind.exports(engine).any(|(name, item)| {
                matches!(item.ty, ComponentItem::ComponentInstance(_))
                    && name.strip_prefix("hermes:plugin/").and_then(|name| name.split('@').next()) == Some(interface)
            })
        };
        // An interface that is there by name must also fit: half a kind would fail in the middle of a session.
        macro_rules! probe {
            ($module:ident, $name:literal) => {
                match exports($name) {
                    true => Some(
                        exported::$module::GuestIndices::new(&pre)
                            .map_err(|error| shape(format!("`{}`: {error:#}", $name)))?,
                    ),
                    false => None,
                }
            };
        }
        let loaded = Self {
            context_engine: probe!(context_engine, "context-engine"),
            context_assist: probe!(context_assist, "context-assist"),
            memory_provider: probe!(memory_provider, "memory-provider"),
            memory_events: probe!(memory_events, "memory-events"),
            tools: probe!(tools, "tools"),
            skills: probe!(skills, "skills"),
            hooks: probe!(hooks, "hooks"),
            lifecycle: probe!(lifecycle, "lifecycle").ok_or_else(|| shape("`lifecycle` is missing".to_owned()))?,
            pre,
            source: mapped.source,
            _lease: mapped.lease,
        };
        if loaded.exports().names().is_empty() {
            return Err(LoadError::NoKind);
        }
        Ok(loaded)
    }

    /// The blake3 digest of the component.
    pub fn source(&self) -> [u8; 32] {
        self.source
    }

    /// What it is.
    pub fn exports(&self) -> Exports {
        Exports {
            context_engine: self.context_engine.is_some(),
            context_assist: self.context_assist.is_some(),
            memory_provider: self.memory_provider.is_some(),
            memory_events: self.memory_events.is_some(),
            tools: self.tools.is_some(),
            skills: self.skills.is_some(),
            hooks: self.hooks.is_some(),
        }
    }
}

/// wasmtime's sentence for an import that the linker lacks names it in backticks.
fn unknown_import(error: &str) -> Option<String> {
    let (_, rest) =
        error.split_once("matching implementation was not found").map(|_| error.split_once('`').unwrap_or(("", "")))?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}
