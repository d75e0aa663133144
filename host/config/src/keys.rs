//! The keys of `config.yaml` as a table, for `hermes config`, for suggestions and for `docs/use/configuration.md`. The types in
//! `settings.rs` are its source.

use std::sync::LazyLock;

use serde_json::Value;

use crate::schema;

/// A key that has a value, as opposed to a section.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// Dotted. A name in angle brackets stands for any name.
    pub(crate) path: String,
    /// The schema of its value.
    pub(crate) schema: &'static Value,
}

impl Key {
    /// The value in force if the file sets none.
    pub(crate) fn default(&self) -> Option<&'static Value> {
        self.schema.get("default")
    }
}

/// All keys, in the order in which they are shown.
pub(crate) struct Keys(Vec<Key>);

/// The table.
pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect(&schema::TYPES, "", &mut keys);
    Keys(keys)
});

fn collect(section: &'static Value, path: &str, keys: &mut Vec<Key>) {
    for name in schema::names(section) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let schema = schema::member(section, name);
        match schema::section(schema) {
            Some(section) => collect(section, &path, keys),
            None => keys.push(Key { path, schema }),
        }
    }
}

/// Tasks that are known to use a model. Plugins name their tasks as they like, so there may be others.
pub(crate) const TASKS: &[&str] = &["compression", "memory", "session_search"];

impl Keys {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Key> {
        self.0.iter()
    }

    /// Whether a path is that of a section.
    pub(crate) fn is_section(&self, path: &str) -> bool {
        self.section(path).is_some()
    }

    /// The names in a section; at the top for an empty path.
    fn names_in(&self, path: &str) -> Vec<&'static str> {
        self.section(path).map(schema::names).unwrap_or_default()
    }

    fn section(&self, path: &str) -> Option<&'static Value> {
        let mut names = path.split('.').filter(|_| !path.is_empty());
        names.try_fold(&*schema::TYPES, |section, name| {
            let is_known = schema::names(section).iter().any(|known| *known == name || known.starts_with('<'));
            schema::section(schema::member(section, name)).filter(|_| is_known && !name.is_empty())
        })
    }
}

/// The known key that is most similar to a mistyped one.
pub fn nearest(path: &str) -> Option<String> {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    let here = |known: &str| if section.is_empty() { known.to_owned() } else { format!("{section}.{known}") };
    let siblings = KEYS.names_in(section).into_iter().map(|known| (similarity(name, known), here(known)));
    // The right name in the wrong place: `engine`, or `context_engine` for `context.engine`.
    let elsewhere = KEYS.iter().map(|key| {
        let leaf = key.path.rsplit('.').next().unwrap_or(&key.path);
        let alike = similarity(name, leaf).max(similarity(&path.replace(['_', '-'], "."), &key.path.replace('_', ".")));
        (alike - 0.02, key.path.clone())
    });
    let best = siblings.chain(elsewhere).max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (best.0 >= LEAST_ALIKE).then_some(best.1)
}

/// The known name that is most similar to a mistyped one.
pub fn most_similar(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let alike = known.map(|known| (similarity(name, &known), known));
    let best = alike.max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (best.0 >= LEAST_ALIKE).then_some(best.1)
}

/// Below this a suggestion confuses more than it helps.
const LEAST_ALIKE: f64 = 0.6;

/// From 0 to 1; swapped letters count as one mistake.
pub fn similarity(left: &str, right: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(&left.to_lowercase(), &right.to_lowercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_configuration_has_a_row_for_each_key() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/use/configuration.md");
        let page = std::fs::read_to_string(&file).unwrap();
        let row = |key: &Key| {
            let default = key.default().map_or_else(|| "none".to_owned(), Value::to_string);
            let works = if schema::has_no_effect(key.schema) { " It has no effect yet." } else { "" };
            let meaning = key.schema["description"].as_str().unwrap_or_default();
            format!("| `{}` | {} | `{default}` | {meaning}{works} |\n", key.path, schema::describe(key.schema))
        };
        let table: String = KEYS.iter().map(row).collect();
        if std::env::var_os("HERMES_WRITE_SCHEMA").is_some() {
            let (before, rest) = page.split_once("|---|---|---|---|\n").unwrap();
            let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
            std::fs::write(&file, format!("{before}|---|---|---|---|\n{table}\n{after}")).unwrap();
            return;
        }
        assert!(page.contains(&table), "run this test with HERMES_WRITE_SCHEMA=1 to write the table:\n{table}");
    }

    #[test]
    fn a_name_in_angle_brackets_stands_for_any() {
        for section in ["auxiliary.any", "auxiliary.compression", "auxiliary", "model", ""] {
            assert!(KEYS.is_section(section), "{section}");
        }
        for other in ["auxiliary.transient_retries", "auxiliary.any.model", "auxiliary..model", "x", "plugins.entries"]
        {
            assert!(!KEYS.is_section(other), "{other}");
        }
        assert_eq!(KEYS.names_in("auxiliary"), ["<task>", "embeddings", "transient_retries"]);
        assert_eq!(KEYS.names_in("context"), ["engine"]);
    }

    #[test]
    fn every_key_has_a_description() {
        for key in KEYS.iter() {
            assert!(key.schema["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", key.path);
        }
    }

    #[test]
    fn a_mistyped_key_finds_the_key_that_was_meant() {
        for (written, meant) in [
            ("modle", Some("model")),
            ("model.contxt_length", Some("model.context_length")),
            ("model.apikey", Some("model.api_key")),
            ("context.engin", Some("context.engine")),
            ("context_engine", Some("context.engine")),
            ("engine", Some("context.engine")),
            ("max_turns", Some("agent.max_turns")),
            ("plugins.enable", Some("plugins.enabled")),
            ("compresion", Some("compression")),
            ("auxiliary.compression.modle", Some("auxiliary.compression.model")),
            ("terminal", None),
            ("zzz", None),
        ] {
            assert_eq!(nearest(written).as_deref(), meant, "{written}");
        }
    }
}
