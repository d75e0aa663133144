//! Keys: variables of the peer's `.env` that this program knows. Values are never shown.

use std::collections::{BTreeMap, BTreeSet};

use hermes_app::Setup;
use hermes_config::Environment;
use hermes_models::PROVIDERS;

use crate::PeerHome;
use crate::report::{PartReport, first};

const NAME: &str = ".env";
/// Variables of bundled plugins.
const OF_PLUGINS: [&str; 6] =
    ["BRAVE_SEARCH_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY", "SEARXNG_URL", "HONCHO_API_KEY", "MEM0_API_KEY"];

/// Variables for the own `.env`. `config` is the text of the configuration after the import, which may name more of them.
pub(crate) fn plan(
    peer: &PeerHome,
    setup: &Setup,
    config: &str,
    with_keys: bool,
) -> (Vec<(String, String)>, PartReport) {
    let mut report = PartReport::of("keys");
    let file = match peer.within(NAME) {
        Ok(Some(file)) => file,
        Ok(None) => return (Vec::new(), report),
        Err(why) => {
            report.left(why);
            return (Vec::new(), report);
        }
    };
    let there = Environment::read(&file);
    if !there.warnings().is_empty() {
        report.left(format!(
            "{} of .env cannot be read",
            hermes_diagnostic::counted(there.warnings().len() as u64, "line")
        ));
    }
    let known: BTreeSet<&str> = PROVIDERS.iter().flat_map(|row| row.keys).copied().chain(OF_PLUGINS).collect();
    let own = Environment::read(&setup.home.dotenv());
    let (mut taken, mut left, mut other, mut same) = (Vec::new(), Vec::new(), Vec::new(), 0);
    // The same names always make the same report.
    let there: BTreeMap<&str, &str> = there.in_file().filter(|(_, value)| !value.is_empty()).collect();
    for (name, value) in there {
        // Settings of this program itself are no keys: they would change where every key goes.
        let is_setting = name.starts_with("HERMES_") || name.ends_with("_BASE_URL") || name == "MEM0_HOST";
        let is_wanted = (known.contains(name) || is_named(config, name)) && !is_setting;
        let here = own.in_file().find(|(here, _)| *here == name).map(|(_, value)| value);
        match here {
            _ if !is_wanted => other.push(name.to_owned()),
            Some(here) if here == value => same += 1,
            Some(_) => report.left(format!("{name}: it is set here")),
            None if with_keys => taken.push((name.to_owned(), value.to_owned())),
            None => left.push(name.to_owned()),
        }
    }
    if !taken.is_empty() {
        let names: Vec<&str> = taken.iter().map(|(name, _)| name.as_str()).collect();
        report.taken(names.join(", "));
        for (name, address) in taken.iter().filter(|(_, value)| value.contains("://")) {
            report.right(format!("requests go to {} ({name})", hermes_config::redacted_text(address)));
        }
    }
    if same > 0 {
        report.known(hermes_diagnostic::counted(same, "key"));
    }
    if !left.is_empty() {
        report.left(format!("{}; --with-keys takes keys, too", left.join(", ")));
    }
    if !other.is_empty() {
        report.left("variables that nothing here reads:");
        let lines = other.chunks(6).map(|names| names.join(", ")).collect();
        first(lines, "line").into_iter().for_each(|line| report.left(line));
    }
    (taken, report)
}

/// Whether a configuration refers to a variable: as `${NAME}`, or with `key_env`.
fn is_named(config: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let value_of = |rest: &str| {
        rest.trim_start_matches([':', ' ', '"', '\'']).split(|character| !is_word(character)).next() == Some(name)
    };
    config.contains(&format!("${{{name}}}")) || config.split("key_env").skip(1).any(value_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_by_a_reference_or_as_a_key() {
        let config = "model:\n  api_key: ${MINE}\nfallback_providers:\n  - {key_env: HOUSE_KEY, model: PATH}\n";
        assert!(is_named(config, "MINE") && is_named(config, "HOUSE_KEY"));
        assert!(!is_named(config, "model") && !is_named(config, "HOUSE") && !is_named(config, "api_key"));
    }
}
