//! The plugins inside the binary, as the build put them there.

/// Bundled plugins; empty in a build before which none were staged.
pub(crate) const BUNDLED: &[hermes_plugin_host::Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
