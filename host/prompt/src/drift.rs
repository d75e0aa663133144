//! What became of a frozen prompt's inputs since: which layers a prompt built today would have otherwise.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::system_prompt::{DATE, Layer, MODEL, SystemPrompt, Tier};

/// A layer that two prompts do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its tier; where it changed that, the new one.
    pub tier: Tier,
    /// Its name.
    pub layer: String,
    /// What became of it.
    pub kind: ChangeKind,
}

/// What became of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has another text.
    Changed,
    /// It has the same text at another place.
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

/// What a rebuilt prompt would have otherwise. The date is left out, since every session outlives its first day,
/// and so is the model, whose line is kept up by [`SystemPrompt::with_model`].
pub fn drift(stored: &SystemPrompt, now: &SystemPrompt) -> Vec<Change> {
    let mut changes = changes(stored, now);
    changes.retain(|change| change.layer != DATE && change.layer != MODEL);
    changes
}

/// All that differs, date and model included: first what is there now, in its order, then what is gone.
pub fn changes(stored: &SystemPrompt, now: &SystemPrompt) -> Vec<Change> {
    compared(stored, now).into_iter().map(|(change, ..)| change).collect()
}

/// The changes on one line, such as `skills, memory: builtin, AGENTS.md (gone)`.
pub fn described(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ")
}

/// A changed layer, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerDiff {
    /// Which one, and what became of it.
    pub change: Change,
    /// What differs, with a few lines around it; empty for a layer that only moved.
    pub lines: Vec<DiffLine>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// In both.
    Same(String),
    /// Only in the stored prompt.
    Old(String),
    /// Only in the new one.
    New(String),
    /// Lines that both share are left out here.
    Gap,
}

/// What differs between two prompts, layer by layer.
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
    // Two large files without a line in common: a coarser difference is better than none for minutes.
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

/// Layers of one name are told apart by their order.
type Key<'a> = (&'a str, usize);

fn compared<'a>(stored: &'a SystemPrompt, now: &'a SystemPrompt) -> Vec<Compared<'a>> {
    let (old, new) = (keyed(stored), keyed(now));
    let old_places: HashMap<Key<'_>, usize> = old.iter().enumerate().map(|(place, (key, ..))| (*key, place)).collect();
    let new_keys: HashMap<Key<'_>, ()> = new.iter().map(|(key, ..)| (*key, ())).collect();
    let change = |tier, layer: &Layer, kind| Change { tier, layer: layer.name.clone(), kind };

    // What both have, in the stored order: where the new order departs from it, something was moved.
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
    fn a_new_day_and_another_model_are_no_drift() {
        let mut now = prompt();
        now.volatile[1].text = "Tuesday".into();
        now.volatile[2].text = "Model: b".into();
        assert_eq!(drift(&prompt(), &now), []);
        assert_eq!(described(&changes(&prompt(), &now)), "date, model");
    }

    #[test]
    fn a_drift_is_told_on_one_line() {
        let mut now = prompt();
        now.stable[1].text.push_str("\nseven");
        now.context[0].name = "CLAUDE.md".into();
        now.volatile[0].text = "likes coffee".into();
        assert_eq!(described(&drift(&prompt(), &now)), "skills, CLAUDE.md (new), memory: builtin, AGENTS.md (gone)");
    }

    #[test]
    fn another_order_is_a_drift_too() {
        let mut now = prompt();
        now.stable.swap(0, 1);
        assert_eq!(described(&drift(&prompt(), &now)), "skills (moved), identity (moved)");
        let mut now = prompt();
        let moved = now.context.remove(0);
        now.stable.push(moved);
        assert_eq!(described(&drift(&prompt(), &now)), "AGENTS.md (moved)");
    }

    #[test]
    fn a_difference_shows_what_changed_with_a_few_lines_around_it() {
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
    fn blocks_of_one_name_are_told_apart() {
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
        fn prompts_without_a_change_are_the_same_text(
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
