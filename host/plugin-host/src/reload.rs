//! Newer generations of plugins take over between two turns.
//!
//! [`watch`](crate::watch) notices and builds them. [`Generations::take_over`] decides what happens with a change. The task of
//! a session calls it while no turn runs. A change that would alter what the session's requests begin with waits for the
//! next session.

use std::sync::Arc;

use hermes_diagnostic::Notice;

use crate::change::{Change, ChangeKind, broken, removed, revoked};
use crate::component::Role;
use crate::embedding::SelectedEmbedder;
use crate::generations::Slot;
use crate::identity::Identity;
use crate::kinds::{Embedder, Hooks, MemoryProvider, Skills, Tools};
use crate::selected::{Selected, SessionShared};
use crate::supervision::Halt;
use crate::surroundings::Surroundings;

/// The plugins of a session. Each can be replaced by a newer generation.
pub struct Generations {
    pub(crate) slots: Vec<Arc<Slot>>,
    pub(crate) shared: SessionShared,
}

/// What a session has to know after newer generations took over.
#[derive(Debug, Default)]
pub struct Taken {
    /// A line for the user about each change.
    pub lines: Vec<Notice>,
    /// Name and version of the context engine, if it was replaced.
    pub engine: Option<String>,
    /// The identities of the replaced plugins.
    pub identities: Vec<Identity>,
    /// Whether a plugin with hooks was replaced, so that hooks must be asked again for their events.
    pub hooks: bool,
}

impl Generations {
    /// For plugins that never change.
    pub fn fixed(halt: Halt) -> Self {
        Self { slots: Vec::new(), shared: SessionShared { halt, ..SessionShared::default() } }
    }

    /// Lets the other plugins reach the embedder that the user selected.
    pub(crate) fn connect_embedder(&self) {
        let SelectedEmbedder { name, plugin } = &self.shared.embedder;
        let is_it = |slot: &&Arc<Slot>| slot.exports.embedder && name.as_deref() == Some(slot.plugin());
        if let Some(slot) = self.slots.iter().find(is_it) {
            // A session is started once, so the place is free.
            let _ = plugin.set(Arc::clone(slot) as Arc<dyn Embedder>);
        }
    }

    /// Lets newer generations take over. Call it between two turns. A change of the session's tools waits for the next
    /// session, and so does a change of texts for the system prompt.
    pub async fn take_over(&self, changes: Vec<Change>, around: &Surroundings) -> Taken {
        let mut taken = Taken::default();
        for Change { name, kind } in changes {
            let slot = self.slots.iter().find(|slot| slot.plugin() == name);
            let line = match (kind, slot) {
                (ChangeKind::Broken(why), _) => broken(&name, &why),
                (ChangeKind::Removed, _) => removed(&name).into(),
                (ChangeKind::Revoked(why), _) => {
                    // The skills in a plugin's folder have a slot of their own.
                    self.slots.iter().filter(|slot| slot.plugin() == name).for_each(|slot| slot.strip());
                    revoked(&name, &why)
                }
                (ChangeKind::Ready(_), None) => {
                    format!("the plugin `{name}` is available now; new sessions use it").into()
                }
                (ChangeKind::Ready(selected), Some(slot)) => match take(slot, &selected, around, &self.shared).await {
                    Ok(line) => {
                        // The first slot is the engine's.
                        if self.slots.first().is_some_and(|first| Arc::ptr_eq(first, slot)) {
                            taken.engine = Some(format!("{name}@{}", slot.version()));
                        }
                        taken.hooks |= slot.exports.hooks;
                        taken.identities.push(selected.identity());
                        line.into()
                    }
                    Err(waits) => waits,
                },
            };
            taken.lines.push(line);
        }
        taken
    }
}

/// Puts a newer generation into its slot. Returns a line for the user, or the reason why it has to wait.
async fn take(
    slot: &Slot,
    selected: &Selected,
    around: &Surroundings,
    shared: &SessionShared,
) -> Result<String, Notice> {
    let name = selected.name().to_owned();
    let version = selected.found.manifest.version.to_string();
    let waits = |what: &str| {
        let text = format!(
            "the plugin `{name}` was changed: {what}, so the running version stays until the next session begins"
        );
        Notice::from(text)
    };
    let exports = selected.loaded.exports();
    if exports != slot.exports {
        return Err(waits(&format!(
            "it exports {} instead of {}",
            exports.names().join(", "),
            slot.exports.names().join(", ")
        )));
    }
    let cannot = |error: &dyn std::fmt::Display| broken(&name, &error.to_string().into());
    let component = Arc::new(selected.component(around, shared, slot.role).map_err(|error| cannot(&error))?);
    if let Some(before) = slot.offered() {
        let now = component.catalog().await.map_err(|error| cannot(&error))?;
        if let Some(differs) = difference(before, &now) {
            return Err(waits(&format!("{differs}, and the tools of a session never change")));
        }
    } else if exports.hooks {
        component.interests().await.map_err(|error| cannot(&error))?;
    }
    let old = slot.component();
    let mut later = Vec::new();
    if slot.role == Role::Serves
        && exports.memory_provider
        && let (Ok(before), now) = (old.system_prompt().await, component.system_prompt().await)
        && before != now.map_err(|error| cannot(&error))?
    {
        later.push("its part of the system prompt");
    }
    if exports.skills
        && let (Ok(before), now) = (old.index().await, component.index().await)
        && before != now.map_err(|error| cannot(&error))?
    {
        later.push("its index of skills");
    }
    let number = slot.take_over(component);
    selected.end_ungranted_programs(shared);
    let waiting = match later.is_empty() {
        true => String::new(),
        false => format!("; {} changes with the next session or compaction", later.join(" and ")),
    };
    Ok(format!(
        "the plugin `{name}` was changed: this session uses its generation {number} ({version}) from now on{waiting}"
    ))
}

/// The differences between two lists of tools, in words.
fn difference(before: &[hermes_runtime::Tool], now: &[hermes_runtime::Tool]) -> Option<String> {
    let names = |tools: &[hermes_runtime::Tool], of: &[hermes_runtime::Tool]| -> Vec<String> {
        let missing = tools.iter().filter(|tool| !of.iter().any(|other| other.schema.name == tool.schema.name));
        missing.map(|tool| format!("`{}`", tool.schema.name)).collect()
    };
    let (gone, new) = (names(before, now), names(now, before));
    let changed: Vec<String> = before
        .iter()
        .filter(|tool| now.iter().any(|other| other.schema.name == tool.schema.name && other != *tool))
        .map(|tool| format!("`{}`", tool.schema.name))
        .collect();
    let parts = [("new", new), ("removed", gone), ("changed", changed)];
    let differences: Vec<String> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word}: {}", names.join(", ")))
        .collect();
    (!differences.is_empty()).then(|| format!("its tools changed ({})", differences.join("; ")))
}
