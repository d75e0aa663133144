//! Addresses in permissions: written in the manifest, or taken from the plugin's section of the configuration.
//!
//! A manifest names an address of the user as a template, such as `${config.base_url}/v1/`. The user grants the address that
//! the template had at that time. If the configuration leads elsewhere later, the grant no longer applies.

use std::fmt;

use hermes_capabilities::http::{Site, is_public};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// An address with everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Written in the manifest.
    Fixed(Site),
    /// Taken from the configuration.
    Configured {
        /// Where it is taken from.
        template: Template,
        /// The address; none while the configuration has none.
        resolved: Option<Resolved>,
    },
}

/// An address that a template had.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    /// The address.
    #[serde(with = "super::reading::text")]
    pub site: Site,
    /// Whether its name may lead into the user's own network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// A text with values of the plugin's section, such as `${config.base_url}/v1/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Template(String);

/// A part of a template.
enum Part<'a> {
    Text(&'a str),
    /// The path of a value in the section.
    Value(&'a str),
}

const OPENING: &str = "${";
const PREFIX: &str = "config.";
/// The most bytes of a template.
const MOST: usize = 256;

impl Template {
    fn new(text: &str) -> Result<Self, String> {
        let template = Self(text.to_owned());
        if text.len() > MOST || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!(
                "`{}` has blanks or control characters, or is too long for an address",
                text.escape_debug()
            ));
        }
        for part in template.parts() {
            if let Part::Value(path) = part.map_err(|()| template.wrong())?
                && !path.split('.').all(is_key)
            {
                return Err(template.wrong());
            }
        }
        Ok(template)
    }

    fn wrong(&self) -> String {
        format!("`{}` is not an address with a value of the configuration, such as ${{config.base_url}}/v1/", self.0)
    }

    /// Its parts in order. An error if an opened `${` is something else than a value of the section.
    fn parts(&self) -> impl Iterator<Item = Result<Part<'_>, ()>> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Some(opened) = rest.strip_prefix(OPENING) else {
                let (text, after) = rest.split_at(rest.find(OPENING).unwrap_or(rest.len()));
                rest = after;
                return Some(Ok(Part::Text(text)));
            };
            let value = opened.strip_prefix(PREFIX).and_then(|opened| opened.split_once('}'));
            let Some((path, after)) = value else {
                rest = "";
                return Some(Err(()));
            };
            rest = after;
            Some(Ok(Part::Value(path)))
        })
    }

    /// The paths of its values in the plugin's section, such as `base_url`.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            Ok(Part::Value(path)) => Some(path),
            _ => None,
        })
    }

    /// The address that it has with these values; none if one of them is missing, or the text is not an address.
    pub fn resolve(&self, value: &dyn Fn(&str) -> Option<String>) -> Option<Site> {
        // A star would mean all hosts of a domain, which no setting for one server is about.
        self.text(value)?.parse::<Site>().ok().filter(|site| site.host().is_some())
    }

    /// Its text with these values; none if one of them is missing.
    pub(crate) fn text(&self, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let mut text = String::new();
        for part in self.parts() {
            match part.ok()? {
                Part::Value(path) => text.push_str(&value(path)?),
                Part::Text(next) => {
                    // `http://nas.lan/` and `/v1/` mean `http://nas.lan/v1/`.
                    if next.starts_with('/') && text.ends_with('/') && !text.ends_with("//") {
                        text.pop();
                    }
                    text.push_str(next);
                }
            }
        }
        Some(text)
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Address {
    /// The address, if it is known.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Self::Fixed(site) => Some(site),
            Self::Configured { resolved, .. } => resolved.as_ref().map(|resolved| &resolved.site),
        }
    }

    /// Its template, if it is taken from the configuration.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Self::Fixed(_) => None,
            Self::Configured { template, .. } => Some(template),
        }
    }

    /// Whether its name may lead into the user's own network.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Configured { resolved: Some(Resolved { local: true, .. }), .. })
    }

    /// Whether a secret may be sent there: only over encrypted connections, or within the user's own network.
    pub fn is_protected(&self) -> bool {
        let is_near =
            |host: &str| host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| !is_public(address));
        self.site().is_some_and(|site| site.is_encrypted() || self.is_local() || site.host().is_some_and(is_near))
    }

    /// The same address with the values of a configuration. `is_local` tells whether a host is in the user's own network.
    #[must_use]
    pub fn resolve(&self, value: &dyn Fn(&str) -> Option<String>, is_local: &dyn Fn(&str) -> bool) -> Self {
        let Self::Configured { template, .. } = self else { return self.clone() };
        let resolved = template.resolve(value).map(|site| {
            let local = site.host().is_some_and(is_local);
            Resolved { site, local }
        });
        Self::Configured { template: template.clone(), resolved }
    }

    /// Whether a grant of this address includes another one. An address that is not known yet is included if the grant is for
    /// the same template: it opens nothing.
    pub(super) fn covers(&self, requested: &Self) -> bool {
        match (self, requested) {
            (Self::Fixed(own), Self::Fixed(other)) => own.covers(other),
            (
                Self::Configured { template: own, resolved: given },
                Self::Configured { template: other, resolved: asked },
            ) => {
                let same = |asked: &Resolved| {
                    given.as_ref().is_some_and(|given| given.site == asked.site && given.local >= asked.local)
                };
                own == other && asked.as_ref().is_none_or(same)
            }
            _ => false,
        }
    }

    /// Whether this is another address of the same template. One that is not known yet replaces none.
    pub(super) fn replaces(&self, before: &Self) -> bool {
        self.template().is_some() && self.template() == before.template() && self.site().is_some() && self != before
    }

    /// The part of a request that a grant allows. Whether its name may be local is the grant's decision.
    pub(super) fn meet(&self, granted: &Self) -> Option<Self> {
        match (self, granted) {
            (Self::Fixed(own), Self::Fixed(other)) => own.meet(other).map(Self::Fixed),
            (
                Self::Configured { template: own, resolved: asked },
                Self::Configured { template: other, resolved: given },
            ) if own == other => {
                let resolved = match (asked, given) {
                    (None, _) => None,
                    (Some(asked), Some(given)) if asked.site == given.site => Some(given.clone()),
                    (Some(_), _) => return None,
                };
                Some(Self::Configured { template: own.clone(), resolved })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    /// As in a manifest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(site) => site.fmt(f),
            Self::Configured { template, .. } => template.fmt(f),
        }
    }
}

/// A granted address of the configuration.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Granted {
    template: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved: Option<Resolved>,
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(_) | Self::Configured { resolved: None, .. } => serializer.collect_str(self),
            Self::Configured { template, resolved } => {
                Granted { template: template.0.clone(), resolved: resolved.clone() }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Address {
    /// A text as in a manifest, or what `plugins.lock` has for a granted address of the configuration.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Address;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address such as https://api.example.org/v1/")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Address, E> {
                if text.contains(OPENING) {
                    let template = Template::new(text).map_err(E::custom)?;
                    return Ok(Address::Configured { template, resolved: None });
                }
                text.parse().map(Address::Fixed).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Address, A::Error> {
                let granted = Granted::deserialize(de::value::MapAccessDeserializer::new(entries))?;
                let template = Template::new(&granted.template).map_err(de::Error::custom)?;
                Ok(Address::Configured { template, resolved: granted.resolved })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        serde_json::from_value(text.into()).unwrap()
    }

    fn resolved(text: &str, base: &str) -> Address {
        address(text).resolve(&|key| (key == "base_url").then(|| base.to_owned()), &|host| host.ends_with(".lan"))
    }

    #[test]
    fn a_template_takes_values_of_the_section_only() {
        for (text, base, site) in [
            ("${config.base_url}", "http://nas.lan:8000", Some("http://nas.lan:8000/")),
            ("${config.base_url}/v1/", "http://nas.lan:8000/", Some("http://nas.lan:8000/v1/")),
            ("${config.base_url}/v1/", "http://nas.lan/api", Some("http://nas.lan/api/v1/")),
            ("https://${config.base_url}/", "api.example.org", Some("https://api.example.org/")),
            ("https://${config.base_url}.example.org/", "eu", Some("https://eu.example.org/")),
            ("${config.other}/v1/", "http://nas.lan", None),
            ("${config.base_url}/v1/", "", None),
            ("${config.base_url}/v1/", "nas.lan", None),
            ("${config.base_url}", "ftp://nas.lan", None),
            ("${config.base_url}", "https://*.example.org", None),
            ("${config.base_url}/v1/", "https://user@nas.lan", None),
            ("${config.base_url}/v1/", "https://nas.lan/?x=", None),
            ("${config.base_url}/v1/", "https://nas.lan/#", None),
            ("https://${config.base_url}.example.org/", "evil.example/", Some("https://evil.example/.example.org/")),
            ("${config.base_url}/v1/", "${config.base_url}", None),
        ] {
            let found = resolved(text, base);
            assert_eq!(found.site().map(ToString::to_string).as_deref(), site, "{text} {base}");
        }
        for text in [
            "${base_url}",
            "${config.}",
            "${config.a",
            "${config.a b}",
            "${config..a}",
            "${HOME}/x",
            "$${}",
            "${config.a}\n",
        ] {
            assert!(serde_json::from_value::<Address>(text.into()).is_err(), "{text}");
        }
        assert_eq!(address("${config.server.url}/x").template().unwrap().keys().collect::<Vec<_>>(), ["server.url"]);
    }

    #[test]
    fn a_grant_is_for_the_address_that_was_shown() {
        const TEXT: &str = "${config.base_url}/v1/";
        let (here, there) = (resolved(TEXT, "https://a.example"), resolved(TEXT, "https://b.example"));
        let (local, unset) = (resolved(TEXT, "http://nas.lan"), address(TEXT));
        for (granted, requested, covers, allows) in [
            (&here, &here, true, Some(&here)),
            (&here, &there, false, None),
            (&unset, &here, false, None),
            (&here, &unset, true, Some(&unset)),
            (&unset, &unset, true, Some(&unset)),
            (&local, &local, true, Some(&local)),
            (&here, &address("https://a.example/v1/"), false, None),
            (&address("https://a.example/v1/"), &here, false, None),
            (&here, &resolved("${config.base_url}/", "https://a.example/v1"), false, None),
        ] {
            assert_eq!(granted.covers(requested), covers, "{granted:?} {requested:?}");
            assert_eq!(requested.meet(granted).as_ref(), allows, "{granted:?} {requested:?}");
        }
        // The same name was not local when it was granted.
        let public = address(TEXT).resolve(&|_| Some("http://nas.lan".to_owned()), &|_| false);
        assert!(!public.covers(&local) && local.covers(&public));
        assert_eq!(local.meet(&public), Some(public.clone()), "the name became local by itself");
    }

    #[test]
    fn a_grant_is_read_back_and_a_request_is_a_text() {
        for address in
            [resolved("${config.base_url}/", "http://nas.lan"), resolved("${config.base_url}", "https://a.b")]
        {
            let json = serde_json::to_value(&address).unwrap();
            assert!(json.is_object(), "{json}");
            assert_eq!(serde_json::from_value::<Address>(json).unwrap(), address);
        }
        for text in ["https://api.example.org/v1/", "${config.base_url}/"] {
            assert_eq!(serde_json::to_value(address(text)).unwrap(), text);
        }
    }

    #[test]
    fn a_secret_goes_over_encrypted_connections_or_stays_near() {
        for (base, protected) in [
            ("https://a.example", true),
            ("http://a.example", false),
            ("http://nas.lan", true),
            ("http://192.168.1.4:8000", true),
            ("http://localhost:8000", true),
            ("http://1.1.1.1", false),
        ] {
            assert_eq!(resolved("${config.base_url}", base).is_protected(), protected, "{base}");
        }
        assert!(!address("${config.base_url}").is_protected());
    }
}
