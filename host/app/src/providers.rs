//! Which providers can be asked for their models.

use std::collections::HashSet;

use hermes_config::settings::CustomProviderSection;
use hermes_models::{ProviderRow, ResolveError, Route};

use crate::{AppError, ModelChoice, Setup};

/// Stands for a model in a route that only leads to a list. No request names it.
const ANY: &str = "any";

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

    /// The routes to all providers that are configured: the chosen one, the user's own, and the known ones whose key is set. Of
    /// several plans and regions that take the same key, the first one counts.
    ///
    /// # Errors
    ///
    /// When a provider of the configuration cannot be used.
    pub fn configured_routes(&self, choice: &ModelChoice) -> Result<Vec<Route>, AppError> {
        let mut routes: Vec<Route> =
            self.route_to(choice).ok().filter(|route| !route.is_offline()).into_iter().collect();
        let own = self.configured()?.providers;
        let is_unset = |variable: &str| self.environment.var(variable).is_none();
        let lacks_key = |section: &CustomProviderSection| {
            section.api_key.is_none() && section.key_env.as_deref().is_some_and(is_unset)
        };
        // A provider for each section, in the same order.
        let own = own.iter().zip(&self.config.settings().custom_providers).filter(|(_, section)| !lacks_key(section));
        let own = own.map(|(provider, _)| provider.id().to_owned());
        let known = ProviderRow::with_address().filter(|row| row.is_hosted() && row.chosen_by_key);
        let known: Vec<&ProviderRow> = known.collect();
        let mut keys: HashSet<String> = routes.iter().filter_map(|route| route.key_source.clone()).collect();
        let places = own.map(|name| (name, true)).chain(known.iter().map(|row| (row.id.to_owned(), false)));
        for (provider, is_own) in places {
            let choice =
                ModelChoice { provider: Some(provider), model: Some(ANY.to_owned()), ..ModelChoice::default() };
            // A known provider without a key is not configured.
            let Ok(route) = self.route(&choice) else { continue };
            let has_new_key = route.key_source.clone().is_some_and(|key| keys.insert(key));
            let is_there = routes
                .iter()
                .any(|known| known.model.provider == route.model.provider || known.base_url == route.base_url);
            if !is_there && (is_own || has_new_key) {
                routes.push(route);
            }
        }
        Ok(routes)
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
    fn the_configured_providers_are_the_chosen_one_the_users_own_and_those_with_a_key() {
        let home = tempfile::tempdir().unwrap();
        let config = "model: {provider: openrouter, default: m}\ncustom_providers:\n  - name: shed\n    base_url: \
                      \"http://127.0.0.1:9/v1\"\n  - name: unset\n    base_url: \"https://unset.example/v1\"\n    key_env: UNSET_KEY\n";
        fs::write(home.path().join("config.yaml"), config).unwrap();
        let keys = "OPENROUTER_API_KEY=a\nANTHROPIC_API_KEY=b\nGROQ_API_KEY=\n";
        fs::write(home.path().join(".env"), keys).unwrap();
        let setup = Setup::read(Home::at(home.path()), Compiler::InProcess).unwrap();
        let names = |choice: &ModelChoice| -> Vec<String> {
            let routes = setup.configured_routes(choice).unwrap();
            routes.into_iter().map(|route| route.model.provider).collect()
        };
        assert_eq!(names(&ModelChoice::default()), ["openrouter", "shed", "anthropic"]);
        // The place of the command line comes first.
        let elsewhere = ModelChoice { base_url: Some("http://127.0.0.1:8/v1".to_owned()), ..ModelChoice::default() };
        assert_eq!(names(&elsewhere)[1..], ["shed", "openrouter", "anthropic"]);
    }
}
