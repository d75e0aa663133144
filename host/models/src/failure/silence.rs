//! How long models that think before they answer may be silent.

/// Names of such models, and the seconds of silence that are normal for them. A name stands for all that begin with it and a
/// `-`, `.` or `_`; the longest one counts.
const THINKING: &[(&str, u64)] = &[
    ("claude-opus-4", 240),
    ("deepseek-r1", 600),
    ("deepseek-reasoner", 600),
    ("grok-4.5", 300),
    ("nemotron-3-ultra", 600),
    ("o1", 600),
    ("o3", 600),
    ("o3-mini", 300),
    ("o4-mini", 300),
    ("qwq", 300),
];

/// The seconds of silence that are normal for a model, if it is known to think for long.
pub(crate) fn thinking_silence(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    THINKING
        .iter()
        .filter(|(known, _)| {
            name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', '_']))
        })
        .max_by_key(|(known, _)| known.len())
        .map(|(_, seconds)| *seconds)
}
