//! A plugin's code, compiled or native, and its exports.

use crate::component::Component;
use crate::interfaces::interfaces;
use crate::limits::Tier;
use crate::native::Library;

macro_rules! exports {
    (required $required:ident $required_name:literal { $($required_functions:tt)* }
     $($(#[$doc:meta])* $interface:ident $name:literal { $($functions:tt)* })+) => {
        /// The interfaces that a plugin exports besides `lifecycle`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exports {
            $($(#[$doc])* pub $interface: bool,)+
        }

        impl Exports {
            /// The names of the exported interfaces, in the order of the contract.
            pub fn names(&self) -> Vec<&'static str> {
                let all = [$((self.$interface, $name),)+];
                all.into_iter().filter_map(|(exported, name)| exported.then_some(name)).collect()
            }
        }
    };
}

interfaces!(exports);

impl Exports {
    /// The tier of limits for its instances.
    pub fn tier(&self) -> Tier {
        if self.context_engine || self.memory_provider || self.embedder { Tier::Session } else { Tier::Tools }
    }
}

/// A plugin's code, ready for instances.
pub struct Loaded {
    pub(crate) code: Code,
    exports: Exports,
    source: [u8; 32],
}

/// The form of a plugin's code.
pub(crate) enum Code {
    /// Compiled from WebAssembly: sandboxed.
    Component(Box<Component>),
    /// A library in this process: trusted.
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

    /// The interfaces that it exports.
    pub fn exports(&self) -> Exports {
        self.exports
    }

    /// Whether it is a native library, which runs without a sandbox.
    pub fn is_native(&self) -> bool {
        matches!(self.code, Code::Native(_))
    }
}
