//! Which plugin serves a tool that several plugins offer.

use std::collections::{BTreeMap, BTreeSet};

/// The plugin that offers a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim<'a> {
    plugin: &'a str,
    /// Whether it is part of Hermes.
    is_bundled: bool,
}

/// What decides when several plugins offer a tool of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// The user's choice: `plugins.tools`, from tool to plugin.
    pub chosen: BTreeMap<String, String>,
    /// The plugins that are part of Hermes.
    pub bundled: BTreeSet<String>,
}

impl Owners {
    /// The plugin that serves a tool: the user's choice, the only one that offers it, or the one that is part of Hermes. None if
    /// nothing decides: the order of plugins never does, because a new plugin could then take over another one's tool.
    pub fn of<'a>(&self, tool: &str, offered_by: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let claims: Vec<Claim<'a>> =
            offered_by.into_iter().map(|plugin| Claim { plugin, is_bundled: self.bundled.contains(plugin) }).collect();
        holder(&claims, self.chosen.get(tool).map(String::as_str))
    }
}

fn holder<'a>(claims: &[Claim<'a>], chosen: Option<&str>) -> Option<&'a str> {
    let (first, others) = claims.split_first()?;
    let plugin = |claim: &Claim<'a>| claim.plugin;
    if let Some(chosen) = claims.iter().find(|claim| Some(claim.plugin) == chosen) {
        return Some(chosen.plugin);
    }
    if others.iter().all(|claim| claim.plugin == first.plugin) {
        return Some(first.plugin);
    }
    claims.iter().find(|claim| claim.is_bundled).map(plugin)
}

/// Why a tool is not served by this plugin, and the line that changes it. `holder` serves it instead.
pub fn clash(tool: &str, plugin: &str, holder: Option<&str>, offered_by: &[&str]) -> String {
    let choice = format!("to use this one, add `tools: {{{tool}: {plugin}}}` under `plugins` in config.yaml");
    match holder {
        Some(holder) if holder == plugin => "the plugin lists it twice".to_owned(),
        Some(holder) => format!("`{holder}` offers a tool with the same name; {choice}"),
        None => {
            let others: Vec<String> =
                offered_by.iter().filter(|other| **other != plugin).map(|other| format!("`{other}`")).collect();
            let (offers, none) = if others.len() == 1 { ("offers", "neither") } else { ("offer", "none") };
            let others = others.join(", ");
            format!("{others} {offers} a tool with the same name, and {none} is used until you choose; {choice}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_plugins_never_decides() {
        let owners = Owners {
            chosen: BTreeMap::from([("search".to_owned(), "two".to_owned())]),
            bundled: BTreeSet::from(["files".to_owned()]),
        };
        for (tool, offered_by, expected) in [
            ("note", &["one"][..], Some("one")),
            ("note", &["one", "one"], Some("one")),
            ("note", &["one", "two"], None),
            ("note", &["one", "files"], Some("files")),
            ("note", &["files", "one"], Some("files")),
            ("search", &["one", "two"], Some("two")),
            ("search", &["files", "two"], Some("two")),
            // The choice names a plugin that does not offer the tool.
            ("search", &["one", "three"], None),
            ("search", &["one"], Some("one")),
            ("note", &[], None),
        ] {
            assert_eq!(owners.of(tool, offered_by.iter().copied()), expected, "{tool} {offered_by:?}");
        }
    }
}
