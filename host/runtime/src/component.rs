//! A component that is compiled and linked, and an instance of it.

use std::fs::File;

use hermes_bindings::exports::hermes::plugin as exported;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Instance, InstancePre, Linker};
use wasmtime::{Store, UpdateDeadline};

use crate::code_cache::Mapped;
use crate::context::Context;
use crate::error::LoadError;
use crate::imports;
use crate::limits::Limit;
use crate::loaded::Exports;
use crate::stamp::OFFERED;

/// A component, probed for what it exports.
pub(crate) struct Component {
    pub(crate) pre: InstancePre<Context>,
    pub(crate) lifecycle: Option<exported::lifecycle::GuestIndices>,
    pub(crate) context_engine: Option<exported::context_engine::GuestIndices>,
    pub(crate) context_assist: Option<exported::context_assist::GuestIndices>,
    pub(crate) memory_provider: Option<exported::memory_provider::GuestIndices>,
    pub(crate) memory_events: Option<exported::memory_events::GuestIndices>,
    pub(crate) tools: Option<exported::tools::GuestIndices>,
    pub(crate) skills: Option<exported::skills::GuestIndices>,
    pub(crate) hooks: Option<exported::hooks::GuestIndices>,
    /// Keeps the code it is mapped from.
    _lease: File,
}

impl Component {
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
            lifecycle: Some(probe!(lifecycle, "lifecycle").ok_or_else(|| shape("`lifecycle` is missing".to_owned()))?),
            pre,
            _lease: mapped.lease,
        };
        if loaded.exports().names().is_empty() {
            return Err(LoadError::NoKind);
        }
        Ok(loaded)
    }

    /// What it is.
    pub(crate) fn exports(&self) -> Exports {
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

    /// A store for an instance, held to its limits.
    pub(crate) fn store(&self, context: Context) -> Store<Context> {
        let limits = *context.meter.limits();
        let mut store = Store::new(self.pre.engine(), context);
        store.limiter(|context| &mut context.meter);
        store.set_hostcall_fuel(limits.size(Limit::Output));
        store.set_max_component_handles(limits.size(Limit::Handles));
        store.set_epoch_deadline(1);
        // At every tick: stop when the time is up, else let other tasks run.
        store.epoch_deadline_callback(|mut store| {
            Ok(if store.data_mut().tick() { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
        });
        store
    }

    /// Looks up the functions of an instance; an export that does not fit is named.
    pub(crate) fn bind(
        &self,
        mut store: Store<Context>,
        instance: &Instance,
    ) -> Result<Guest, (&'static str, wasmtime::Error)> {
        macro_rules! bind {
            ($field:ident, $name:literal) => {
                match &self.$field {
                    Some(indices) => Some(indices.load(&mut store, instance).map_err(|error| ($name, error))?),
                    None => None,
                }
            };
        }
        Ok(Guest {
            lifecycle: bind!(lifecycle, "lifecycle"),
            context_engine: bind!(context_engine, "context-engine"),
            context_assist: bind!(context_assist, "context-assist"),
            memory_provider: bind!(memory_provider, "memory-provider"),
            memory_events: bind!(memory_events, "memory-events"),
            tools: bind!(tools, "tools"),
            skills: bind!(skills, "skills"),
            hooks: bind!(hooks, "hooks"),
            store,
        })
    }
}

/// An instance of a component, with what it exports.
pub(crate) struct Guest {
    pub(crate) store: Store<Context>,
    pub(crate) lifecycle: Option<exported::lifecycle::Guest>,
    pub(crate) context_engine: Option<exported::context_engine::Guest>,
    pub(crate) context_assist: Option<exported::context_assist::Guest>,
    pub(crate) memory_provider: Option<exported::memory_provider::Guest>,
    pub(crate) memory_events: Option<exported::memory_events::Guest>,
    pub(crate) tools: Option<exported::tools::Guest>,
    pub(crate) skills: Option<exported::skills::Guest>,
    pub(crate) hooks: Option<exported::hooks::Guest>,
}

/// wasmtime's sentence for an import that the linker lacks names it in backticks.
fn unknown_import(error: &str) -> Option<String> {
    let (_, rest) =
        error.split_once("matching implementation was not found").map(|_| error.split_once('`').unwrap_or(("", "")))?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}
