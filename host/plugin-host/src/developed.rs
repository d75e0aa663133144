//! Plugins under development: what sessions use them as while `hermes plugins dev` runs, without a line in the configuration.

use std::fs;
use std::path::Path;

use crate::catalog::{SLOTS, is_held};
use crate::selection::Selection;

/// The file in a slot that says what sessions use the plugin as.
pub const USED_AS: &str = "used-as";
/// The most bytes of that file.
const MOST_BYTES: u64 = 64;

/// What a session uses a plugin as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedAs {
    /// Its context engine.
    Engine,
    /// Its memory provider, beside the built-in memory.
    Memory,
    /// The embedder of its other plugins.
    Embedder,
    /// One of its plugins with tools, skills or hooks.
    Enabled,
}

impl UsedAs {
    const ALL: [Self; 4] = [Self::Engine, Self::Memory, Self::Embedder, Self::Enabled];

    /// The use of a plugin with these exports. An engine with tools is an engine: a session uses its tools too.
    #[must_use]
    pub fn of(exports: &[&str]) -> Self {
        if exports.contains(&"context-engine") {
            Self::Engine
        } else if exports.contains(&"memory-provider") {
            Self::Memory
        } else if exports.contains(&"embedder") {
            Self::Embedder
        } else {
            Self::Enabled
        }
    }

    /// The word in the slot.
    pub fn word(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Memory => "memory",
            Self::Embedder => "embedder",
            Self::Enabled => "enabled",
        }
    }

    /// What a session uses the plugin as, to follow "sessions use it".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Engine => "as their context engine",
            Self::Memory => "as their memory, beside the built-in one",
            Self::Embedder => "as their embedder",
            Self::Enabled => "beside their other plugins",
        }
    }
}

/// A plugin that `hermes plugins dev` offers to sessions now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Developed {
    /// Its name.
    pub name: String,
    /// What sessions use it as.
    pub used_as: UsedAs,
}

/// The plugins under development, by name. A slot that a killed process left behind does not count.
pub fn developed(plugins: &Path) -> Vec<Developed> {
    let slots = fs::read_dir(plugins.join(SLOTS)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut developed: Vec<Developed> = slots
        .filter(|slot| is_held(slot))
        .filter_map(|slot| {
            let word = hermes_private_files::read_text(&slot.join(USED_AS), MOST_BYTES).ok()?;
            let used_as = UsedAs::ALL.into_iter().find(|used_as| used_as.word() == word.trim())?;
            Some(Developed { name: slot.file_name()?.to_str()?.to_owned(), used_as })
        })
        .collect();
    developed.sort_by(|a, b| a.name.cmp(&b.name));
    developed
}

impl Selection {
    /// Selects the plugins under development too. A name in `plugins.disabled` stays off, and a `fixed` engine, which the user
    /// named on the command line, stays.
    pub fn develop(&mut self, developed: &[Developed], fixed_engine: bool) {
        for Developed { name, used_as } in developed {
            if self.disabled.contains(name) {
                continue;
            }
            match used_as {
                UsedAs::Engine if fixed_engine => {}
                UsedAs::Engine => self.engine.clone_from(name),
                // The built-in memory is always on, beside the selected one.
                UsedAs::Memory if name == Self::MEMORY => {}
                UsedAs::Memory => self.memory = Some(name.clone()),
                UsedAs::Embedder => self.embedder = Some(name.clone()),
                UsedAs::Enabled if self.enabled.contains(name) || Self::ON.contains(&name.as_str()) => {}
                UsedAs::Enabled => self.enabled.push(name.clone()),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::catalog::HELD;

    #[test]
    fn a_plugin_has_one_use_by_what_it_exports() {
        for (exports, used_as) in [
            (&["context-engine", "tools"][..], UsedAs::Engine),
            (&["memory-provider", "memory-events", "tools"], UsedAs::Memory),
            (&["tools", "embedder"], UsedAs::Embedder),
            (&["tools", "hooks"], UsedAs::Enabled),
            (&["skills"], UsedAs::Enabled),
        ] {
            assert_eq!(UsedAs::of(exports), used_as, "{exports:?}");
        }
    }

    #[test]
    fn only_slots_of_a_running_process_count_and_the_users_words_have_precedence() {
        let plugins = tempfile::tempdir().unwrap();
        let slot = |name: &str, word: &str| {
            let folder = plugins.path().join(SLOTS).join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(USED_AS), word).unwrap();
            let held = fs::File::create(folder.join(HELD)).unwrap();
            held.lock().unwrap();
            held
        };
        let words =
            [("brain", "engine"), ("notes", "memory\n"), ("near", "embedder"), ("adder", "enabled"), ("odd", "all")];
        let mut held: Vec<_> = words.map(|(name, word)| slot(name, word)).into();
        let found = developed(plugins.path());
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["adder", "brain", "near", "notes"]);

        let mut selection = Selection::only("compressor");
        selection.develop(&found, false);
        assert_eq!((selection.engine.as_str(), selection.memory.as_deref()), ("brain", Some("notes")));
        assert_eq!(
            (selection.embedder.as_deref(), selection.enabled.as_slice()),
            (Some("near"), &["adder".to_owned()][..])
        );

        let mut chosen = Selection::only("compressor");
        chosen.disabled.push("adder".to_owned());
        chosen.develop(&found, true);
        assert_eq!((chosen.engine.as_str(), chosen.enabled.len()), ("compressor", 0));

        held.clear();
        assert_eq!(developed(plugins.path()), []);
        assert_eq!(developed(&plugins.path().join("nowhere")), []);
    }
}
