//! The models of `fallback_providers`, which answer while the session's model fails.

use hermes_diagnostic::{Diagnose as _, Diagnostic};
use hermes_models::{AuxiliaryError, Route, Wanted, resolve_auxiliary};

use crate::Config;
use crate::auxiliary::fallback_section;

/// The fallbacks of a session's model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fallbacks {
    /// The models in the order in which they are asked.
    pub routes: Vec<Fallback>,
    /// Why other entries are left out.
    pub missing: Vec<AuxiliaryError>,
}

/// A model that may answer in place of the session's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Its dotted key.
    pub section: String,
    /// Provider, address and model.
    pub route: Route,
}

impl Fallbacks {
    /// Reads every entry. `session` is the route of the session, `model` the section `model` of the configuration. An entry
    /// without a key is left out, and so is a model that was named before.
    ///
    /// # Errors
    ///
    /// When an entry cannot be used as it is written.
    pub fn read(
        config: &Config,
        session: &Route,
        model: &Wanted,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Diagnostic> {
        let mut fallbacks = Self::default();
        for (number, entry) in config.settings().fallback_providers.iter().enumerate() {
            let section = format!("fallback_providers[{number}]");
            match resolve_auxiliary(&fallback_section(entry.clone(), section.clone()), session, variable, model) {
                Ok(route) => fallbacks.add(Fallback { section, route }, session),
                Err(lack) if lack.is_lack() => fallbacks.missing.push(lack),
                Err(mistake) => {
                    let what = "a fallback model cannot be used".to_owned();
                    return Err(Diagnostic { code: hermes_models::codes::CHOICE, what, ..mistake.diagnose() });
                }
            }
        }
        Ok(fallbacks)
    }

    fn add(&mut self, fallback: Fallback, session: &Route) {
        let is_known = |route: &Route| route.is_alike(&fallback.route);
        if !is_known(session) && !self.routes.iter().any(|earlier| is_known(&earlier.route)) {
            self.routes.push(fallback);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(entries: &str) -> Result<Fallbacks, Diagnostic> {
        let variable = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-openai-0123456789abcdef".to_owned());
        let yaml = format!("model: {{base_url: 'http://gate/v1', default: big}}\nfallback_providers: {entries}\n");
        let config = Config::parse(&yaml, Path::new("/h/config.yaml"), &variable).unwrap();
        let model = config.settings().model.clone();
        let model = Wanted { model: model.default, base_url: model.base_url, ..Wanted::default() };
        let session = hermes_models::resolve(&Wanted::default(), &variable, &model).unwrap();
        Fallbacks::read(&config, &session, &model, &variable)
    }

    #[test]
    fn fallbacks_keep_their_order_and_each_model_is_asked_once() {
        let read = read(
            "[{model: big}, {model: small}, {provider: groq, model: fast}, {provider: openai, model: gpt-4.1}, {model: small}, \
             {base_url: 'http://other/v1'}]",
        )
        .unwrap();
        let shown: Vec<String> = read
            .routes
            .iter()
            .map(|one| format!("{} {} {}", one.section, one.route.model.name, one.route.base_url.as_ref().unwrap()))
            .collect();
        let expected = [
            "fallback_providers[1] small http://gate/v1",
            "fallback_providers[3] gpt-4.1 https://api.openai.com/v1",
            // A server that names no model may have the session's.
            "fallback_providers[5] big http://other/v1",
        ];
        assert_eq!(shown, expected);
        assert_eq!(read.routes[1].route.key_source.as_deref(), Some("OPENAI_API_KEY"));
        assert_eq!(read.missing.len(), 1);
        assert!(read.missing[0].sentence().contains("`fallback_providers[2]` uses groq"), "{:?}", read.missing);
    }

    #[test]
    fn a_mistake_is_refused_with_its_key() {
        for (entries, part) in [
            ("[{provider: nobody}]", "`fallback_providers[0].provider` is `nobody`"),
            ("[{model: small}, {base_url: 'ftp://x'}]", "`fallback_providers[1].base_url`"),
            ("[{model: small, api_mode: morse}]", "`fallback_providers[0].api_mode` is `morse`"),
        ] {
            let failure = read(entries).unwrap_err();
            assert!(failure.why.contains(part) && !failure.fix.is_empty(), "{entries}: {failure}");
            assert_eq!(failure.what, "a fallback model cannot be used");
        }
    }
}
