//! Files that the build embeds in the program: the bundled plugins, and the templates of new plugins.

use hermes_runtime::{CodeFolder, Compiler, Runtime};

/// The bundled plugins. The table is empty if none were staged before the build.
pub const BUNDLED: &[hermes_plugin_host::Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// Code of bundled plugins that was compiled while the program was built. The table is empty in a build without
/// `cargo xtask`: then every plugin is compiled on first use.
pub const PRECOMPILED: &[&[u8]] = include!(concat!(env!("OUT_DIR"), "/precompiled.rs"));

/// A runtime that has the precompiled code of this program, and keeps compiled code in this folder.
pub fn runtime(code: CodeFolder, compiler: Compiler) -> Runtime {
    Runtime::with(code, compiler).with_precompiled(PRECOMPILED)
}

/// Text files by folder and path: the templates, the sources of the SDK, the contract.
pub const SCAFFOLD: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/scaffold.rs"));

#[cfg(test)]
mod tests {
    use super::BUNDLED;

    #[test]
    fn the_build_computes_the_digests_of_the_bundled_components() {
        for plugin in BUNDLED {
            let computed = hermes_plugin_host::Bundled::new(plugin.manifest, plugin.component);
            assert_eq!(plugin.digest, computed.digest, "{}", plugin.manifest);
        }
    }

    #[test]
    fn the_manifests_of_the_bundled_plugins_are_correct() {
        for plugin in BUNDLED {
            let checked = hermes_plugin_host::Manifest::parse(plugin.manifest).expect(plugin.manifest);
            let read = plugin.read().expect(plugin.manifest);
            assert_eq!(format!("{checked:?}"), format!("{read:?}"));
        }
    }
}
