//! The system prompt and the tools with which the requests of a session begin, part by part.

use hermes_conversation::tokens;
use hermes_models::{ToolNames, shown_tools};
use serde_json::Value;

pub use hermes_agent::{Opening, OpeningComparison};

/// A layer of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its tier: layers of a lower tier change less often.
    pub tier: String,
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Estimated tokens.
    pub tokens: u32,
}

/// The tools of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tools {
    /// How many the model sees.
    pub shown: usize,
    /// How many it reads only in the results that name them.
    pub deferred: usize,
    /// Estimated tokens of those that it sees.
    pub tokens: u32,
}

/// What differs between a stored opening and the present one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Each changed layer: a line about it, then its changes, one line each, with a sign in front.
    pub layers: Vec<String>,
    /// The tools that went and those that came; `None` if they are the same. Both are empty if only descriptions changed.
    pub tools: Option<(Vec<String>, Vec<String>)>,
}

/// The layers of an opening's system prompt, in their order.
pub fn layers(opening: &Opening) -> Vec<Layer> {
    let layers = opening.prompt.layers().map(|(tier, layer)| Layer {
        tier: tier.to_string(),
        name: layer.name.clone(),
        text: layer.text.to_string(),
        tokens: tokens::of_text(&layer.text),
    });
    layers.collect()
}

/// The tools of an opening.
pub fn tools(opening: &Opening) -> Tools {
    let ToolNames { shown, deferred } = ToolNames::of(&opening.tools);
    let tokens = tokens::of_text(&shown_tools(&opening.tools));
    Tools { shown: shown.len(), deferred: deferred.len(), tokens }
}

/// What differs between the stored opening and the present one; `None` without a stored one.
pub fn difference(openings: &OpeningComparison) -> Option<Difference> {
    let (stored, now) = (openings.stored.as_ref()?, &openings.now);
    let layers = hermes_prompt::diff(&stored.prompt, &now.prompt).iter().map(ToString::to_string).collect();
    let tools = (stored.tools != now.tools).then(|| {
        let (then, now) = (names(&stored.tools), names(&now.tools));
        let without =
            |these: &[String], others: &[String]| these.iter().filter(|name| !others.contains(name)).cloned().collect();
        (without(&then, &now), without(&now, &then))
    });
    Some(Difference { layers, tools })
}

/// The names of tools, as the request has them.
fn names(tools: &str) -> Vec<String> {
    let tools: Value = serde_json::from_str(tools).unwrap_or_default();
    let tools = tools.as_array().into_iter().flatten();
    tools.filter_map(|tool| tool.pointer("/function/name")?.as_str().map(str::to_owned)).collect()
}
