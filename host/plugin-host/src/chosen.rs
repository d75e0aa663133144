//! The plugins that a selection names: found, loaded, and checked against their manifests and their sections.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use hermes_diagnostic::{Action, Diagnose as _, Fix, Notice};
use hermes_runtime::{Exports, Loaded, Runtime};
use serde_json::Map;

use crate::catalog::{Catalog, Found, Problem, SKILLS};
use crate::error::PluginsError;
use crate::permission::{Access, Permissions, Root};
use crate::selected::Selected;
use crate::selection::Selection;
use crate::ungranted::Ungranted;
use crate::variables::Variables;

/// Called while a plugin is compiled, with its name and the time so far; `Break` stops the compilation.
pub type Compiling<'a> = &'a dyn Fn(&str, Duration) -> ControlFlow<()>;

/// Reports nothing and never stops.
pub const QUIETLY: Compiling<'static> = &|_, _| ControlFlow::Continue(());

/// A memory provider in `plugins.enabled` that `memory.provider` does not name. A turn waits for every memory and is sent to
/// each, so a session uses only one beside the built-in one.
fn spare_memory(name: &str, selected: Option<&str>) -> Notice {
    let plugin = name.to_owned();
    match selected {
        Some(selected) => Notice::new(
            format!(
                "the memory `{name}` is left out: a session has one beside the built-in memory, and `memory.provider` names `{selected}`"
            ),
            Action::DisablePlugin { plugin },
        ),
        None => Notice::new(
            format!(
                "`{name}` is enabled, but not selected as the memory, so it recalls and stores nothing, and its tools are left out"
            ),
            Action::EnablePlugin { plugin },
        ),
    }
}

const ENGINE_KIND: &str = "context engine";
const MEMORY_KIND: &str = "memory provider";
pub(crate) const EMBEDDER_KIND: &str = "text embedder";

/// The plugins of a selection: found, compiled and checked. Sessions with an equal selection share them.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) engine: Arc<Selected>,
    /// Memory providers, the built-in one first.
    pub(crate) memories: Vec<Arc<Selected>>,
    pub(crate) others: Vec<Arc<Selected>>,
    /// The folders of skills of plugins with code.
    pub(crate) skills: Vec<Arc<Selected>>,
    /// Which plugins were left out, and why.
    pub(crate) notices: Vec<Notice>,
}

impl Chosen {
    pub(crate) fn select(
        runtime: &Runtime,
        catalog: &Catalog,
        selection: &Selection,
        compiling: Compiling<'_>,
    ) -> Result<Self, PluginsError> {
        let mut notices: Vec<Notice> = catalog.problems().iter().map(|problem| Notice::of(&problem.error)).collect();
        let contradictions = selection.contradictions();
        notices.extend(contradictions.iter().map(|found| Notice::new(found.to_string(), found.fix())));
        let select = Select { runtime, catalog, selection, compiling, background: false };
        let engine = select.named(&selection.engine, ENGINE_KIND, |exports| exports.context_engine)?;
        let mut memories = Vec::new();
        if selection.is_on(Selection::MEMORY) && selection.memory.as_deref() != Some(Selection::MEMORY) {
            memories.extend(select.unless_refused(Selection::MEMORY, &mut notices)?);
        }
        if let Some(name) = &selection.memory {
            memories.push(select.named(name, MEMORY_KIND, |exports| exports.memory_provider)?);
        }
        let taken: Vec<&str> = std::iter::once(&engine).chain(&memories).map(Selected::name).collect();
        let mut names: Vec<&str> = Vec::new();
        for name in Selection::ON.iter().copied().chain(selection.enabled.iter().map(String::as_str)) {
            if selection.is_on(name) && !taken.contains(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        let mut others: Vec<Selected> = names.iter().filter_map(|name| select.optional(name, &mut notices)).collect();
        let is_spare_memory = |other: &Selected| {
            other.loaded.exports().memory_provider && selection.embedder.as_deref() != Some(other.name())
        };
        let spare = others.iter().filter(|other| is_spare_memory(other));
        notices.extend(spare.map(|other| spare_memory(other.name(), selection.memory.as_deref())));
        if selection.memory.is_some() {
            others.retain(|other| !is_spare_memory(other));
        }
        if let Some(name) = selection.embedder.as_deref() {
            let among = std::iter::once(&engine).chain(&memories).chain(&others).find(|other| other.name() == name);
            let found = match among {
                Some(selected) => {
                    select.of_this_kind(selected, EMBEDDER_KIND, |exports| exports.embedder).map(|()| None)
                }
                None => select.named(name, EMBEDDER_KIND, |exports| exports.embedder).map(Some),
            };
            match found {
                Ok(selected) => others.extend(selected),
                // Without its embedder, a session works, but no plugin gets vectors.
                Err(error) => {
                    notices.push(Notice::new(format!("{error}; no plugin gets vectors of texts"), error.parts().2));
                }
            }
        }
        let all = std::iter::once(&engine).chain(&memories).chain(&others);
        let mut skills = Vec::new();
        for beside in all.clone().filter_map(|selected| selected.found.beside_code()) {
            match select.load(&beside) {
                Ok(selected) => skills.push(selected),
                Err(error) => notices.push(Notice::of(&error)),
            }
        }
        notices.extend(all.clone().flat_map(|selected| &selected.unexpanded).map(Notice::of));
        notices.extend(all.clone().flat_map(|selected| &selected.closed).map(Notice::of));
        notices.extend(
            all.clone()
                .flat_map(|selected| &selected.unknown_keys)
                .map(|line| Notice::new(format!("{line}, and ignores it"), Fix::words("correct it in config.yaml"))),
        );
        notices.extend(all.filter_map(Selected::idle_hooks).map(|idle| Notice::of(&idle)));
        let share = |selected: Vec<Selected>| selected.into_iter().map(Arc::new).collect();
        let (memories, others, skills) = (share(memories), share(others), share(skills));
        Ok(Self { engine: Arc::new(engine), memories, others, skills, notices })
    }

    /// All plugins, the engine first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Selected> {
        std::iter::once(&self.engine).chain(&self.memories).chain(&self.others).map(AsRef::as_ref)
    }

    /// All plugins, to be replaced for one session.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Arc<Selected>> {
        std::iter::once(&mut self.engine).chain(&mut self.memories).chain(&mut self.others)
    }
}

/// Finds and loads the plugins that a selection names.
pub(crate) struct Select<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) catalog: &'a Catalog,
    pub(crate) selection: &'a Selection,
    pub(crate) compiling: Compiling<'a>,
    /// Whether nobody waits for the plugins.
    pub(crate) background: bool,
}

fn left_out(error: &PluginsError) -> Notice {
    Notice::new(format!("{error}; sessions do not use it"), error.parts().2)
}

fn unusable(name: &str, problem: &Problem) -> PluginsError {
    PluginsError::Unusable { name: name.to_owned(), problem: Box::new(problem.error.diagnose()) }
}

impl Select<'_> {
    fn named(&self, name: &str, kind: &'static str, is: fn(&Exports) -> bool) -> Result<Selected, PluginsError> {
        let Some(found) = self.catalog.get(name) else {
            // A folder of that name that cannot be read is the more likely cause.
            if let Some(problem) = self.catalog.problem_with(name) {
                return Err(unusable(name, problem));
            }
            return Err(PluginsError::Missing { kind, name: name.to_owned(), found: self.of_kind(is) });
        };
        let selected = self.load(found).map_err(|error| match (&error, self.catalog.problem_with_all()) {
            // Nothing is granted because the grants cannot be read.
            (PluginsError::Ungranted { why: Ungranted::Unknown(_), .. }, Some(problem)) => unusable(name, problem),
            _ => error,
        })?;
        self.of_this_kind(&selected, kind, is)?;
        Ok(selected)
    }

    /// Refuses a plugin of another kind.
    fn of_this_kind(
        &self,
        selected: &Selected,
        kind: &'static str,
        is: fn(&Exports) -> bool,
    ) -> Result<(), PluginsError> {
        let exports = selected.loaded.exports();
        if is(&exports) {
            return Ok(());
        }
        let (name, exports) = (selected.name().to_owned(), exports.names());
        Err(PluginsError::OtherKind { kind, name, exports, found: self.of_kind(is) })
    }

    fn optional(&self, name: &str, notices: &mut Vec<Notice>) -> Option<Selected> {
        self.tried(name, notices)?.map_err(|error| notices.push(left_out(&error))).ok()
    }

    /// Like [`Self::optional`], but an invalid section of the plugin's configuration is an error: sessions do not run without
    /// this plugin.
    fn unless_refused(&self, name: &str, notices: &mut Vec<Notice>) -> Result<Option<Selected>, PluginsError> {
        match self.tried(name, notices) {
            Some(Err(error @ PluginsError::Configuration { .. })) => Err(error),
            Some(Err(error)) => {
                notices.push(left_out(&error));
                Ok(None)
            }
            Some(Ok(selected)) => Ok(Some(selected)),
            None => Ok(None),
        }
    }

    /// Loads a plugin that the configuration names, if it exists.
    fn tried(&self, name: &str, notices: &mut Vec<Notice>) -> Option<Result<Selected, PluginsError>> {
        let Some(found) = self.catalog.get(name) else {
            if self.catalog.problem_with(name).is_some() {
                // Reported with the other problems of the catalog.
                return None;
            }
            let all: Vec<&str> = self.catalog.all().iter().map(|found| found.manifest.name.as_str()).collect();
            notices.push(Notice::new(
                format!(
                    "plugins.enabled names the plugin `{name}`, which does not exist (the plugins are: {})",
                    all.join(", ")
                ),
                Action::InstallPlugin,
            ));
            return None;
        };
        Some(self.load(found))
    }

    /// Loads a plugin and checks it against its manifest and its section of the configuration.
    pub(crate) fn load(&self, found: &Found) -> Result<Selected, PluginsError> {
        let name = &found.manifest.name;
        let loaded = found.load_in(self.runtime, self.background, &|elapsed| (self.compiling)(name, elapsed))?;
        if found.is_only_skills() {
            return Ok(self.skills_of(found, loaded));
        }
        let mut exports = loaded.exports().names();
        exports.extend(found.skills().map(|_| "skills"));
        let claims = found.manifest.claims_beyond(&exports);
        if !claims.is_empty() {
            return Err(PluginsError::Claims { name: name.clone(), claims });
        }
        let variables = self.selection.variables.clone();
        let (config, unexpanded) = match self.selection.entries.get(name) {
            Some(section) => variables.expand(name, &found.permissions(), section),
            None => (serde_json::json!({}), Vec::new()),
        };
        let (permissions, closed) = found.permissions_under(&config);
        // Tests hold that each bundled plugin takes an empty section. Compiling its schema would be a tenth of a start.
        let is_known_to_fit = found.is_in_program() && config.as_object().is_some_and(Map::is_empty);
        let misfits = if is_known_to_fit { Vec::new() } else { found.manifest.misfits(&config) };
        if !misfits.is_empty() {
            let passed_on = self.selection.passed_on.get(name).cloned().unwrap_or_default();
            return Err(PluginsError::Configuration { name: name.clone(), misfits, passed_on, unset: Vec::new() });
        }
        let unknown_keys = found.manifest.unknown_keys(&config);
        let (found, config) = (found.clone(), config.to_string());
        let settings = self.selection.settings.get(name).cloned().unwrap_or_default();
        let passed_on = self.selection.passed_on.get(name).cloned().unwrap_or_default();
        Ok(Selected {
            found,
            permissions,
            loaded,
            config,
            variables,
            unexpanded,
            unknown_keys,
            closed,
            settings,
            passed_on,
            skills: None,
        })
    }

    /// Refuses a plugin that is not of the kind for which it is selected.
    pub(crate) fn fits(&self, selected: Selected) -> Result<Selected, PluginsError> {
        let (name, exports) = (selected.name(), selected.loaded.exports());
        let kind = if name == self.selection.engine && !exports.context_engine {
            ENGINE_KIND
        } else if self.selection.memory.as_deref() == Some(name) && !exports.memory_provider {
            MEMORY_KIND
        } else if self.selection.embedder.as_deref() == Some(name) && !exports.embedder {
            EMBEDDER_KIND
        } else {
            return Ok(selected);
        };
        Err(PluginsError::NoLonger { kind, name: name.to_owned(), exports: exports.names() })
    }

    /// The skills in a plugin's folder. The bundled code that reads them gets this folder and nothing else.
    fn skills_of(&self, found: &Found, loaded: Arc<Loaded>) -> Selected {
        let files = vec![Root { root: SKILLS.to_owned(), access: Access::Read }];
        Selected {
            permissions: Permissions { files, ..Permissions::default() },
            loaded,
            config: "{}".to_owned(),
            variables: Variables::none(),
            unexpanded: Vec::new(),
            unknown_keys: Vec::new(),
            closed: Vec::new(),
            settings: self.selection.settings.get(&found.manifest.name).cloned().unwrap_or_default(),
            passed_on: Vec::new(),
            skills: found.skills(),
            found: found.clone(),
        }
    }

    /// The names of the plugins of a kind, for an error message. Loads all plugins.
    fn of_kind(&self, is: fn(&Exports) -> bool) -> Vec<String> {
        let quietly = |_| ControlFlow::Continue(());
        let loads = |found: &&Found| found.load(self.runtime, &quietly).is_ok_and(|loaded| is(&loaded.exports()));
        self.catalog.all().iter().filter(loads).map(|found| found.manifest.name.clone()).collect()
    }
}
