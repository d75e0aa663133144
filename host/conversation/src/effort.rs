//! How much a model should think before it answers.

use std::fmt;

/// A reasoning effort, from none to the most. Each model takes some of them; the tables of the wire formats say which word or number
/// of tokens each of them becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// The model should answer at once.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// What most models do by themselves.
    Medium,
    /// Much.
    High,
    /// More than much.
    XHigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// Every effort, ascending.
    pub const ALL: [Effort; 7] =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The reverse of [`Effort::as_str`].
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name)
    }

    /// The effort for a model from a table by model. A name fits in any spelling of versions (`4.5` or `4-5`), and with or without
    /// the vendors and gateways before it. The exact name comes first, then the longest one.
    pub fn for_model<'a>(model: &str, table: impl IntoIterator<Item = (&'a str, Effort)>) -> Option<Self> {
        let own = parts(model);
        let fitting = table.into_iter().filter_map(|(name, effort)| {
            let listed = parts(name);
            let fits = own.ends_with(&listed) || listed.ends_with(&own);
            fits.then_some(((name == model, listed.len().min(own.len())), effort))
        });
        fitting.max_by_key(|(rank, _)| *rank).map(|(_, effort)| effort)
    }

    /// All names, for a message that lists them.
    pub fn names() -> String {
        let names = Self::ALL.map(Self::as_str);
        let (last, others) = names.split_last().expect("there are efforts");
        format!("{} or {last}", others.join(", "))
    }
}

/// A model's name between its slashes, with hyphens in versions.
fn parts(name: &str) -> Vec<String> {
    name.split('/').map(|part| part.replace('.', "-")).collect()
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effort_has_a_name() {
        for effort in Effort::ALL {
            assert_eq!(Effort::parse(effort.as_str()), Some(effort));
        }
        assert_eq!(Effort::parse("High"), None);
        assert_eq!(Effort::names(), "none, minimal, low, medium, high, xhigh or max");
    }
}
