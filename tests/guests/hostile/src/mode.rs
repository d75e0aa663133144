//! Which fault to commit, and in which function.

use hermes_plugin::Error;
use serde::Deserialize;

/// The plugin's section of the configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// `<fault>` or `<fault>-<function>`. Without it the plugin behaves.
    pub(crate) mode: Option<String>,
    /// Commits the fault only this many times, counted over all instances.
    pub(crate) times: Option<u64>,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// None. The engine wants to propose, but then proposes nothing.
    Nothing,
    Loop,
    Alloc,
    Panic,
    Recurse,
    Error,
    /// Busy-waits for a minute by asking for the time.
    Slow,
    LogFlood,
    StderrFlood,
    /// A plan that leaves messages uncovered.
    BadPlan,
    BadOrder,
    BadSplit,
    BadKey,
    HugePlan,
}

/// The function in which the fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Configure,
    Start,
    Observe,
    Assess,
    Prepare,
    Propose,
    Settled,
}

const FAULTS: &[(&str, Fault)] = &[
    ("ok", Fault::Nothing),
    ("loop", Fault::Loop),
    ("alloc", Fault::Alloc),
    ("panic", Fault::Panic),
    ("recurse", Fault::Recurse),
    ("error", Fault::Error),
    ("slow", Fault::Slow),
    ("log-flood", Fault::LogFlood),
    ("stderr-flood", Fault::StderrFlood),
    ("bad-plan", Fault::BadPlan),
    ("bad-order", Fault::BadOrder),
    ("bad-split", Fault::BadSplit),
    ("bad-key", Fault::BadKey),
    ("huge-plan", Fault::HugePlan),
];

const FUNCTIONS: &[(&str, Function)] = &[
    ("-configure", Function::Configure),
    ("-start", Function::Start),
    ("-observe", Function::Observe),
    ("-assess", Function::Assess),
    ("-prepare", Function::Prepare),
    ("-propose", Function::Propose),
    ("-settled", Function::Settled),
];

/// Parses a mode such as `panic-start`, or `loop`, which means `loop-propose`.
pub(crate) fn parse(mode: &str) -> Result<(Fault, Function), Error> {
    let located = FUNCTIONS.iter().find_map(|(suffix, function)| Some((mode.strip_suffix(suffix)?, *function)));
    let (name, function) = located.unwrap_or((mode, Function::Propose));
    match FAULTS.iter().find(|(known, _)| *known == name) {
        Some((_, fault)) => Ok((*fault, function)),
        None => Err(Error::invalid(format!("there is no mode `{mode}`"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_names_a_fault_and_a_function() {
        for (mode, expected) in [
            ("ok", (Fault::Nothing, Function::Propose)),
            ("loop", (Fault::Loop, Function::Propose)),
            ("loop-propose", (Fault::Loop, Function::Propose)),
            ("loop-configure", (Fault::Loop, Function::Configure)),
            ("panic-start", (Fault::Panic, Function::Start)),
            ("log-flood", (Fault::LogFlood, Function::Propose)),
            ("stderr-flood-assess", (Fault::StderrFlood, Function::Assess)),
            ("slow-prepare", (Fault::Slow, Function::Prepare)),
            ("bad-plan", (Fault::BadPlan, Function::Propose)),
        ] {
            assert_eq!(parse(mode).unwrap(), expected, "{mode}");
        }
        assert!(parse("nice").is_err() && parse("").is_err() && parse("-assess").is_err());
    }
}
