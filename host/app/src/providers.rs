//! Which providers can be asked for their models, and how.

use std::collections::HashSet;

use hermes_config::settings::CustomProviderSection;
use hermes_models::{ProviderRow, ResolveError, Route};

use crate::{AppError, ModelChoice, Setup};

/// Stands for a model in a route that only leads to a list. No request names it.
const ANY: &str = "any";

/// A provider that can be asked for its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The way to its list.
    pub route: Route,
    /// Whether the user configured it. The others are servers that may run on this machine under an address that Hermes knows.
    pub is_configured: bool,
}

/// Why a provider may be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The user named it.
    Named,
    /// It is a service whose key may be set.
    Hosted,
    /// It may run on this machine.
    Local,
}

impl Setup {
    /// The route to a provider. Its list can be asked for before a model is chosen.
    ///
    /// # Errors
    ///
    /// When flags, variables and configuration name no provider that can be asked.
    pub fn route_to(&self, choice: &ModelChoice) -> Result<Route, AppError> {
        match self.route(choice) {
            Err(AppError::Resolve(ResolveError::NoModel { .. })) => {
                self.route(&ModelChoice { model: Some(ANY.to_owned()), ..choice.clone() })
            }
            route => route,
        }
    }

    /// All providers that can be asked for their models: the chosen one, that of the configuration, the user's own, the known
    /// services whose key is set, and the known servers of this machine, which want no key. Of several plans and regions that take
    /// the same key, the first one counts.
    ///
    /// # Errors
    ///
    /// When a provider of the configuration cannot be used.
    pub fn listings(&self, choice: &ModelChoice) -> Result<Vec<Listing>, AppError> {
        let chosen = self.route_to(choice).ok().filter(|route| !route.is_offline());
        let configured = |route| Listing { route, is_configured: true };
        let mut listings: Vec<Listing> = chosen.map(configured).into_iter().collect();
        let own = self.configured()?.providers;
        let is_unset = |variable: &str| self.environment.var(variable).is_none();
        let lacks_key = |section: &CustomProviderSection| {
            section.api_key.is_none() && section.key_env.as_deref().is_some_and(is_unset)
        };
        // A provider for each section, in the same order.
        let own = own.iter().zip(&self.config.settings().custom_providers).filter(|(_, section)| !lacks_key(section));
        let named = self.configured_name().into_iter().chain(own.map(|(provider, _)| provider.id().to_owned()));
        let known = |is_hosted: bool| {
            let rows = ProviderRow::with_address().filter(move |row| row.is_hosted() == is_hosted && row.chosen_by_key);
            rows.map(|row| row.id.to_owned())
        };
        let mut keys: HashSet<String> = listings.iter().filter_map(|known| known.route.key_source.clone()).collect();
        let places = named.map(|name| (name, Reason::Named));
        let places = places.chain(known(true).map(|name| (name, Reason::Hosted)));
        let places: Vec<_> = places.chain(known(false).map(|name| (name, Reason::Local))).collect();
        for (provider, reason) in places {
            let choice =
                ModelChoice { provider: Some(provider), model: Some(ANY.to_owned()), ..ModelChoice::default() };
            // A known provider without a key is not configured.
            let Ok(route) = self.route(&choice) else { continue };
            let has_new_key = route.key_source.clone().is_some_and(|key| keys.insert(key));
            let is_there = |known: &Listing| {
                known.route.model.provider == route.model.provider || known.route.base_url == route.base_url
            };
            let is_wanted = match reason {
                Reason::Named => true,
                Reason::Hosted => has_new_key,
                Reason::Local => !listings.iter().any(|known| known.route.reaches_same_server(&route)),
            };
            if is_wanted && !route.is_offline() && !listings.iter().any(is_there) {
                listings.push(Listing { route, is_configured: reason != Reason::Local });
            }
        }
        Ok(listings)
    }

    /// The name of the provider in the section `model`, under which a session can choose it whatever the command line says.
    fn configured_name(&self) -> Option<String> {
        let model = &self.config.settings().model;
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        given(&model.provider).or_else(|| {
            let base_url = Some(given(&model.base_url)?);
            let choice = ModelChoice { base_url, model: Some(ANY.to_owned()), ..ModelChoice::default() };
            self.route(&choice).ok().map(|route| route.model.provider)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use hermes_runtime::Compiler;

    use super::*;
    use crate::Home;

    #[test]
    fn models_are_listed_of_the_chosen_provider_the_users_own_those_with_a_key_and_servers_of_this_machine() {
        let home = tempfile::tempdir().unwrap();
        let config = "model: {provider: openrouter, default: m}\ncustom_providers:\n  - name: shed\n    base_url: \
                      \"http://127.0.0.1:9/v1\"\n  - name: unset\n    base_url: \"https://unset.example/v1\"\n    key_env: UNSET_KEY\n";
        fs::write(home.path().join("config.yaml"), config).unwrap();
        let keys = "OPENROUTER_API_KEY=a\nANTHROPIC_API_KEY=b\nGROQ_API_KEY=\n";
        fs::write(home.path().join(".env"), keys).unwrap();
        let setup = Setup::read(Home::at(home.path()), Compiler::InProcess).unwrap();
        assert_eq!(
            names(&setup, &ModelChoice::default()),
            ["openrouter", "shed", "anthropic", "ollama?", "lmstudio?", "llamacpp?", "vllm?"]
        );
        // The place of the command line comes first.
        let elsewhere = ModelChoice { base_url: Some("http://127.0.0.1:8/v1".to_owned()), ..ModelChoice::default() };
        assert_eq!(names(&setup, &elsewhere)[1..4], ["openrouter", "shed", "anthropic"]);
    }

    /// A server of this machine needs no key, so it was only listed while the conversation used it.
    #[test]
    fn the_server_of_the_configuration_is_listed_while_the_command_line_chooses_another_one() {
        let home = tempfile::tempdir().unwrap();
        let config = |model: &str| {
            let own = "custom_providers:\n  - name: shed\n    base_url: \"http://localhost:11434/v1\"\n";
            fs::write(home.path().join("config.yaml"), format!("model: {model}\n{own}")).unwrap();
            Setup::read(Home::at(home.path()), Compiler::InProcess).unwrap()
        };
        let shed = ModelChoice { provider: Some("shed".to_owned()), ..ModelChoice::default() };
        // Ollama is the shed under another name, and the address of llama.cpp is the configured one.
        let setup = config("{base_url: \"http://127.0.0.1:8080/v1\", default: m}");
        assert_eq!(names(&setup, &shed), ["shed", "custom", "lmstudio?", "vllm?"]);
        assert_eq!(names(&setup, &ModelChoice::default()), ["custom", "shed", "lmstudio?", "vllm?"]);
        let setup = config("{provider: lmstudio, default: m}");
        assert_eq!(names(&setup, &shed), ["shed", "lmstudio", "llamacpp?", "vllm?"]);
        let setup = config("{default: m}");
        assert_eq!(names(&setup, &shed), ["shed", "lmstudio?", "llamacpp?", "vllm?"]);
    }

    /// The names of the providers, with a mark at those that are not configured.
    fn names(setup: &Setup, choice: &ModelChoice) -> Vec<String> {
        let mark =
            |known: Listing| format!("{}{}", known.route.model.provider, if known.is_configured { "" } else { "?" });
        setup.listings(choice).unwrap().into_iter().map(mark).collect()
    }
}
