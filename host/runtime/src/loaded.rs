//! A plugin's code, compiled or native.

use crate::component::Component;
use crate::exports::Exports;
use crate::native::Library;

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
