//! The section `logins`: what a user can log in to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hermes_models::{Flow, LoginSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::ser::{Serialize, Serializer};

/// `logins.<login>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoginSection {
    /// How you log in. `device`: you enter a code on a page of the provider, in any browser. `pkce`: you log in with a browser on this machine. `key`: as `pkce`, but the provider issues an API key and needs no `client_id`, as OpenRouter does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<LoginFlow>,
    /// The name of this program at the provider, which you get when you register it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret of this program, if the provider gives one, preferably as a variable such as `${NAME}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The address that issues codes for `flow: device`. All addresses begin with https://, or are on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_url: Option<String>,
    /// The page on which you log in, for `flow: pkce` and `flow: key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<String>,
    /// Where the provider sends the browser back to, if it is registered otherwise than `http://127.0.0.1/callback` with any port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// The address that issues and refreshes tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The address that revokes tokens, for `hermes logout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoke_url: Option<String>,
    /// What the tokens shall allow, as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Other parameters that the provider wants in the first request, such as `audience`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl LoginSection {
    /// The section as the type of the models.
    pub fn settings(&self) -> LoginSettings {
        let own = self.clone();
        LoginSettings {
            flow: own.flow.map(|LoginFlow(flow)| flow),
            client_id: own.client_id,
            client_secret: own.client_secret,
            device_url: own.device_url,
            authorize_url: own.authorize_url,
            redirect_url: own.redirect_url,
            token_url: own.token_url,
            revoke_url: own.revoke_url,
            scope: own.scope,
            parameters: own.parameters,
            resource: None,
            is_basic: false,
            issuer: None,
            names_issuer: false,
        }
    }
}

/// A flow by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginFlow(pub Flow);

impl Serialize for LoginFlow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for LoginFlow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = String::deserialize(deserializer)?;
        let known = Flow::NAMES.iter().find(|(name, _)| *name == given);
        known
            .map(|(_, flow)| Self(*flow))
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&given), &"the name of a flow"))
    }
}

impl JsonSchema for LoginFlow {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LoginFlow".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Flow::NAMES.iter().map(|(name, _)| *name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}
