//! A built prompt: layers in three tiers, their joined text, and the outline that splits a stored text into layers again.

use std::fmt;

use hermes_conversation::{Model, tokens};
use serde::{Deserialize, Serialize};

use crate::PromptError;
use crate::wording;

pub(crate) const IDENTITY: &str = "identity";
pub(crate) const DATE: &str = "date";
pub(crate) const MODEL: &str = "model";
const BETWEEN: &str = "\n\n";

/// How stable a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Equal for all sessions of an installation.
    Stable,
    /// Equal for all sessions of a project.
    Context,
    /// Changes from day to day.
    Volatile,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tier::Stable => "stable",
            Tier::Context => "context",
            Tier::Volatile => "volatile",
        })
    }
}

/// A named part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The layer's name.
    pub name: String,
    /// The text, trimmed and never blank.
    pub text: String,
}

impl Layer {
    /// Estimated tokens, by the same estimate as for messages.
    pub fn tokens(&self) -> u32 {
        tokens::of_text(&self.text)
    }
}

/// A system prompt in three tiers, the most stable first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Identity, guidance for tools, skills index, platform, environment, workspace.
    pub stable: Vec<Layer>,
    /// The project's context files and the user's instructions for the session.
    pub context: Vec<Layer>,
    /// Memory, date, model.
    pub volatile: Vec<Layer>,
}

impl SystemPrompt {
    /// All layers in order, each with its tier.
    pub fn layers(&self) -> impl Iterator<Item = (Tier, &Layer)> {
        let tiers = [(Tier::Stable, &self.stable), (Tier::Context, &self.context), (Tier::Volatile, &self.volatile)];
        tiers.into_iter().flat_map(|(tier, layers)| layers.iter().map(move |layer| (tier, layer)))
    }

    /// The text for the model: the layers, separated by blank lines.
    pub fn text(&self) -> String {
        self.layers().map(|(_, layer)| layer.text.as_str()).collect::<Vec<_>>().join(BETWEEN)
    }

    /// Bytes of [`SystemPrompt::text`] up to the end of the stable tier, without the blank line after it. A cache breakpoint
    /// there serves other sessions too.
    pub fn stable_len(&self) -> usize {
        let bytes: usize = self.stable.iter().map(|layer| layer.text.len()).sum();
        bytes + BETWEEN.len() * self.stable.len().saturating_sub(1)
    }

    /// The outline that is stored with the text, to split it into layers again.
    pub fn outline(&self) -> Outline {
        let entry =
            |(tier, layer): (Tier, &Layer)| OutlineEntry { tier, name: layer.name.clone(), bytes: layer.text.len() };
        Outline(self.layers().map(entry).collect())
    }

    /// Restores the prompt from its stored text and outline. Its text is `text`, byte for byte.
    ///
    /// # Errors
    ///
    /// If they do not match.
    pub fn restore(text: &str, outline: &Outline) -> Result<Self, PromptError> {
        let lengths = outline.0.iter().map(|entry| entry.bytes);
        let between = BETWEEN.len() * outline.0.len().saturating_sub(1);
        let total = lengths.fold(between, usize::saturating_add);
        if total != text.len() {
            return Err(PromptError::Length { text: text.len(), outline: total });
        }
        let mut prompt = Self::default();
        let mut rest = text;
        let mut last = Tier::Stable;
        for (place, entry) in outline.0.iter().enumerate() {
            let border = || PromptError::Border { layer: entry.name.clone() };
            if place > 0 {
                rest = rest.strip_prefix(BETWEEN).ok_or_else(border)?;
            }
            let (text, behind) = rest.split_at_checked(entry.bytes).ok_or_else(border)?;
            if text.is_empty() {
                return Err(border());
            }
            if entry.tier < last {
                return Err(PromptError::Order { layer: entry.name.clone() });
            }
            last = entry.tier;
            rest = behind;
            prompt.tier_mut(entry.tier).push(Layer { name: entry.name.clone(), text: text.to_owned() });
        }
        Ok(prompt)
    }

    /// The same prompt for another model: only the last line changes, so everything before it stays cached.
    #[must_use]
    pub fn with_model(&self, model: &Model) -> Self {
        let mut prompt = self.clone();
        let text = wording::model(model);
        match prompt.volatile.last_mut().filter(|layer| layer.name == MODEL) {
            Some(layer) => layer.text = text,
            None => prompt.volatile.push(Layer { name: MODEL.to_owned(), text }),
        }
        prompt
    }

    fn tier_mut(&mut self, tier: Tier) -> &mut Vec<Layer> {
        match tier {
            Tier::Stable => &mut self.stable,
            Tier::Context => &mut self.context,
            Tier::Volatile => &mut self.volatile,
        }
    }

    /// Appends a layer to its tier, unless the text is blank.
    pub(crate) fn push(&mut self, tier: Tier, name: &str, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.tier_mut(tier).push(Layer { name: name.to_owned(), text: text.to_owned() });
        }
    }
}

/// Positions of the layers in a stored text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Outline(pub Vec<OutlineEntry>);

/// A layer in a stored text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// Its tier.
    pub tier: Tier,
    /// Its name.
    pub name: String,
    /// Length in the text.
    pub bytes: usize,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layers() -> impl Strategy<Value = Vec<Layer>> {
        let layer = ("[a-z ]{1,6}", "[a-zé\n]{0,12}[a-zé]").prop_map(|(name, text)| Layer { name, text });
        prop::collection::vec(layer, 0..4)
    }

    fn any_prompt() -> impl Strategy<Value = SystemPrompt> {
        (layers(), layers(), layers()).prop_map(|(stable, context, volatile)| SystemPrompt {
            stable,
            context,
            volatile,
        })
    }

    proptest! {
        #[test]
        fn a_stored_prompt_is_restored_layer_by_layer(prompt in any_prompt()) {
            let stored = serde_json::to_string(&prompt.outline()).unwrap();
            let outline = serde_json::from_str(&stored).unwrap();
            let restored = SystemPrompt::restore(&prompt.text(), &outline).unwrap();
            prop_assert_eq!(&restored, &prompt);
            prop_assert_eq!(restored.text(), prompt.text());
        }

        #[test]
        fn stable_len_is_the_end_of_the_stable_tier(prompt in any_prompt()) {
            let alone = SystemPrompt { stable: prompt.stable.clone(), ..SystemPrompt::default() };
            prop_assert_eq!(&prompt.text()[..prompt.stable_len()], alone.text());
        }

        #[test]
        fn any_text_with_any_outline_is_restored_or_refused(
            text in "[ab\né]{0,12}",
            entries in prop::collection::vec((0..3usize, 0..6usize), 0..4),
        ) {
            let tiers = [Tier::Stable, Tier::Context, Tier::Volatile];
            let entry = |(tier, bytes)| OutlineEntry { tier: tiers[tier], name: "x".into(), bytes };
            let outline = Outline(entries.into_iter().map(entry).collect());
            if let Ok(prompt) = SystemPrompt::restore(&text, &outline) {
                prop_assert_eq!(prompt.text(), text);
                prop_assert_eq!(prompt.outline(), outline);
            }
        }
    }

    #[test]
    fn an_outline_of_another_text_is_refused() {
        let entry = |tier, bytes| OutlineEntry { tier, name: "x".into(), bytes };
        let border = PromptError::Border { layer: "x".into() };
        let cases = [
            ("abc", vec![entry(Tier::Stable, 4)], PromptError::Length { text: 3, outline: 4 }),
            ("abc", vec![entry(Tier::Stable, usize::MAX); 2], PromptError::Length { text: 3, outline: usize::MAX }),
            ("ab  c", vec![entry(Tier::Stable, 2), entry(Tier::Stable, 1)], border.clone()),
            ("é\n\n\n", vec![entry(Tier::Stable, 1), entry(Tier::Stable, 2)], border.clone()),
            ("a\n\n", vec![entry(Tier::Stable, 1), entry(Tier::Stable, 0)], border),
            (
                "a\n\nb",
                vec![entry(Tier::Volatile, 1), entry(Tier::Stable, 1)],
                PromptError::Order { layer: "x".into() },
            ),
        ];
        for (text, entries, expected) in cases {
            assert_eq!(SystemPrompt::restore(text, &Outline(entries)), Err(expected), "{text:?}");
        }
    }
}
