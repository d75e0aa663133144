//! Which tools a delegated session may have. It never has one that its parent lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tools of a session, by toolset.
pub(crate) type Listing = BTreeMap<String, BTreeSet<String>>;

/// A limit on the tools of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolLimits {
    /// The only tools; `None` for all.
    only: Option<Arc<BTreeSet<String>>>,
}

impl ToolLimits {
    /// Whether the session may have the tool.
    pub(crate) fn admit(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(tool))
    }

    /// A limit to the tools and toolsets with these names, out of those that a session has.
    ///
    /// # Errors
    ///
    /// The text for the model, when the session has no such tool.
    pub(crate) fn narrowed(&self, names: &[String], tools: &Listing) -> Result<Self, String> {
        let mut only = BTreeSet::new();
        for name in names {
            let before = only.len();
            let of_set = tools.get(name).into_iter().flatten();
            let itself = tools.values().flatten().filter(|tool| *tool == name);
            let found: Vec<&String> = of_set.chain(itself).collect();
            only.extend(found.iter().map(|tool| (*tool).clone()).filter(|tool| self.admit(tool)));
            if found.is_empty() || (only.len() == before && !found.iter().any(|tool| only.contains(*tool))) {
                let known: Vec<&str> = tools.keys().map(String::as_str).collect();
                return Err(format!(
                    "nothing was delegated: there is no tool or toolset `{name}`; toolsets: {}",
                    known.join(", ")
                ));
            }
        }
        Ok(Self { only: Some(Arc::new(only)) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listing() -> Listing {
        let set = |tools: &[&str]| tools.iter().map(|&tool| tool.to_owned()).collect();
        Listing::from([("files".into(), set(&["read", "write"])), ("shell".into(), set(&["run"]))])
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn tools_are_chosen_by_their_name_or_by_their_toolset() {
        let all = ToolLimits::default();
        assert!(all.admit("anything"));
        let chosen = all.narrowed(&names(&["files", "read"]), &listing()).unwrap();
        assert_eq!(["read", "write", "run"].map(|tool| chosen.admit(tool)), [true, true, false]);
        let refused = all.narrowed(&names(&["file"]), &listing()).unwrap_err();
        assert!(refused.contains("`file`; toolsets: files, shell"), "{refused}");
    }

    proptest! {
        #[test]
        fn a_narrower_limit_admits_nothing_new(
            first in proptest::collection::vec("files|shell|read|write|run", 1..4),
            second in proptest::collection::vec("files|shell|read|write|run", 1..4),
        ) {
            let outer = ToolLimits::default().narrowed(&first, &listing()).unwrap();
            if let Ok(inner) = outer.narrowed(&second, &listing()) {
                for tool in ["read", "write", "run"] {
                    prop_assert!(!inner.admit(tool) || outer.admit(tool));
                }
            }
        }
    }
}
