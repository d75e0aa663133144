//! The code and the remedy of each failure before an examination.

use hermes_diagnostic::{Diagnose, Fix, Parts};
use hermes_plugin_host::artifact::ArtifactError;

use crate::ConformanceError;

hermes_diagnostic::codes! {
    /// The codes of examinations.
    pub mod codes {
        MISSING = "test.missing", Category::General, "nothing is at the path";
        NO_COMPONENT = "test.no-component", Category::General, "the folder has no component";
        NO_LIBRARY = "test.no-library", Category::General, "the folder has no native library for this machine";
        OUTDATED = "test.outdated", Category::General, "the build is older than its sources";
        SEVERAL = "test.several", Category::General, "the folder has several components";
        READ = "test.read", Category::General, "a file cannot be read";
        MANIFEST = "test.manifest", Category::General, "the `plugin.yaml` is invalid";
        FIXTURES = "test.fixtures", Category::General, "a file of fixtures is invalid";
        CONFIG = "test.config", Category::Usage, "the configuration is not a JSON object";
        SURROUNDINGS = "test.surroundings", Category::General, "the environment of the test cannot be set up";
    }
}

impl Diagnose for ConformanceError {
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::Missing(_) => (codes::MISSING, "name a component, a plugin's folder or a Rust project".to_owned()),
            Self::NoBuild { folder, error } => {
                let code = match error {
                    ArtifactError::Several { .. } => codes::SEVERAL,
                    ArtifactError::Outdated { .. } => codes::OUTDATED,
                    _ => codes::NO_COMPONENT,
                };
                (code, error.fix(folder))
            }
            Self::NoLibrary { .. } => (
                codes::NO_LIBRARY,
                format!(
                    "name it in plugin.yaml, as `native: {{{}: FILE}}`, and build it with `cargo build --release --features \
                     native`",
                    hermes_runtime::TARGET
                ),
            ),
            Self::Read { .. } => (codes::READ, "check its permissions".to_owned()),
            Self::Manifest { fix, .. } => {
                (codes::MANIFEST, fix.unwrap_or("correct it; docs/plugins/overview.md lists its fields").to_owned())
            }
            Self::Fixtures { .. } => {
                (codes::FIXTURES, "correct it; docs/plugins/testing.md describes the format".to_owned())
            }
            Self::Config(_) => (codes::CONFIG, "give one such as '{\"key\": \"value\"}'".to_owned()),
            Self::Surroundings(_) => {
                (codes::SURROUNDINGS, "free some space, or set TMPDIR to another folder".to_owned())
            }
        };
        (code, "the plugin cannot be tested".into(), Fix::words(fix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let no_build = |error| ConformanceError::NoBuild { folder: "/p".into(), error };
        let errors = [
            ConformanceError::Missing("/p".into()),
            no_build(ArtifactError::NotBuilt),
            no_build(ArtifactError::Several { found: vec!["a.wasm".into(), "b.wasm".into()] }),
            no_build(ArtifactError::Outdated { artifact: "a.wasm".into(), source_file: "lib.rs".into() }),
            ConformanceError::NoLibrary { folder: "/p".into() },
            ConformanceError::Read { path: "/p".into(), source: std::io::Error::other("refused") },
            ConformanceError::Manifest { path: "/p".into(), why: "line 1".into(), fix: None },
            ConformanceError::Fixtures { path: "/p".into(), why: "line 1".into() },
            ConformanceError::Config("it is a list".into()),
            ConformanceError::Surroundings("the disk is full".into()),
        ];
        let diagnostics: Vec<_> = errors.iter().map(Diagnose::diagnose).collect();
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
