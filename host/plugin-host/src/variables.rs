//! The environment variables that a plugin's section of the configuration may use.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hermes_capabilities::http::ReadAgain;
use serde_json::Value;

use crate::expansion::expand;
use crate::permission::Permissions;

/// Looks variables up: in the environment, else in `.env`. In the section of a plugin, a variable keeps its value for the life of the
/// process: plugins that were selected with it are shared by sessions. Secrets are read again, so that a key which the user puts right is
/// used at once. Two values are equal if one is a clone of the other.
#[derive(Clone)]
pub struct Variables {
    look: Arc<Look>,
    again: Option<Arc<Look>>,
}

type Look = dyn Fn(&str) -> Option<String> + Send + Sync;

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variables")
    }
}

impl PartialEq for Variables {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.look, &other.look)
    }
}

impl Variables {
    /// Looks variables up with this function.
    pub fn new(look: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { look: Arc::new(look), again: None }
    }

    /// Looks secrets up with this function, which reads `.env` each time.
    #[must_use]
    pub fn with_secrets(self, again: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { again: Some(Arc::new(again)), ..self }
    }

    /// No variables.
    pub fn none() -> Self {
        Self::new(|_| None)
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.look)(name)
    }

    /// The value of a secret's variable now.
    pub(crate) fn now(&self, name: &str) -> Option<String> {
        self.again.as_ref().map_or_else(|| self.get(name), |again| again(name))
    }

    /// How the value of a secret's variable is read again.
    pub(crate) fn again(&self, name: &str) -> Option<ReadAgain> {
        let (again, name) = (self.again.clone()?, name.to_owned());
        Some(Arc::new(move || again(&name)))
    }

    /// Replaces the variables that the plugin may read in the texts of its section. Returns the others, which stay `${NAME}`.
    pub(crate) fn expand(&self, plugin: &str, permissions: &Permissions, section: &Value) -> (Value, Vec<Unexpanded>) {
        let mut left = BTreeSet::new();
        let section = self.expanded(permissions, section, &mut left);
        let unexpanded = |variable: String| {
            let why = if permissions.env.iter().any(|granted| granted.as_str() == variable) {
                WhyUnexpanded::Unset
            } else if permissions.secrets.iter().any(|secret| secret.env.as_str() == variable) {
                WhyUnexpanded::Secret
            } else {
                WhyUnexpanded::Denied
            };
            Unexpanded { plugin: plugin.to_owned(), variable, why }
        };
        (section, left.into_iter().map(unexpanded).collect())
    }

    fn expanded(&self, permissions: &Permissions, value: &Value, left: &mut BTreeSet<String>) -> Value {
        match value {
            Value::String(text) => self.text(permissions, text, left).into(),
            Value::Array(items) => items.iter().map(|item| self.expanded(permissions, item, left)).collect(),
            Value::Object(members) => {
                let expanded =
                    |(name, value): (&String, &Value)| (name.clone(), self.expanded(permissions, value, left));
                members.iter().map(expanded).collect::<serde_json::Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    fn text(&self, permissions: &Permissions, text: &str, left: &mut BTreeSet<String>) -> String {
        expand(text, |name| {
            let granted = permissions.env.iter().any(|granted| granted.as_str() == name);
            let value = self.get(name).filter(|_| granted);
            if value.is_none() {
                left.insert(name.to_owned());
            }
            value
        })
    }
}

/// A variable in a plugin's section that was not replaced by its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {variable} {why}, so `plugins.entries.{plugin}` contains the text `${{{variable}}}` literally")]
pub struct Unexpanded {
    /// The plugin.
    pub plugin: String,
    /// The variable.
    pub variable: String,
    /// Why.
    pub why: WhyUnexpanded,
}

/// Why a variable was not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WhyUnexpanded {
    /// The variable is not set.
    #[error("is not set")]
    Unset,
    /// It is a secret: the host inserts it into requests, and the plugin never sees it.
    #[error("is a secret, which the plugin never sees")]
    Secret,
    /// The plugin has no permission to read it.
    #[error("may not be read by the plugin")]
    Denied,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_granted_variables_are_replaced_and_values_are_not_expanded_again() {
        let permissions: Permissions = serde_json::from_value(json!({
            "env": ["REGION", "LOOP", "UNSET"],
            "secrets": [{ "name": "k", "env": "KEY", "audience": "https://example.org/" }],
        }))
        .unwrap();
        let variables = Variables::new(|name| match name {
            "REGION" => Some("eu".to_owned()),
            "LOOP" => Some("${KEY}".to_owned()),
            "KEY" | "OTHER" => Some("never to be seen".to_owned()),
            _ => None,
        });
        let section = json!({
            "a": "${REGION}-1 ${REGION}",
            "list": ["${LOOP}", 1, { "deep": "${OTHER}${REGION}" }],
            "${REGION}": true,
            "odd": "${ ${not a name} $REGION ${KEY} ${UNSET",
            "unset": "${UNSET}",
        });
        let (expanded, why) = variables.expand("mine", &permissions, &section);
        assert_eq!(
            expanded,
            json!({
                "a": "eu-1 eu",
                "list": ["${KEY}", 1, { "deep": "${OTHER}eu" }],
                "${REGION}": true,
                "odd": "${ ${not a name} $REGION ${KEY} ${UNSET",
                "unset": "${UNSET}",
            })
        );
        assert_eq!(why.len(), 3, "{why:?}");
        assert!(why[0].variable == "KEY" && why[0].why == WhyUnexpanded::Secret, "{}", why[0]);
        assert!(why[1].variable == "OTHER" && why[1].why == WhyUnexpanded::Denied, "{}", why[1]);
        assert!(why[2].variable == "UNSET" && why[2].why == WhyUnexpanded::Unset, "{}", why[2]);
    }
}
