//! What models that think take over the Responses API, as data, by the beginning of their names.

use serde::Serialize;

/// A family of models that think. All of them return their reasoning in a sealed form if it is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinker {
    /// The beginning of the names of its models, without a vendor.
    start: &'static str,
    /// Whether it takes an effort.
    effort: bool,
    /// Whether it summarises its reasoning.
    summary: bool,
}

const fn thinker(start: &'static str, effort: bool, summary: bool) -> Thinker {
    Thinker { start, effort, summary }
}

/// The longest beginning that fits counts. A model that is not listed may refuse a request for reasoning.
const THINKERS: &[Thinker] = &[
    thinker("o1", true, true),
    thinker("o3", true, true),
    thinker("o4", true, true),
    thinker("gpt-5", true, true),
    thinker("gpt-6", true, true),
    thinker("codex-", true, true),
    thinker("gpt-oss", true, false),
    thinker("grok-3-mini", true, false),
    thinker("grok-4", false, false),
    thinker("grok-4.3", true, false),
    thinker("grok-4.5", true, false),
];

/// Beginnings of names that look like those of models that think.
const OTHERS: &[&str] = &["gpt-5-chat"];

/// The `reasoning` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Reasoning {
    effort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

impl Thinker {
    /// What is requested of it.
    pub(super) fn reasoning(self) -> Option<Reasoning> {
        self.effort.then(|| Reasoning { effort: "medium", summary: self.summary.then_some("auto") })
    }
}

/// The family of a model; none for a model that does not think.
pub(super) fn thinker_of(model: &str) -> Option<Thinker> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    if OTHERS.iter().any(|start| name.starts_with(start)) {
        return None;
    }
    THINKERS.iter().filter(|thinker| name.starts_with(thinker.start)).max_by_key(|thinker| thinker.start.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_model_decides_what_is_requested() {
        for (model, thinks, effort, summary) in [
            ("gpt-5.4", true, true, true),
            ("openai/gpt-5-mini", true, true, true),
            ("o3", true, true, true),
            ("codex-mini-latest", true, true, true),
            ("gpt-oss-120b", true, true, false),
            ("grok-4", true, false, false),
            ("Grok-4.3", true, true, false),
            ("gpt-4.1", false, false, false),
            ("gpt-5-chat-latest", false, false, false),
            ("my-gpt-5", false, false, false),
            ("", false, false, false),
        ] {
            let thinker = thinker_of(model);
            let reasoning = thinker.and_then(Thinker::reasoning);
            let summarised = reasoning.and_then(|reasoning| reasoning.summary).is_some();
            assert_eq!((thinker.is_some(), reasoning.is_some(), summarised), (thinks, effort, summary), "{model}");
        }
    }
}
