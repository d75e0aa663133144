//! Addresses of the configuration: what a plugin's permissions mean under its section, and what waits for the user.

use std::net::ToSocketAddrs as _;
use std::sync::mpsc;
use std::time::Duration;

use hermes_capabilities::http::{Site, is_local};
use serde_json::Value;

use crate::catalog::{Found, GrantStatus};
use crate::manifest::Manifest;
use crate::permission::{Address, Permissions, Template};
use crate::selection::Selection;

/// How long a lookup of a name may take while a person waits for a question.
const LOOKUP: Duration = Duration::from_secs(2);

/// An address of the configuration that the user has not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct ClosedAddress {
    /// The plugin.
    pub plugin: String,
    /// Where the address is taken from.
    pub template: Template,
    /// The address that the configuration has now; `None` if its text is no address.
    pub now: Option<Site>,
    /// The address that the user allowed.
    pub allowed: Option<Site>,
}

impl ClosedAddress {
    fn words(&self) -> String {
        let Self { plugin, template, now, allowed } = self;
        match now {
            Some(now) => {
                format!(
                    "the plugin `{plugin}` may not send requests to {now} (`{template}`), {}",
                    why(allowed.as_ref())
                )
            }
            None => format!(
                "the plugin `{plugin}` can send nothing to `{template}`, because the configuration makes no address of it: an address \
                 begins with http:// or https://, and has a host"
            ),
        }
    }
}

fn why(allowed: Option<&Site>) -> String {
    match allowed {
        Some(allowed) => format!("because you allowed {allowed} and changed the configuration since"),
        None => "because the configuration had no address when you allowed the plugin to run".to_owned(),
    }
}

/// The value at a path of the plugin's section, or else the default in the manifest's schema.
fn value(manifest: &Manifest, section: &Value, path: &str) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let find = |from: &Value, step: &dyn Fn(&Value, &str) -> Option<Value>| {
        path.split('.').try_fold(from.clone(), |value, key| step(&value, key))
    };
    if let Some(found) = find(section, &|value, key| value.get(key).cloned()) {
        return text(&found);
    }
    let schema = find(manifest.config.as_ref()?, &|schema, key| schema.get("properties")?.get(key).cloned())?;
    text(schema.get("default")?)
}

impl Manifest {
    /// The keys in its addresses that its schema does not define. Empty if the manifest has no schema.
    pub fn undefined_keys(&self) -> Vec<&str> {
        let Some(schema) = &self.config else { return Vec::new() };
        let is_defined =
            |path: &&str| path.split('.').try_fold(schema, |schema, key| schema.get("properties")?.get(key)).is_some();
        let templates = self.permissions.addresses().filter_map(|address| address.template());
        templates.flat_map(|template| template.keys()).filter(|path| !is_defined(path)).collect()
    }

    /// The requested permissions with the addresses of this section, whose variables were replaced.
    fn under(&self, section: &Value, is_local: &dyn Fn(&str) -> bool) -> Permissions {
        self.permissions.clone().resolve(&|path| value(self, section, path), is_local)
    }

    /// The requested permissions with the addresses of this section, for a plugin whose user allows everything.
    #[must_use]
    pub fn permissions_allowed(&self, section: &Value) -> Permissions {
        self.under(section, &|_| true)
    }

    /// The requested permissions with the addresses that the user's configuration has, for a question to the user. Looks
    /// their names up, to say which of them lead into the user's own network.
    #[must_use]
    pub fn permissions_under(&self, selection: &Selection) -> Permissions {
        if !self.permissions.has_templates() {
            return self.permissions.clone();
        }
        let section = selection.entries.get(&self.name).cloned().unwrap_or_else(|| serde_json::json!({}));
        let (section, _) = selection.variables.expand(&self.name, &self.permissions, &section);
        self.under(&section, &leads_home)
    }
}

impl Found {
    /// The permissions that are in effect under a section, and the addresses of the section that the user has not allowed.
    pub(crate) fn permissions_under(&self, section: &Value) -> (Permissions, Vec<ClosedAddress>) {
        // The developer of a plugin, and Hermes itself, need no grant.
        let trusted = self.status == GrantStatus::Trusted;
        let requested = self.manifest.under(section, &|_| trusted);
        let effective = self.granted_of(&requested);
        let mut closed: Vec<ClosedAddress> = Vec::new();
        for address in requested.addresses() {
            let Some(template) = address.template() else { continue };
            let now = address.site();
            // A value that is missing leaves the address for later.
            if now.is_none() && template.text(&|path| value(&self.manifest, section, path)).is_none() {
                continue;
            }
            let of_template = |granted: &&Address| granted.template() == Some(template);
            let granted: Vec<&Address> =
                self.grant().into_iter().flat_map(Permissions::addresses).filter(of_template).collect();
            // Without a grant for the template, the user declined the permission.
            let is_open = granted.is_empty() || now.is_some() && granted.iter().any(|granted| granted.site() == now);
            if !is_open && !closed.iter().any(|known| known.template == *template) {
                closed.push(ClosedAddress {
                    plugin: self.manifest.name.clone(),
                    template: template.clone(),
                    now: now.cloned(),
                    allowed: granted.iter().find_map(|granted| granted.site().cloned()),
                });
            }
        }
        (effective, closed)
    }

    /// The permissions that are in effect under the user's configuration.
    #[must_use]
    pub fn permissions_in(&self, selection: &Selection) -> Permissions {
        let section = selection.entries.get(&self.manifest.name).cloned().unwrap_or_else(|| serde_json::json!({}));
        let (section, _) = selection.variables.expand(&self.manifest.name, &self.permissions(), &section);
        self.permissions_under(&section).0
    }
}

/// Whether a name leads into the user's own network. A name that cannot be looked up in time does not.
fn leads_home(host: &str) -> bool {
    // Numbers and `localhost` are granted as they are written.
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok() {
        return false;
    }
    let (answer, found) = mpsc::channel();
    let host = host.to_owned();
    let looks = std::thread::Builder::new().spawn(move || {
        let addresses = (host.as_str(), 0).to_socket_addrs();
        // If nobody waits any more, the answer came too late.
        let _ = answer.send(addresses.is_ok_and(|mut found| found.any(|address| is_local(address.ip()))));
    });
    // Without a thread the channel is closed.
    drop(looks);
    found.recv_timeout(LOOKUP).unwrap_or(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, Found};
    use crate::lock::Lock;
    use crate::testing::folder;

    const MANIFEST: &str = r#"
name: mine
permissions:
  http: [{url: "${config.base_url}/v1/"}, {url: "https://status.example.org/"}]
  secrets: [{name: key, env: KEY, audience: "${config.base_url}"}]
config:
  type: object
  properties:
    base_url: {type: string, default: "https://api.example.org"}
    port: {type: integer}
"#;

    fn manifest() -> Manifest {
        Manifest::parse(MANIFEST).unwrap()
    }

    #[test]
    fn an_address_from_a_key_that_the_schema_does_not_define_is_found() {
        assert!(manifest().undefined_keys().is_empty());
        let wrong = Manifest::parse(&MANIFEST.replace("config.base_url}/v1", "config.base.url}/v1")).unwrap();
        assert_eq!(wrong.undefined_keys(), ["base.url"]);
        let (without, _) = MANIFEST.split_once("config:\n").unwrap();
        assert!(Manifest::parse(without).unwrap().undefined_keys().is_empty());
    }

    /// The plugin with a grant, as the catalog finds it.
    fn granted(granted: &Permissions) -> Found {
        let home = folder(&[("plugins/mine/plugin.yaml", MANIFEST), ("plugins/mine/mine.wasm", "code")]);
        let plugins = home.path().join("plugins");
        let digest = crate::digest::of_folder(&plugins.join("mine")).unwrap();
        let lock = json!({ "form": 1, "plugins": { "mine": {
            "source": "/src", "folder": "mine", "version": "0.0.0", "digest": digest, "granted": granted,
        } } });
        std::fs::write(Lock::path(home.path()), lock.to_string()).unwrap();
        Catalog::find(&[], &plugins, &std::collections::HashMap::new()).get("mine").unwrap().clone()
    }

    fn sites(permissions: &Permissions) -> Vec<String> {
        permissions
            .addresses()
            .map(|address| address.site().map_or_else(|| "-".to_owned(), ToString::to_string))
            .collect()
    }

    #[test]
    fn a_value_is_that_of_the_section_or_the_default() {
        let of = |section: Value, path: &str| value(&manifest(), &section, path);
        assert_eq!(of(json!({}), "base_url").as_deref(), Some("https://api.example.org"));
        assert_eq!(of(json!({ "base_url": "http://nas.lan" }), "base_url").as_deref(), Some("http://nas.lan"));
        assert_eq!(of(json!({ "port": 80 }), "port").as_deref(), Some("80"));
        assert_eq!(of(json!({ "server": { "url": "x" } }), "server.url").as_deref(), Some("x"));
        for (section, path) in [(json!({}), "port"), (json!({ "base_url": ["x"] }), "base_url"), (json!(7), "other")] {
            assert_eq!(of(section, path), None);
        }
    }

    #[test]
    fn a_configuration_that_leads_elsewhere_closes_the_address_until_the_user_agrees() {
        let (first, second) = (json!({ "base_url": "http://nas.lan" }), json!({ "base_url": "https://evil.example" }));
        let found = granted(&manifest().under(&first, &|_| true));
        let (effective, closed) = found.permissions_under(&first);
        assert_eq!(sites(&effective), ["http://nas.lan/v1/", "https://status.example.org/", "http://nas.lan/"]);
        assert!(effective.http[0].url.is_local() && effective.secrets[0].audience.is_protected());
        assert_eq!(closed, []);
        let (effective, closed) = found.permissions_under(&second);
        assert_eq!(sites(&effective), ["https://status.example.org/"]);
        assert!(effective.secrets.is_empty());
        let closed: Vec<String> = closed.iter().map(ToString::to_string).collect();
        assert_eq!(
            closed,
            [
                "the plugin `mine` may not send requests to https://evil.example/v1/ (`${config.base_url}/v1/`), because you \
                 allowed http://nas.lan/v1/ and changed the configuration since",
                "the plugin `mine` may not send requests to https://evil.example/ (`${config.base_url}`), because you allowed \
                 http://nas.lan/ and changed the configuration since",
            ]
        );
    }

    #[test]
    fn an_address_that_was_unknown_at_the_grant_waits_for_the_user() {
        // The section had no text, and the default does not count then.
        let found = granted(&manifest().under(&json!({ "base_url": 7 }), &|_| false));
        let (effective, closed) = found.permissions_under(&json!({ "base_url": "https://a.example" }));
        assert_eq!(sites(&effective), ["https://status.example.org/"]);
        assert!(closed.len() == 2 && closed[0].to_string().contains("had no address"), "{closed:?}");
        for no_address in [json!(7), json!("127.0.0.1:8900"), json!("ftp://a.example")] {
            let closed = found.permissions_under(&json!({ "base_url": no_address })).1;
            assert!(closed.len() == 2 && closed[0].to_string().contains("makes no address of it"), "{closed:?}");
        }
    }

    #[test]
    fn a_declined_permission_is_not_asked_for_again() {
        let (effective, closed) = granted(&Permissions::default()).permissions_under(&json!({}));
        assert!(effective.is_empty() && closed.is_empty());
    }

    mod attack {
        use super::*;

        /// The addresses that are in effect after the user allowed `http://nas.lan` and the configuration has this.
        fn open(base_url: &Value) -> Vec<String> {
            let found = granted(&manifest().under(&json!({ "base_url": "http://nas.lan" }), &|_| true));
            let effective = found.permissions_under(&json!({ "base_url": base_url })).0;
            // An address that the configuration does not have is shown as `-`, and opens nothing.
            sites(&effective).into_iter().filter(|site| site != "-").collect()
        }

        #[test]
        fn no_value_of_the_configuration_opens_another_address_than_the_allowed_one() {
            for value in [
                "http://nas.lan.evil.example",
                "http://nas.lan@evil.example",
                "http://nas.lan:80@evil.example",
                "http://evil.example/nas.lan",
                "http://evil.example#nas.lan",
                "http://evil.example?http://nas.lan",
                "http://evil.example\\@nas.lan",
                "http://nas.lan\\@evil.example",
                "http://nas.lan:8080",
                "https://nas.lan",
                "http://nas.lan.",
                "http://n\u{430}s.lan",
                "http://nas\u{200b}.lan.evil.example",
                "http://*.lan",
                "http://%2a.lan",
                "http://169.254.169.254",
                "http://0x7f.1",
                "http://[::ffff:127.0.0.1]",
                "http://localhost",
                "//nas.lan",
                "nas.lan",
                "file:///etc/passwd",
                "http://nas.lan\nhttp://evil.example",
                "http://nas.lan/admin",
                "http://nas.lan/../..//admin",
                "http://nas.lan/%2e%2e/admin",
                "${config.base_url}",
                "${OPENAI_API_KEY}",
                "",
            ] {
                let open = open(&json!(value));
                assert_eq!(open, ["https://status.example.org/"], "{value:?}");
            }
            for value in
                [json!(null), json!(7), json!(["http://nas.lan"]), json!({ "url": "http://nas.lan" }), json!(true)]
            {
                let open = open(&value);
                assert!(open == ["https://status.example.org/"], "{value}: {open:?}");
            }
            // Other spellings of the allowed address are the allowed address.
            for value in ["http://nas.lan", "http://NAS.lan/", "http://nas.lan:80", "http://nas\u{3002}lan"] {
                let open = open(&json!(value));
                assert_eq!(open, ["http://nas.lan/v1/", "https://status.example.org/", "http://nas.lan/"], "{value:?}");
            }
        }

        #[test]
        fn a_name_that_became_local_after_the_grant_stays_out() {
            let section = json!({ "base_url": "http://nas.lan" });
            let found = granted(&manifest().under(&section, &|_| false));
            let (effective, _) = found.permissions_under(&section);
            assert!(!effective.http[0].url.is_local(), "{effective:?}");
        }

        #[test]
        fn a_lock_cannot_claim_an_address_for_another_template() {
            let section = json!({ "base_url": "https://evil.example" });
            let mut forged = serde_json::to_value(manifest().under(&section, &|_| true)).unwrap();
            let text = forged.to_string().replace("${config.base_url}/v1/", "${config.base_url}/v2/");
            forged = serde_json::from_str(&text).unwrap();
            let found = granted(&serde_json::from_value(forged).unwrap());
            let (effective, _) = found.permissions_under(&section);
            assert!(sites(&effective).iter().all(|site| site != "https://evil.example/v1/"), "{effective:?}");
        }
    }
}
