//! Files that the build embeds in the program: the bundled plugins, and the templates of new plugins.

use std::sync::LazyLock;

use hermes_plugin_host::Bundled;
use hermes_runtime::precompiled::Artifact;
use hermes_runtime::{CodeFolder, Compiler, Packed, Runtime};
use serde::Deserialize;

/// The bundled plugins. The table is empty if none were staged before the build.
pub const BUNDLED: &[Bundled] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// Code of bundled plugins that was compiled while the program was built. The table is empty in a build without
/// `cargo xtask`: then every plugin is compiled on first use.
pub const PRECOMPILED: &[Artifact] = include!(concat!(env!("OUT_DIR"), "/precompiled.rs"));

/// A runtime that has the precompiled code of this program, and keeps compiled code in this folder.
pub fn runtime(code: CodeFolder, compiler: Compiler) -> Runtime {
    Runtime::with(code, compiler).with_precompiled(PRECOMPILED)
}

/// The bundled plugin that reads the skills of a plugin without code.
pub fn skill_reader() -> Option<Bundled> {
    hermes_plugin_host::skill_reader(BUNDLED)
}

/// A text file for new plugins.
#[derive(Debug, Deserialize)]
pub struct ScaffoldFile {
    /// `sdk/LANGUAGE`, `LANGUAGE/TEMPLATE` or `wit`.
    pub folder: String,
    /// Below the folder.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// The templates, the sources of the SDKs and the contract, as JSON.
const SCAFFOLD: Packed<'static> = include!(concat!(env!("OUT_DIR"), "/scaffold.rs"));

/// The templates of new plugins, the sources of the SDKs and the contract.
pub fn scaffold() -> &'static [ScaffoldFile] {
    static FILES: LazyLock<Vec<ScaffoldFile>> = LazyLock::new(|| {
        let json = SCAFFOLD.unpack().expect("the build deflated these files");
        serde_json::from_slice(&json).expect("the build wrote these files")
    });
    &FILES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::BUNDLED;

    #[test]
    fn the_build_computes_the_digests_of_the_bundled_components() {
        for plugin in BUNDLED {
            let component = plugin.component.unpack().expect(plugin.manifest);
            let computed = hermes_plugin_host::Bundled::new(plugin.manifest, component.into_owned().leak());
            assert_eq!(plugin.digest, computed.digest, "{}", plugin.manifest);
        }
    }

    #[test]
    fn every_bundled_plugin_has_a_schema_that_refuses_other_keys() {
        for plugin in BUNDLED {
            let manifest = plugin.read().expect(plugin.manifest);
            assert!(manifest.config.is_some(), "{} has no schema for its section", manifest.name);
            assert_eq!(manifest.misfits(&json!({})), Vec::<String>::new(), "{}", manifest.name);
            let unknown = manifest.unknown_keys(&json!({ "no_such_key": 1 }));
            assert_eq!(unknown.len(), 1, "{}", manifest.name);
        }
    }

    #[test]
    fn the_bundled_engines_and_the_memory_take_every_value_that_is_passed_on() {
        let share = [0.000_1, 0.01, 0.15, 0.5, 0.95, 1.0];
        for plugin in BUNDLED {
            let manifest = plugin.read().expect(plugin.manifest);
            let fits = |section: serde_json::Value| {
                assert_eq!(manifest.misfits(&section), Vec::<String>::new(), "{}: {section}", manifest.name);
            };
            match manifest.name.as_str() {
                "compressor" | "lossless" => {
                    share.iter().for_each(|share| fits(json!({ "threshold": share, "target_ratio": share })));
                    [0, 1, 1_000, u32::MAX]
                        .iter()
                        .for_each(|count| fits(json!({ "protect_first_n": count, "protect_last_n": count })));
                    assert!(!manifest.misfits(&json!({ "threshold": 7 })).is_empty());
                    assert!(!manifest.misfits(&json!({ "threshold": "maybe" })).is_empty());
                }
                "builtin" => fits(json!({
                    "memory_char_limit": 1, "user_char_limit": u32::MAX, "facts_char_limit": 7, "write_approval": true,
                    "background_tidy": true,
                })),
                _ => {}
            }
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
