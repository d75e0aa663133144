//! What plugin authors do: new projects from templates, bindings and components for languages without a generator of their own, builds
//! that sessions use while they are written, and signed packages.
//!
//! This crate reads and writes projects, and says nothing to a person but in its errors. `host/conformance` tests what authors build.

#![forbid(unsafe_code)]

pub mod contract;
mod development;
mod kinds;
mod project;
mod publication;
mod scaffold;
mod slot;
mod toolchain;

use hermes_diagnostic::{Category, Diagnostic};

pub use development::{Watch, complaint, draft_exports};
pub use kinds::{PluginKind, ProjectLanguage};
pub use project::{Built, Project, Sources};
pub use publication::{
    Image, Login, Package, Push, Signed, SigningKey, Tagged, image, pack, prepare_push, read_key, sign, stored_login,
};
pub use scaffold::{create, files, flaw_of_name};
pub use slot::Slot;
pub use toolchain::missing;

/// A failure without a code of its own.
fn failure(category: Category, what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Diagnostic {
    Diagnostic::new(category.into(), what, why, fix.into())
}
