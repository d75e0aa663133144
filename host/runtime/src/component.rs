//! A component that is compiled and linked, and its instances.

use std::fs::File;

use hermes_bindings::exported;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Instance, InstancePre, Linker};
use wasmtime::{Store, UpdateDeadline};

use crate::code_cache::Mapped;
use crate::context::Context;
use crate::contract::{self, CONTRACT, Name};
use crate::error::LoadError;
use crate::exports::Exports;
use crate::imports;
use crate::interfaces::interfaces;
use crate::limits::Limit;
use crate::stubs;

macro_rules! exports_of_a_component {
    (required $required:ident $required_name:literal { $($required_functions:tt)* }
     $($(#[$doc:meta])* $interface:ident $name:literal { $($functions:tt)* })+) => {
        /// The positions of each interface's functions in a component.
        pub(crate) struct Indices {
            $required: exported::$required::GuestIndices,
            $($interface: Option<exported::$interface::GuestIndices>,)+
        }

        /// The functions of an instance.
        pub(crate) struct Functions {
            pub(crate) $required: Option<exported::$required::Guest>,
            $(pub(crate) $interface: Option<exported::$interface::Guest>,)+
        }

        impl Indices {
            /// An interface exported by name must also fit: otherwise its calls would fail in the middle of a session.
            fn probe(
                pre: &InstancePre<Context>,
                exports: impl Fn(&str) -> bool,
                shape: impl Fn(String) -> LoadError,
            ) -> Result<Self, LoadError> {
                let unfit = |name: &str, error: wasmtime::Error| shape(format!("`{name}`: {error:#}"));
                Ok(Self {
                    $($interface: match exports($name) {
                        true => Some(
                            exported::$interface::GuestIndices::new(pre).map_err(|error| unfit($name, error))?,
                        ),
                        false => None,
                    },)+
                    $required: match exports($required_name) {
                        true => exported::$required::GuestIndices::new(pre)
                            .map_err(|error| unfit($required_name, error))?,
                        false => return Err(shape(format!("`{}` is missing", $required_name))),
                    },
                })
            }

            fn exports(&self) -> Exports {
                Exports { $($interface: self.$interface.is_some(),)+ }
            }

            /// Looks up the functions of an instance. The error names the export that does not fit.
            fn load(
                &self,
                store: &mut Store<Context>,
                instance: &Instance,
            ) -> Result<Functions, (&'static str, wasmtime::Error)> {
                let $required = self.$required.load(&mut *store, instance);
                Ok(Functions {
                    $required: Some($required.map_err(|error| ($required_name, error))?),
                    $($interface: match &self.$interface {
                        Some(indices) => Some(indices.load(&mut *store, instance).map_err(|error| ($name, error))?),
                        None => None,
                    },)+
                })
            }
        }
    };
}

interfaces!(exports_of_a_component);

/// A component that is compiled and linked, with its exports.
pub(crate) struct Component {
    pub(crate) pre: InstancePre<Context>,
    indices: Indices,
    /// Keeps the file open that the code is mapped from.
    _lease: File,
}

impl Component {
    /// Links a component and probes its exports. Refuses a component with imports that plugins do not get.
    pub(crate) fn new(mapped: Mapped, linker: &Linker<Context>) -> Result<Self, LoadError> {
        let component = &mapped.component;
        let engine = component.engine();
        let kind = component.component_type();
        for (name, _) in kind.imports(engine) {
            if !imports::offers(name) {
                return Err(LoadError::Import { import: name.to_owned() });
            }
        }
        let shape = |why: String| LoadError::Shape { offered: CONTRACT.to_owned(), why };
        let completed = stubs::complete(linker, component)?;
        let linker = completed.as_ref().unwrap_or(linker);
        let pre = linker.instantiate_pre(component).map_err(|error| match unknown_import(&format!("{error:#}")) {
            Some(import) => LoadError::Import { import },
            None => shape(format!("{error:#}")),
        })?;
        let exports = |interface: &str| {
            kind.exports(engine).any(|(name, item)| {
                matches!(item.ty, ComponentItem::ComponentInstance(_))
                    && Name::parse(name)
                        .is_some_and(|name| name.interface == interface && contract::served(name.package).is_some())
            })
        };
        let indices = Indices::probe(&pre, exports, shape)?;
        let loaded = Self { indices, pre, _lease: mapped.lease };
        if loaded.exports().names().is_empty() {
            return Err(LoadError::NoKind);
        }
        Ok(loaded)
    }

    /// The interfaces that it exports.
    pub(crate) fn exports(&self) -> Exports {
        self.indices.exports()
    }

    /// A store for an instance, with the instance's limits. Fails if the system gives it no memory.
    pub(crate) fn store(&self, context: Context) -> wasmtime::Result<Store<Context>> {
        let limits = *context.meter.limits();
        let mut store = Store::try_new(self.pre.engine(), context)?;
        store.limiter(|context| &mut context.meter);
        store.set_hostcall_fuel(limits.size(Limit::Output));
        store.set_max_component_handles(limits.size(Limit::Handles));
        store.set_epoch_deadline(1);
        // At every tick: interrupt when the time is up, otherwise let other tasks run.
        store.epoch_deadline_callback(|mut store| {
            Ok(if store.data_mut().tick() { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
        });
        Ok(store)
    }

    /// Looks up the functions of an instance. The error names the export that does not fit.
    pub(crate) fn bind(
        &self,
        mut store: Store<Context>,
        instance: &Instance,
    ) -> Result<Guest, (&'static str, wasmtime::Error)> {
        let exports = self.indices.load(&mut store, instance)?;
        Ok(Guest { store, exports })
    }
}

/// An instance of a component, with the functions that it exports.
pub(crate) struct Guest {
    pub(crate) store: Store<Context>,
    pub(crate) exports: Functions,
}

/// The name of the missing import in wasmtime's message, which quotes it in backticks.
fn unknown_import(error: &str) -> Option<String> {
    let (_, rest) =
        error.split_once("matching implementation was not found").map(|_| error.split_once('`').unwrap_or(("", "")))?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}
