//! The places to which requests go, and the user's keys that would be sent along.
//!
//! A section with an address is taken as a whole or not at all. If it were merged key by key, the user's own key could be sent to
//! an address of another home.

use std::net::IpAddr;

use hermes_capabilities::http::is_loopback;
use hermes_models::ProviderRow;
use serde_json::{Map, Value};
use url::{Host, Url};

use super::{Translator, at, is_empty, same, shown};

/// The members of a section that say where requests go.
pub(super) const PLACE: [&str; 2] = ["provider", "base_url"];
/// The members of a section that are keys or name one.
const CREDENTIALS: [&str; 4] = ["api_key", "api_keys", "auth", "key_env"];
/// The provider that is reached at whatever address the configuration names.
const CUSTOM: &str = "custom";

/// Whether a section here sends to the place that another one names.
pub(super) fn is_same_place(here: &Value, wanted: &Map<String, Value>) -> bool {
    PLACE.iter().all(|key| match (named(here.get(key)), named(wanted.get(*key))) {
        (Some(here), Some(wanted)) => same(here, wanted),
        (here, wanted) => here.is_none() && wanted.is_none(),
    })
}

/// Whether a section names a place or a model, or has a key.
pub(super) fn is_set(here: &Value, names: &[&str]) -> bool {
    names.iter().chain(&PLACE).chain(&CREDENTIALS).any(|key| named(here.get(key)).is_some())
}

/// Place and model of a section, as a report names them.
pub(super) fn words(section: &Map<String, Value>) -> String {
    let members = section.iter().map(|(key, value)| match PLACE.contains(&key.as_str()) {
        true => format!("{key} {}", shown(key, value)),
        false => key.clone(),
    });
    members.collect::<Vec<_>>().join(", ")
}

/// Who gets what a section sends: its address, or else its provider.
pub(super) fn receiver(section: &Map<String, Value>) -> String {
    let named = ["base_url", "provider"].into_iter().find_map(|key| Some(shown(key, section.get(key)?)));
    named.unwrap_or_default()
}

/// Whether an address is on this machine, so that nothing leaves it.
pub(super) fn is_on_this_machine(address: &str) -> bool {
    match Url::parse(address.trim()).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => is_loopback(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_loopback(IpAddr::V6(address)),
        None => false,
    }
}

impl Translator<'_> {
    /// The user's own keys that would go to the place of a section `model` which is not here yet.
    pub(super) fn keys_for_model(&self, wanted: &Map<String, Value>) -> Vec<String> {
        if named(wanted.get("provider")).or_else(|| named(wanted.get("base_url"))).is_none() {
            return Vec::new();
        }
        let mut keys: Vec<String> = self.unbound_key().into_iter().collect();
        // A section with a provider and without an address is served at the model's address.
        if named(wanted.get("base_url")).is_some() {
            let provider = wanted.get("provider").and_then(Value::as_str).map(plain);
            let with_key = self.sections().into_iter().filter(|(_, section)| {
                let own = section.get("provider").and_then(Value::as_str).map(plain);
                CREDENTIALS.iter().any(|key| named(section.get(key)).is_some())
                    && named(section.get("base_url")).is_none()
                    && own.is_some_and(|own| own == CUSTOM || provider.as_ref() == Some(&own))
            });
            keys.extend(with_key.map(|(name, _)| format!("the key of {name}")));
        }
        keys
    }

    /// A key of the user that belongs to no address. It goes wherever the requests of the model go.
    pub(super) fn unbound_key(&self) -> Option<String> {
        let model = self.own.get("model").unwrap_or(&Value::Null);
        let is_bound = named(model.get("base_url")).is_some()
            || named(model.get("provider")).and_then(Value::as_str).is_some_and(|name| plain(name) != CUSTOM);
        let in_config = CREDENTIALS.iter().find(|key| !is_bound && named(model.get(**key)).is_some());
        if let Some(key) = in_config {
            return Some(format!("the key in model.{key}"));
        }
        let variable = |name: &str| self.setup.environment.var(name).is_some();
        (variable("HERMES_API_KEY") && !variable("HERMES_BASE_URL"))
            .then(|| "the value of the variable HERMES_API_KEY".to_owned())
    }

    /// Why a provider of another home may not have its name here: a row replaces the provider that the name means now.
    pub(super) fn why_not_called(&self, name: &str, address: &str) -> Option<String> {
        let id = plain(name);
        let used = self
            .sections()
            .into_iter()
            .chain(["model", "delegation"].into_iter().filter_map(|name| Some((name.to_owned(), self.own.get(name)?))));
        let mut used = used.filter_map(|(of, section)| Some((of, section.get("provider")?.as_str()?)));
        if let Some((of, _)) = used.find(|(_, provider)| plain(provider) == id) {
            return Some(format!(
                "{of} here has a provider of this name, whose requests and keys would go to {address}"
            ));
        }
        if self.setup.environment.var("HERMES_PROVIDER").is_some_and(|provider| plain(&provider) == id) {
            return Some(format!("HERMES_PROVIDER here names it: requests and keys would go to {address}"));
        }
        let is_reserved = [CUSTOM, "offline", "auto", "main"].contains(&id.as_str());
        let is_its_own = |row: &ProviderRow| match row.is_hosted() {
            true => Url::parse(address)
                .ok()
                .filter(|url| url.scheme() == "https")
                .is_some_and(|url| ProviderRow::by_host(&url).is_some_and(|found| found.id == row.id)),
            false => is_on_this_machine(address),
        };
        let is_other = ProviderRow::by_name(&id).is_some_and(|row| !is_its_own(row));
        (is_reserved || is_other).then(|| format!("its name means another provider here than {address}"))
    }

    /// The user's own sections and rows that name a place, beside `model` and `delegation`, by their dotted names.
    fn sections(&self) -> Vec<(String, &Value)> {
        let mut sections = Vec::new();
        for (name, section) in at(&self.own, "auxiliary").and_then(Value::as_object).into_iter().flatten() {
            let of = format!("auxiliary.{name}");
            let chain = section.get("fallback_chain").and_then(Value::as_array).into_iter().flatten();
            sections.push((of.clone(), section));
            sections.extend(chain.map(|row| (format!("{of}.fallback_chain"), row)));
        }
        let rows = self.own.get("fallback_providers").and_then(Value::as_array).into_iter().flatten();
        sections.extend(rows.map(|row| ("fallback_providers".to_owned(), row)));
        sections
    }
}

/// A member that says something: `auto` is the same as nothing.
fn named(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !is_empty(value) && *value != "auto")
}

/// The name of a provider in the form in which all its spellings are equal.
pub(super) fn plain(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("custom:").unwrap_or(&name);
    let name = name.split_whitespace().collect::<Vec<_>>().join("-");
    ProviderRow::by_name(&name).map_or(name, |row| row.id.to_owned())
}
