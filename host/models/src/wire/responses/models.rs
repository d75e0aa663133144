//! What models that think take over the Responses API, as data, by the beginning of their names.

use crate::reasoning::{
    Effort,
    dial::{Dial, Ladder, Member},
};

/// The effort of a model that takes one, if none is chosen.
pub(super) const USUAL: Effort = Effort::Medium;

const SUMMARISED: &[Member] = &[("reasoning", r#"{"effort":"$","summary":"auto"}"#)];
const UNSUMMARISED: &[Member] = &[("reasoning", r#"{"effort":"$"}"#)];
const FIXED: &[Member] = &[];
/// Without the member, these models do not think.
const LEFT_OUT: Option<&[Member]> = Some(&[]);
const NEVER_OFF: Option<&[Member]> = None;

const LOW_TO_HIGH: Ladder = Ladder(["low", "low", "medium", "high", "high", "high"]);
const MINIMAL_TO_HIGH: Ladder = Ladder(["minimal", "low", "medium", "high", "high", "high"]);
const TO_XHIGH: Ladder = Ladder(["low", "low", "medium", "high", "xhigh", "xhigh"]);
const LOW_HIGH: Ladder = Ladder(["low", "low", "low", "high", "high", "high"]);

/// A family of models that think. All of them return their reasoning in a sealed form if it is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinker {
    /// The beginning of the names of its models, without a vendor.
    start: &'static str,
    /// How its thinking is switched.
    pub(super) dial: Dial,
}

const fn thinker(
    start: &'static str,
    on: &'static [Member],
    off: Option<&'static [Member]>,
    ladder: Ladder,
) -> Thinker {
    Thinker { start, dial: Dial { on, off, ladder } }
}

/// The longest beginning that fits counts. A model that is not listed may refuse a request for reasoning.
const THINKERS: &[Thinker] = &[
    thinker("o1", SUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("o3", SUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("o4", SUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("gpt-5", SUMMARISED, NEVER_OFF, MINIMAL_TO_HIGH),
    thinker("gpt-5-codex", SUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("gpt-5.", SUMMARISED, LEFT_OUT, TO_XHIGH),
    thinker("gpt-5.1", SUMMARISED, LEFT_OUT, LOW_TO_HIGH),
    thinker("gpt-6", SUMMARISED, LEFT_OUT, TO_XHIGH),
    thinker("codex-", SUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("gpt-oss", UNSUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("grok-3-mini", UNSUMMARISED, NEVER_OFF, LOW_HIGH),
    thinker("grok-4", FIXED, NEVER_OFF, LOW_TO_HIGH),
    thinker("grok-4.3", UNSUMMARISED, NEVER_OFF, LOW_TO_HIGH),
    thinker("grok-4.5", UNSUMMARISED, NEVER_OFF, LOW_TO_HIGH),
];

/// Beginnings of names that look like those of models that think.
const OTHERS: &[&str] = &["gpt-5-chat"];

impl Thinker {
    /// Whether a model thinks if this effort is requested.
    pub(super) fn thinks(self, effort: Effort) -> bool {
        effort != Effort::None || self.dial.off.is_none()
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
        let summarised = |word: &str| format!(r#"{{"effort":"{word}","summary":"auto"}}"#);
        let plain = |word: &str| format!(r#"{{"effort":"{word}"}}"#);
        let nothing = String::new;
        for (model, usual, most, off) in [
            ("gpt-5.4", summarised("medium"), summarised("xhigh"), nothing()),
            ("gpt-5.1", summarised("medium"), summarised("high"), nothing()),
            ("openai/gpt-5-mini", summarised("medium"), summarised("high"), summarised("minimal")),
            ("gpt-5-codex", summarised("medium"), summarised("high"), summarised("low")),
            ("o3", summarised("medium"), summarised("high"), summarised("low")),
            ("codex-mini-latest", summarised("medium"), summarised("high"), summarised("low")),
            ("gpt-oss-120b", plain("medium"), plain("high"), plain("low")),
            ("grok-3-mini", plain("low"), plain("high"), plain("low")),
            ("grok-4", nothing(), nothing(), nothing()),
            ("Grok-4.3", plain("medium"), plain("high"), plain("low")),
        ] {
            let thinker = thinker_of(model).expect(model);
            let sent = |effort| thinker.dial.members(effort).into_iter().map(|(_, value)| value).collect::<String>();
            assert_eq!((sent(USUAL), sent(Effort::Max), sent(Effort::None)), (usual, most, off), "{model}");
        }
        for model in ["gpt-4.1", "gpt-5-chat-latest", "my-gpt-5", ""] {
            assert_eq!(thinker_of(model), None, "{model}");
        }
    }
}
