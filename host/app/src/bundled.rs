//! What the build put into the program: the bundled plugins, and the files that a new plugin starts from.

/// The bundled plugins. The table is empty if none were staged before the build.
pub const BUNDLED: &[hermes_plugin_host::Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// Text files by folder and path: the templates, the sources of the SDK, the contract.
pub const SCAFFOLD: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/scaffold.rs"));
