//! Logins that need no section below `logins`, because the service documents one flow for every program.

use url::Url;

use super::login::{Flow, LoginSettings};

/// A login for a key.
struct BuiltIn {
    name: &'static str,
    authorize_url: &'static str,
    /// Known for `localhost`: clients of OpenRouter use that name, with any port.
    redirect_url: &'static str,
    token_url: &'static str,
    /// The page on which the user deletes keys.
    keys_page: &'static str,
}

/// OpenRouter: <https://openrouter.ai/docs/guides/overview/auth/oauth>.
const BUILT_IN: &[BuiltIn] = &[BuiltIn {
    name: "openrouter",
    authorize_url: "https://openrouter.ai/auth",
    redirect_url: "http://localhost/callback",
    token_url: "https://openrouter.ai/api/v1/auth/keys",
    keys_page: "https://openrouter.ai/settings/keys",
}];

impl LoginSettings {
    /// The settings of a login that needs no section.
    pub fn built_in(name: &str) -> Option<Self> {
        let known = BUILT_IN.iter().find(|known| known.name == name)?;
        Some(Self {
            flow: Some(Flow::Key),
            authorize_url: Some(known.authorize_url.to_owned()),
            redirect_url: Some(known.redirect_url.to_owned()),
            token_url: Some(known.token_url.to_owned()),
            ..Self::default()
        })
    }

    /// The names of the logins that need no section.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|known| known.name)
    }

    /// A section, with what it leaves out filled in from the built-in login of that name. A section with another flow
    /// replaces the built-in login.
    #[must_use]
    pub fn completed(self, name: &str) -> Self {
        match Self::built_in(name) {
            Some(known) if self.flow.is_none_or(|flow| Some(flow) == known.flow) => Self {
                flow: known.flow,
                authorize_url: crate::route::said(&self.authorize_url).or(known.authorize_url),
                redirect_url: crate::route::said(&self.redirect_url).or(known.redirect_url),
                token_url: crate::route::said(&self.token_url).or(known.token_url),
                ..self
            },
            _ => self,
        }
    }
}

/// The page on which the user deletes the keys that this server issued, if it is known.
pub(super) fn keys_page(token_url: &Url) -> Option<&'static str> {
    let is_it = |known: &&BuiltIn| Url::parse(known.token_url).is_ok_and(|url| url.origin() == token_url.origin());
    BUILT_IN.iter().find(is_it).map(|known| known.keys_page)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::LoginClient;

    #[test]
    fn every_built_in_login_is_complete() {
        for name in LoginSettings::built_in_names() {
            LoginClient::new(name, &LoginSettings::built_in(name).unwrap()).unwrap();
        }
        assert_eq!(LoginSettings::built_in("other"), None);
    }

    #[test]
    fn a_section_changes_single_settings_or_the_whole_login() {
        let text = |text: &str| Some(text.to_owned());
        let port = LoginSettings { redirect_url: text("http://localhost:3000/back"), ..LoginSettings::default() };
        let port = port.completed("openrouter");
        assert_eq!(port.redirect_url, text("http://localhost:3000/back"));
        assert_eq!(port.token_url, text("https://openrouter.ai/api/v1/auth/keys"));
        let other = LoginSettings { flow: Some(Flow::Device), ..LoginSettings::default() };
        assert_eq!(other.clone().completed("openrouter"), other);
        assert_eq!(LoginSettings::default().completed("work"), LoginSettings::default());
    }

    #[test]
    fn the_page_is_known_for_the_issuing_server_only() {
        let page = |url: &str| keys_page(&Url::parse(url).unwrap());
        assert_eq!(page("https://openrouter.ai/api/v1/auth/keys"), Some("https://openrouter.ai/settings/keys"));
        assert_eq!(page("http://openrouter.ai/api/v1/auth/keys"), None);
        assert_eq!(page("https://openrouter.ai.evil.test/"), None);
    }
}
