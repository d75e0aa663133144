//! The user's own providers: the rows of `custom_providers`, checked.

use std::collections::HashSet;

use hermes_diagnostic::{Diagnostic, Fix};
use hermes_models::{CustomFlaw, CustomProvider};

use crate::settings::{CustomProviderSection, Whole};
use crate::{Config, codes};

impl Config {
    /// The rows of `custom_providers`.
    ///
    /// # Errors
    ///
    /// When a row has no name of its own, or an address, a wire format or a way of reading schemas that cannot be used.
    pub fn custom_providers(&self) -> Result<Vec<CustomProvider>, Diagnostic> {
        let mut rows = Vec::new();
        let mut names = HashSet::new();
        for (number, section) in self.settings().custom_providers.iter().enumerate() {
            let row = row(section).and_then(|row| match names.insert(row.id().to_owned()) {
                true => Ok(row),
                false => Err(CustomFlaw::Name),
            });
            rows.push(row.map_err(|flaw| self.refused(number, section, &flaw))?);
        }
        Ok(rows)
    }

    fn refused(&self, number: usize, section: &CustomProviderSection, flaw: &CustomFlaw) -> Diagnostic {
        let name = section.name.trim();
        let name = if name.is_empty() { String::new() } else { format!(" (`{name}`)") };
        Diagnostic {
            code: codes::PROVIDER,
            what: "a provider of your own cannot be used".to_owned(),
            why: format!("{}: `custom_providers[{number}]`{name} {flaw}", self.file().display()),
            fix: Fix::words(flaw.fix()),
        }
    }
}

fn row(section: &CustomProviderSection) -> Result<CustomProvider, CustomFlaw> {
    let models = section.models.iter().map(|(name, model)| {
        let window = model.as_ref().and_then(|model| model.context_length);
        (name.clone(), window.map(Whole::get))
    });
    CustomProvider::new(&section.name, &section.base_url)?
        .with_key(section.api_key.as_deref(), section.key_env.as_deref())
        .with_models(section.model.as_deref(), models.collect())
        .with_api_mode(section.api_mode.as_deref())?
        .with_schemas(section.schemas.as_deref())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(yaml: &str) -> Result<Vec<CustomProvider>, Diagnostic> {
        let variable = |name: &str| (name == "KEY").then(|| "sk-0123456789abcdefghij".to_owned());
        Config::parse(yaml, Path::new("/h/config.yaml"), &variable).unwrap().custom_providers()
    }

    #[test]
    fn rows_are_read_with_their_variables() {
        let rows = read(
            "custom_providers:\n  - {name: Work, base_url: 'https://work.test/v1', api_key: '${KEY}'}\n  \
             - {name: home, base_url: 'http://127.0.0.1:9/v1', models: {m: {context_length: 9000}, n: }}\n",
        );
        let rows = rows.unwrap();
        assert_eq!(rows.iter().map(CustomProvider::id).collect::<Vec<_>>(), ["work", "home"]);
        assert_eq!(read("custom_providers:\n").unwrap(), []);
    }

    #[test]
    fn a_row_that_cannot_be_used_is_named() {
        let good = "{name: work, base_url: 'https://work.test/v1'}";
        for (row, words) in [
            ("{base_url: 'https://x.test'}", "`custom_providers[1]` has no name of its own"),
            ("{name: Work, base_url: 'https://x.test'}", "(`Work`) has no name of its own"),
            ("{name: x}", "(`x`) has a base_url that is not a URL"),
            ("{name: x, base_url: 'https://x.test', api_mode: morse}", "has the api_mode `morse`"),
            ("{name: x, base_url: 'https://x.test', schemas: draft}", "has the schemas `draft`"),
        ] {
            let failure = read(&format!("custom_providers: [{good}, {row}]\n")).unwrap_err();
            assert!(failure.why.contains(words) && !failure.fix.is_empty(), "{failure}");
            assert_eq!(failure.code, codes::PROVIDER);
        }
    }
}
