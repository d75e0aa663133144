//! Exports a type that implements the traits as a component.

use crate::bindings::lifecycle::exports::hermes::lifecycle::lifecycle as wit;
use crate::lifecycle::{Ending, Prepared, Start, section};
use crate::{Error, Plugin, Session};

/// The contract version of this SDK.
pub const CONTRACT: &str = "hermes:plugin@1.1.0";

/// Content of the custom section `hermes:abi`. It tells the host the contract, so that it need not infer it from names.
pub const STAMP: &str =
    concat!(r#"{"package":"hermes:plugin@1.1.0","sdk":"hermes-plugin "#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// The bytes of [`STAMP`] as an array, for the custom section.
pub const fn stamp<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(STAMP.as_bytes());
    bytes
}

/// Holds the single instance of a component; implemented by [`export!`](crate::export).
pub trait Slot {
    /// The author's type.
    type Plugin: Plugin;

    /// Lends the instance, or what there is before it is created.
    fn with<R>(run: impl FnOnce(&mut Prepared<Self::Plugin>) -> R) -> R;

    /// Calls the instance, or returns an error if it is not created yet.
    fn call<R>(name: &str, run: impl FnOnce(&mut Self::Plugin) -> Result<R, Error>) -> Result<R, Error> {
        Self::with(|slot| Self::in_slot(name, slot, run))
    }

    /// The same for a slot that is lent already.
    fn in_slot<R>(
        name: &str,
        slot: &mut Prepared<Self::Plugin>,
        run: impl FnOnce(&mut Self::Plugin) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match slot {
            Prepared::Instance(plugin) => run(plugin),
            Prepared::Config(_) => {
                Err(Error::failed(format!("{name} was called before session-start had succeeded"))
                    .with_code("not-started"))
            }
            Prepared::Nothing => {
                Err(Error::failed(format!("{name} was called before configure had succeeded"))
                    .with_code("unconfigured"))
            }
        }
    }

    /// Calls the instance where the contract has no error result. Traps if it is not created yet.
    fn expect<R>(name: &str, run: impl FnOnce(&mut Self::Plugin) -> R) -> R {
        Self::call(name, |plugin| Ok(run(plugin))).unwrap_or_else(|error| panic!("{}", error.message))
    }
}

/// Logs panics with their location, at a level for the plugin's author. The host reports the panic's message to the user.
#[cfg(target_family = "wasm")]
pub(crate) fn log_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            crate::host::log::info(panic);
            usual(panic);
        }));
    });
}

impl<S: Slot> wit::Guest for S {
    fn configure(config: String) -> Result<(), Error> {
        #[cfg(target_family = "wasm")]
        log_panics();
        let prepared = S::Plugin::prepare_instance(section(&config))?;
        S::with(|slot| *slot = prepared);
        Ok(())
    }

    fn session_start(session: Session, how: Start) -> Result<(), Error> {
        S::with(|slot| {
            let Prepared::Config(config) = slot else {
                return S::in_slot("session-start", slot, |plugin| plugin.session_start(&session, &how));
            };
            *slot = Prepared::Instance(S::Plugin::create_instance(config, session, how)?);
            Ok(())
        })
    }

    fn session_end(how: Ending) -> Result<(), Error> {
        S::call("session-end", |plugin| Plugin::session_end(plugin, how))
    }
}

/// Exports a type as the plugin of this crate: `export!(MyPlugin: ContextEngine, Tools);`
///
/// The component exports `lifecycle` and the named interfaces, nothing else. Known names: `ContextEngine`, `ContextAssist`,
/// `MemoryProvider`, `MemoryEvents`, `MemoryPrefetch`, `MemoryMirror`, `MemoryRewind`, `MemoryUpkeep`, `Tools`, `ToolPreview`, `Skills`,
/// `Hooks`, `Embedder`. Use it once per crate.
#[macro_export]
macro_rules! export {
    ($plugin:ty: $($kind:ident),+ $(,)?) => {
        const _: () = {
            ::std::thread_local! {
                static INSTANCE: ::std::cell::RefCell<$crate::__private::Prepared<$plugin>> =
                    const { ::std::cell::RefCell::new($crate::__private::Prepared::Nothing) };
            }

            #[allow(dead_code)]
            struct Component;

            impl $crate::__private::Slot for Component {
                type Plugin = $plugin;

                fn with<R>(run: impl ::std::ops::FnOnce(&mut $crate::__private::Prepared<$plugin>) -> R) -> R {
                    INSTANCE.with_borrow_mut(run)
                }
            }

            $crate::__export_interface!(Lifecycle Component);
            $($crate::__export_interface!($kind Component);)+
            $crate::__export_native!(Component: $($kind),+);

            #[cfg(target_family = "wasm")]
            #[allow(unsafe_code)]
            #[used]
            #[unsafe(link_section = "hermes:abi")]
            static STAMP: [u8; $crate::__private::STAMP.len()] = $crate::__private::stamp();
        };
    };
}

/// Expands to nothing unless a native library is built.
#[cfg(not(all(feature = "native", not(target_family = "wasm"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_native {
    ($component:ident: $($kind:ident),+) => {};
}

/// The library's header, where the host finds everything else.
#[cfg(all(feature = "native", not(target_family = "wasm")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_native {
    ($component:ident: $($kind:ident),+) => {
        #[cfg(panic = "abort")]
        ::std::compile_error!("a native library must catch panics: leave `panic = \"abort\"` out of the profile");

        /// Must equal `hermes_plugin_abi::SYMBOL`.
        #[allow(unsafe_code, non_upper_case_globals)]
        #[unsafe(no_mangle)]
        pub static hermes_plugin: $crate::__private::abi::LibHeader = {
            fn plugin() -> $crate::__private::abi::PluginRef {
                $crate::__private::native::library::<$component>(&[$(&$crate::__export_native!(@ $component $kind)),+])
            }

            extern "C" fn construct() -> $crate::__private::abi::RootModuleResult {
                $crate::__private::abi::construct(plugin)
            }

            // SAFETY: `construct` returns a value of the type that the header declares.
            unsafe {
                $crate::__private::abi::LibHeader::from_constructor::<$crate::__private::abi::PluginRef>(
                    construct,
                    $crate::__private::abi::CheckTypeLayout::Yes,
                )
            }
        };
    };
    (@ $component:ident ContextEngine) => {
        $crate::__private::native::context_engine::<$component>()
    };
    (@ $component:ident ContextAssist) => {
        $crate::__private::native::context_assist::<$component>()
    };
    (@ $component:ident MemoryProvider) => {
        $crate::__private::native::memory_provider::<$component>()
    };
    (@ $component:ident MemoryEvents) => {
        $crate::__private::native::memory_events::<$component>()
    };
    (@ $component:ident MemoryPrefetch) => {
        $crate::__private::native::memory_prefetch::<$component>()
    };
    (@ $component:ident MemoryMirror) => {
        $crate::__private::native::memory_mirror::<$component>()
    };
    (@ $component:ident MemoryRewind) => {
        $crate::__private::native::memory_rewind::<$component>()
    };
    (@ $component:ident MemoryUpkeep) => {
        $crate::__private::native::memory_upkeep::<$component>()
    };
    (@ $component:ident Tools) => {
        $crate::__private::native::tools::<$component>()
    };
    (@ $component:ident ToolPreview) => {
        $crate::__private::native::tool_preview::<$component>()
    };
    (@ $component:ident Skills) => {
        $crate::__private::native::skills::<$component>()
    };
    (@ $component:ident Hooks) => {
        $crate::__private::native::hooks::<$component>()
    };
    (@ $component:ident Embedder) => {
        $crate::__private::native::embedder::<$component>()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_interface {
    (Lifecycle $component:ident) => {
        $crate::__export_interface!(@ $component Plugin lifecycle);
    };
    (ContextEngine $component:ident) => {
        $crate::__export_interface!(@ $component ContextEngine context_engine);
    };
    (ContextAssist $component:ident) => {
        $crate::__export_interface!(@ $component ContextAssist context_assist);
    };
    (MemoryProvider $component:ident) => {
        $crate::__export_interface!(@ $component MemoryProvider memory_provider);
    };
    (MemoryEvents $component:ident) => {
        $crate::__export_interface!(@ $component MemoryEvents memory_events);
    };
    (MemoryPrefetch $component:ident) => {
        $crate::__export_interface!(@ $component MemoryPrefetch memory_prefetch);
    };
    (MemoryMirror $component:ident) => {
        $crate::__export_interface!(@ $component MemoryMirror memory_mirror);
    };
    (MemoryRewind $component:ident) => {
        $crate::__export_interface!(@ $component MemoryRewind memory_rewind);
    };
    (MemoryUpkeep $component:ident) => {
        $crate::__export_interface!(@ $component MemoryUpkeep memory_upkeep);
    };
    (Tools $component:ident) => {
        $crate::__export_interface!(@ $component Tools tools);
    };
    (ToolPreview $component:ident) => {
        $crate::__export_interface!(@ $component ToolPreview tool_preview);
    };
    (Skills $component:ident) => {
        $crate::__export_interface!(@ $component Skills skills);
    };
    (Hooks $component:ident) => {
        $crate::__export_interface!(@ $component Hooks hooks);
    };
    (Embedder $component:ident) => {
        $crate::__export_interface!(@ $component Embedder embedder);
    };
    (@ $component:ident $kind:ident $interface:ident) => {
        // Reports a missing trait on every target.
        const _: () = {
            const fn implements<T: $crate::$kind>() {}
            implements::<<$component as $crate::__private::Slot>::Plugin>();
        };

        #[cfg(target_family = "wasm")]
        $crate::__private::bindings::$interface::export!(
            $component with_types_in $crate::__private::bindings::$interface
        );
    };
    ($other:ident $component:ident) => {
        ::std::compile_error!(::std::concat!(
            "`", ::std::stringify!($other),
            "` is nothing to export; known are ContextEngine, ContextAssist, MemoryProvider, MemoryEvents, MemoryPrefetch, MemoryMirror, \
             MemoryRewind, MemoryUpkeep, Tools, ToolPreview, Skills, Hooks, Embedder"
        ));
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_names_the_package_of_the_wit_folder() {
        let worlds = include_str!("../../../wit/1.1.0/worlds.wit");
        assert!(worlds.starts_with(&format!("package {CONTRACT};")));
        let stamp: serde_json::Value = serde_json::from_str(STAMP).unwrap_or_default();
        assert_eq!(stamp["package"], CONTRACT);
    }
}
