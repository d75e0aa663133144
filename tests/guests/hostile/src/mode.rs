//! What to do wrong, and where.

use hermes_plugin::Error;
use serde::Deserialize;

/// The plugin's section of the configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// `<misdeed>` or `<misdeed>-<place>`; it behaves where there is none.
    pub(crate) mode: Option<String>,
    /// Misbehaves so many times, counted over all instances, and behaves from then on.
    pub(crate) times: Option<u64>,
}

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misdeed {
    /// Nothing: as an engine it wants to propose, and then proposes nothing.
    Nothing,
    Loop,
    Alloc,
    Panic,
    Recurse,
    Error,
    /// Waits for a minute by asking for the time.
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

/// Where it does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Configure,
    Start,
    Observe,
    Assess,
    Prepare,
    Propose,
    Settled,
}

const MISDEEDS: &[(&str, Misdeed)] = &[
    ("ok", Misdeed::Nothing),
    ("loop", Misdeed::Loop),
    ("alloc", Misdeed::Alloc),
    ("panic", Misdeed::Panic),
    ("recurse", Misdeed::Recurse),
    ("error", Misdeed::Error),
    ("slow", Misdeed::Slow),
    ("log-flood", Misdeed::LogFlood),
    ("stderr-flood", Misdeed::StderrFlood),
    ("bad-plan", Misdeed::BadPlan),
    ("bad-order", Misdeed::BadOrder),
    ("bad-split", Misdeed::BadSplit),
    ("bad-key", Misdeed::BadKey),
    ("huge-plan", Misdeed::HugePlan),
];

const PLACES: &[(&str, Place)] = &[
    ("-configure", Place::Configure),
    ("-start", Place::Start),
    ("-observe", Place::Observe),
    ("-assess", Place::Assess),
    ("-prepare", Place::Prepare),
    ("-propose", Place::Propose),
    ("-settled", Place::Settled),
];

/// Reads a mode such as `loop`, which is `loop-propose`, or `panic-start`.
pub(crate) fn parse(mode: &str) -> Result<(Misdeed, Place), Error> {
    let placed = PLACES.iter().find_map(|(suffix, place)| Some((mode.strip_suffix(suffix)?, *place)));
    let (name, place) = placed.unwrap_or((mode, Place::Propose));
    match MISDEEDS.iter().find(|(known, _)| *known == name) {
        Some((_, misdeed)) => Ok((*misdeed, place)),
        None => Err(Error::invalid(format!("there is no mode `{mode}`"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_names_a_misdeed_and_a_place() {
        for (mode, expected) in [
            ("ok", (Misdeed::Nothing, Place::Propose)),
            ("loop", (Misdeed::Loop, Place::Propose)),
            ("loop-propose", (Misdeed::Loop, Place::Propose)),
            ("loop-configure", (Misdeed::Loop, Place::Configure)),
            ("panic-start", (Misdeed::Panic, Place::Start)),
            ("log-flood", (Misdeed::LogFlood, Place::Propose)),
            ("stderr-flood-assess", (Misdeed::StderrFlood, Place::Assess)),
            ("slow-prepare", (Misdeed::Slow, Place::Prepare)),
            ("bad-plan", (Misdeed::BadPlan, Place::Propose)),
        ] {
            assert_eq!(parse(mode).unwrap(), expected, "{mode}");
        }
        assert!(parse("nice").is_err() && parse("").is_err() && parse("-assess").is_err());
    }
}
