//! An engine as the command line names it: installed or at a path, with settings of its own.

use std::fmt;
use std::path::{Path, PathBuf};

use hermes_app::Setup;
use hermes_app::{ModelChoice, Reporter as _};
use hermes_conformance::Subject;
use hermes_console::console::Console;
use hermes_console::failure::{Failure, Kind};
use hermes_console::progress::Terminal;
use hermes_diagnostic::Diagnose as _;
use hermes_plugin_host::{Catalog, Plugins, PluginsError, Selection};
use hermes_runtime::Runtime;
use serde_json::{Map, Value};

/// `NAME` or a path, or either with `={"key":…}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EngineChoice {
    source: Source,
    /// The keys that replace those of the engine's section.
    section: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// A plugin of the catalog.
    Named(String),
    /// A project, a plugin's folder or a component, installed or not.
    At(PathBuf),
}

/// Prints the choice as it can be given again. It names the column.
impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Named(name) => f.write_str(name)?,
            Source::At(path) => write!(f, "{}", path.display())?,
        }
        match &self.section {
            Some(section) => write!(f, "={}", Value::Object(section.clone())),
            None => Ok(()),
        }
    }
}

fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.starts_with('.') || text.ends_with(".wasm")
}

impl EngineChoice {
    /// Reads the value of `--engine`.
    pub(super) fn parse(value: &str) -> Result<Self, Failure> {
        let value = value.trim();
        // A path may contain `=`.
        let at = if is_path(value) { value.find("={") } else { value.find('=') };
        let (engine, json) = match at.filter(|_| !Path::new(value).exists()) {
            Some(at) => (value[..at].trim_end(), Some(&value[at + 1..])),
            None => (value, None),
        };
        let refused = |why: String| {
            let fix = "write --engine NAME, --engine ./PATH, or either with settings: --engine 'NAME={\"key\": 1}'";
            Failure::new(Kind::Usage, "the engine on the command line is invalid", why, fix)
        };
        if engine.is_empty() {
            return Err(refused(format!("`{value}` names no engine")));
        }
        let section = json.map(|json| {
            let section = serde_json::from_str(json);
            section.map_err(|error| refused(format!("the settings of `{engine}` are not a JSON object: {error}")))
        });
        let source = if is_path(engine) { Source::At(engine.into()) } else { Source::Named(engine.to_owned()) };
        Ok(Self { source, section: section.transpose()? })
    }

    /// Whether it is a name without settings.
    pub(super) fn is(&self, name: &str) -> bool {
        self.section.is_none() && matches!(&self.source, Source::Named(own) if own == name)
    }

    /// Loads the engine and no other plugins. `configured` begins with the settings in `config.yaml` instead of the engine's
    /// defaults.
    pub(super) fn load(
        &self,
        configured: bool,
        runtime: &Runtime,
        setup: &Setup,
        console: Console,
    ) -> Result<Plugins, Failure> {
        let (name, catalog) = match &self.source {
            Source::Named(name) => (name.clone(), setup.catalog()),
            Source::At(path) => {
                let Subject { manifest, code, .. } = Subject::find_component(path).map_err(|error| {
                    let found = Failure::from(error.diagnose());
                    Failure { what: "the engine cannot be used".to_owned(), ..found }
                })?;
                (manifest.name.clone(), Catalog::alone(manifest, code))
            }
        };
        let flags = ModelChoice { engine: Some(name.clone()), ..Default::default() };
        let Selection { entries, variables, settings, .. } = setup.selection(&flags);
        let mut entries = if configured { entries } else { Default::default() };
        if let Some(section) = &self.section {
            let entry = entries.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(entry) = entry {
                entry.extend(section.clone());
            }
        }
        let selection = Selection { entries, variables, settings, ..Selection::only(&name) };
        let shown = Terminal::new(console);
        let compiling = |name: &str, elapsed| shown.compiling(name, elapsed);
        Plugins::select(runtime, &catalog, &selection, &compiling).map_err(|error| self.unusable(error))
    }

    /// The failure of an engine that cannot be used, with a remedy on the command line where the cause is there.
    fn unusable(&self, error: PluginsError) -> Failure {
        match (&self.source, error) {
            (_, PluginsError::Configuration { name, misfits, .. }) if self.section.is_some() => {
                let place = format!("plugins.entries.{name}");
                let misfits: Vec<&str> =
                    misfits.iter().map(|misfit| misfit.strip_prefix(&place).unwrap_or(misfit)).collect();
                let why = misfits.iter().map(|misfit| misfit.trim_start_matches(['.', ':', ' '])).collect::<Vec<_>>();
                let fix = "correct the settings after `=`; `config` in the engine's plugin.yaml describes them";
                Failure::new(Kind::Usage, format!("the settings of `{name}` are invalid"), why.join("; "), fix)
            }
            (Source::At(path), PluginsError::OtherKind { name, exports, .. }) => {
                let why = format!("{}: `{name}` exports {}", path.display(), exports.join(", "));
                let fix = "give a plugin that exports `context-engine`";
                Failure::new(Kind::Plugin, "the plugin is not a context engine", why, fix)
            }
            (_, error) => error.diagnose().into(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_a_name_or_a_path_with_or_without_settings() {
        for (value, shown) in [
            ("lossless", "lossless"),
            (" ./mine/ ", "./mine/"),
            ("lossless={ \"keep\": 5 }", "lossless={\"keep\":5}"),
            ("../a=b/mine={\"keep\":5}", "../a=b/mine={\"keep\":5}"),
            ("mine.wasm", "mine.wasm"),
            ("lossless={}", "lossless={}"),
        ] {
            let choice = EngineChoice::parse(value).unwrap();
            assert_eq!(choice.to_string(), shown);
            assert_eq!(EngineChoice::parse(shown).unwrap(), choice, "a label can be given again");
        }
        assert!(EngineChoice::parse("none").unwrap().is("none"));
        assert!(!EngineChoice::parse("none={}").unwrap().is("none"));
    }

    #[test]
    fn settings_that_are_not_a_json_object_are_refused() {
        for value in ["lossless={", "lossless=", "lossless=5", "./mine={\"keep\"}", "={}", ""] {
            let failure = EngineChoice::parse(value).unwrap_err();
            assert_eq!(failure.kind, Kind::Usage, "{value}");
            assert!(failure.fix.contains("'NAME={\"key\": 1}'"), "{failure}");
        }
    }
}
