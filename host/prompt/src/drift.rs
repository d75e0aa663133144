//! Compares a frozen prompt with the prompt that its inputs would give today, layer by layer.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::system_prompt::{DATE, IDENTITY, Layer, MODEL, SystemPrompt, Tier};

/// A layer that differs between two prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The layer's tier; the new one if that changed.
    pub tier: Tier,
    /// The layer's name.
    pub layer: String,
    /// How the layer changed.
    pub kind: ChangeKind,
}

/// How a layer changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The layer is new.
    Added,
    /// The layer was removed.
    Removed,
    /// The text changed.
    Changed,
    /// The layer moved, with the same text.
    Moved,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.layer)?;
        f.write_str(match self.kind {
            ChangeKind::Added => " (new)",
            ChangeKind::Removed => " (gone)",
            ChangeKind::Moved => " (moved)",
            ChangeKind::Changed => "",
        })
    }
}

/// The changes that a rebuild would bring. Ignores the date, because every session outlives its first day, and the model,
/// because [`SystemPrompt::with_model`] keeps its line current.
pub fn drift(stored: &SystemPrompt, now: &SystemPrompt) -> Vec<Change> {
    let mut changes = changes(stored, now);
    changes.retain(|change| change.layer != DATE && change.layer != MODEL);
    changes
}

/// All differences, including date and model: first the layers of `now` in order, then removed layers.
pub fn changes(stored: &SystemPrompt, now: &SystemPrompt) -> Vec<Change> {
    compared(stored, now).into_iter().map(|(change, ..)| change).collect()
}

/// The changes on one line for the user, such as `skills, memory: builtin, AGENTS.md (gone)`.
pub fn described(changes: &[Change]) -> String {
    let shown = |change: &Change| match change.layer.as_str() {
        // The user knows the file and not the layer.
        IDENTITY => Change { layer: "SOUL.md".to_owned(), ..change.clone() }.to_string(),
        _ => change.to_string(),
    };
    changes.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// The line diff of a changed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerDiff {
    /// The layer and how it changed.
    pub change: Change,
    /// The changed lines with some context; empty if the layer only moved.
    pub lines: Vec<DiffLine>,
}

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// A line of both prompts.
    Same(String),
    /// A line of the stored prompt only.
    Old(String),
    /// A line of the new prompt only.
    New(String),
    /// Stands for equal lines that are left out.
    Gap,
}

/// The diff of two prompts, layer by layer.
pub fn diff(stored: &SystemPrompt, now: &SystemPrompt) -> Vec<LayerDiff> {
    let text = |layer: Option<&Layer>| layer.map_or_else(String::new, |layer| layer.text.clone());
    compared(stored, now)
        .into_iter()
        .map(|(change, old, new)| LayerDiff { change, lines: lines(&text(old), &text(new)) })
        .collect()
}

impl fmt::Display for LayerDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.change.tier, self.change)?;
        for line in &self.lines {
            match line {
                DiffLine::Same(line) => writeln!(f, "  {line}"),
                DiffLine::Old(line) => writeln!(f, "- {line}"),
                DiffLine::New(line) => writeln!(f, "+ {line}"),
                DiffLine::Gap => writeln!(f, "  ..."),
            }?;
        }
        Ok(())
    }
}

fn lines(old: &str, new: &str) -> Vec<DiffLine> {
    const AROUND: usize = 2;
    // For two large files without common lines, a coarse diff is better than minutes of waiting.
    const PATIENCE: Duration = Duration::from_secs(2);
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut lines = Vec::new();
    let mut shown_to = 0;
    for group in diff.grouped_ops(AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if first.old_range().start > shown_to {
            lines.push(DiffLine::Gap);
        }
        shown_to = last.old_range().end;
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value().trim_end_matches(['\n', '\r']).to_owned();
            lines.push(match change.tag() {
                ChangeTag::Equal => DiffLine::Same(line),
                ChangeTag::Delete => DiffLine::Old(line),
                ChangeTag::Insert => DiffLine::New(line),
            });
        }
    }
    if !lines.is_empty() && shown_to < old.lines().count() {
        lines.push(DiffLine::Gap);
    }
    lines
}

type Compared<'a> = (Change, Option<&'a Layer>, Option<&'a Layer>);

/// A layer's name and its position among layers of that name.
type Key<'a> = (&'a str, usize);

fn compared<'a>(stored: &'a SystemPrompt, now: &'a SystemPrompt) -> Vec<Compared<'a>> {
    let (old, new) = (keyed(stored), keyed(now));
    let old_places: HashMap<Key<'_>, usize> = old.iter().enumerate().map(|(place, (key, ..))| (*key, place)).collect();
    let new_keys: HashMap<Key<'_>, ()> = new.iter().map(|(key, ..)| (*key, ())).collect();
    let change = |tier, layer: &Layer, kind| Change { tier, layer: layer.name.clone(), kind };

    // Walk the common layers in the stored order; a layer out of this order was moved.
    let mut kept = old.iter().filter(|(key, ..)| new_keys.contains_key(key)).map(|(key, ..)| *key);
    let mut compared: Vec<Compared<'a>> = Vec::new();
    for (key, tier, layer) in &new {
        let Some((_, old_tier, before)) = old_places.get(key).map(|place| &old[*place]) else {
            compared.push((change(*tier, layer, ChangeKind::Added), None, Some(layer)));
            continue;
        };
        let in_place = kept.next() == Some(*key) && old_tier == tier;
        if before.text != layer.text {
            compared.push((change(*tier, layer, ChangeKind::Changed), Some(before), Some(layer)));
        } else if !in_place {
            compared.push((change(*tier, layer, ChangeKind::Moved), Some(before), Some(layer)));
        }
    }
    for (key, tier, layer) in &old {
        if !new_keys.contains_key(key) {
            compared.push((change(*tier, layer, ChangeKind::Removed), Some(layer), None));
        }
    }
    compared
}

fn keyed(prompt: &SystemPrompt) -> Vec<(Key<'_>, Tier, &Layer)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let keyed = prompt.layers().map(|(tier, layer)| {
        let nth = seen.entry(&layer.name).or_default();
        *nth += 1;
        ((layer.name.as_str(), *nth), tier, layer)
    });
    keyed.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layer(name: &str, text: &str) -> Layer {
        Layer { name: name.into(), text: text.into() }
    }

    fn prompt() -> SystemPrompt {
        SystemPrompt {
            stable: vec![layer("identity", "You are Ada."), layer("skills", "one\ntwo\nthree\nfour\nfive\nsix")],
            context: vec![layer("AGENTS.md", "Use tabs.")],
            volatile: vec![layer("memory: builtin", "likes tea"), layer("date", "Monday"), layer("model", "Model: a")],
        }
    }

    #[test]
    fn a_new_day_and_another_model_are_not_drift() {
        let mut now = prompt();
        now.volatile[1].text = "Tuesday".into();
        now.volatile[2].text = "Model: b".into();
        assert_eq!(drift(&prompt(), &now), []);
        assert_eq!(described(&changes(&prompt(), &now)), "date, model");
    }

    #[test]
    fn a_drift_is_described_on_one_line() {
        let mut now = prompt();
        now.stable[1].text.push_str("\nseven");
        now.context[0].name = "CLAUDE.md".into();
        now.volatile[0].text = "likes coffee".into();
        assert_eq!(described(&drift(&prompt(), &now)), "skills, CLAUDE.md (new), memory: builtin, AGENTS.md (gone)");
    }

    #[test]
    fn another_order_is_drift() {
        let mut now = prompt();
        now.stable.swap(0, 1);
        assert_eq!(described(&drift(&prompt(), &now)), "skills (moved), SOUL.md (moved)");
        let mut now = prompt();
        let moved = now.context.remove(0);
        now.stable.push(moved);
        assert_eq!(described(&drift(&prompt(), &now)), "AGENTS.md (moved)");
    }

    #[test]
    fn a_diff_shows_changed_lines_with_context() {
        let mut now = prompt();
        now.stable[1].text = "one\ntwo\nthree\nfour\nfive\nsix, and more".into();
        now.context.clear();
        let shown: String = diff(&prompt(), &now).iter().map(LayerDiff::to_string).collect();
        assert_eq!(
            shown,
            "stable: skills\n  ...\n  four\n  five\n- six\n+ six, and more\ncontext: AGENTS.md (gone)\n- Use tabs.\n"
        );
    }

    #[test]
    fn layers_of_one_name_are_matched_by_position() {
        let mut stored = prompt();
        stored.volatile.insert(1, layer("memory: builtin", "has a cat"));
        let mut now = stored.clone();
        now.volatile[1].text = "has a dog".into();
        let changes = drift(&stored, &now);
        assert_eq!(described(&changes), "memory: builtin");
        assert_eq!(
            diff(&stored, &now)[0].lines,
            [DiffLine::Old("has a cat".into()), DiffLine::New("has a dog".into())]
        );
    }

    proptest! {
        #[test]
        fn prompts_without_changes_have_the_same_text(
            old in prop::collection::vec(("[ab]", "[xy]"), 0..4),
            new in prop::collection::vec(("[ab]", "[xy]"), 0..4),
        ) {
            let of = |layers: Vec<(String, String)>| SystemPrompt {
                stable: layers.iter().map(|(name, text)| layer(name, text)).collect(),
                ..SystemPrompt::default()
            };
            let (old, new) = (of(old), of(new));
            prop_assert_eq!(changes(&old, &new).is_empty(), old == new);
        }
    }
}
