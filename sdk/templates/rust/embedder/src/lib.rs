//! An embedder: computes vectors of texts, so that other plugins can compare and search them.
//!
//! This one counts words and needs no model. To use a real one, replace `words::vector`: include its weights in the component with
//! `include_bytes!`, or read them through `files`.

mod words;

use hermes_plugin::embedder::{Description, Request};
use hermes_plugin::{Embedder, Error, Instance, Setup, config};

/// The plugin's configuration section. A test compares it with plugin.yaml.
#[config]
struct Config {
    /// Length of the vectors. Vectors of another length cannot be compared.
    #[schemars(range(min = 16, max = 4096))]
    #[serde(default = "dimensions")]
    dimensions: u32,
}

fn dimensions() -> u32 {
    256
}

struct Words {
    config: Config,
}

impl Instance for Words {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        if !(16..=4096).contains(&config.dimensions) {
            return Err(Error::invalid("dimensions must lie between 16 and 4096"));
        }
        Ok(())
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config })
    }
}

impl Embedder for Words {
    fn describe(&self) -> Result<Description, Error> {
        // Plugins store this name beside each vector. Change it whenever the vectors change.
        let model = format!("{{name}}-1-{}", self.config.dimensions);
        Ok(Description::new(model, self.config.dimensions))
    }

    fn embed(&mut self, request: &Request) -> Result<Vec<Vec<f32>>, Error> {
        // `request.purpose` says whether the texts search or are searched. Word counts are the same for both.
        Ok(request.texts.iter().map(|text| words::vector(text, self.config.dimensions)).collect())
    }
}

hermes_plugin::export!(Words: Embedder);

#[cfg(test)]
mod tests {
    use hermes_plugin::testing::{Host, check_manifest};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifest_describes_the_configuration() {
        // `HERMES_WRITE_CONFIG=1 cargo test` writes the section.
        check_manifest::<Words>();
    }

    #[test]
    fn every_text_gets_a_vector_of_the_described_length() -> Result<(), Error> {
        let host = Host::new();
        let mut words: Words = host.start(json!({ "dimensions": 64 }))?;
        let description = words.describe()?;
        assert_eq!((description.model.as_str(), description.dimensions), ("{{name}}-1-64", 64));
        let vectors = words.embed(&Request::new(["When does the ferry leave?", ""]))?;
        assert!(vectors.len() == 2 && vectors.iter().all(|vector| vector.len() == 64));
        Ok(())
    }

    #[test]
    fn a_length_outside_of_the_contract_is_refused() {
        let started = Host::new().start::<Words>(json!({ "dimensions": 0 }));
        assert!(started.is_err_and(|error| error.message.contains("dimensions")));
    }
}
