//! An embedder without a model: each word is a direction. The configuration names a flaw to plant.

use hermes_plugin::embedder::{Description, Request};
use hermes_plugin::{Embedder, Error, Plugin, embeddings};
use serde_json::Value;

const DIMENSIONS: u32 = 32;

/// The plugin.
pub struct Mapper {
    flaw: String,
    calls: u32,
}

impl Plugin for Mapper {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Value = serde_json::from_str(config)?;
        Ok(Self { flaw: config["flaw"].as_str().unwrap_or_default().to_owned(), calls: 0 })
    }
}

impl Embedder for Mapper {
    fn describe(&self) -> Result<Description, Error> {
        let dimensions = if self.flaw == "no-dimensions" { 0 } else { DIMENSIONS };
        Ok(Description::new("words", dimensions))
    }

    fn embed(&mut self, request: &Request) -> Result<Vec<Vec<f32>>, Error> {
        self.calls += 1;
        let mut vectors: Vec<Vec<f32>> = request.texts.iter().map(|text| vector(text)).collect();
        match self.flaw.as_str() {
            "not-a-number" => vectors[0][1] = f32::NAN,
            "short" => vectors.iter_mut().for_each(|vector| vector.truncate(3)),
            "few" => vectors.truncate(vectors.len() - 1),
            "reversed" => vectors.reverse(),
            "unsteady" => vectors.iter_mut().for_each(|vector| vector[0] += self.calls as f32),
            "refuses-empty" if request.texts.iter().any(String::is_empty) => {
                return Err(Error::invalid("a text is empty"));
            }
            "crashes" => panic!("the map is torn"),
            "hangs" => loop {
                std::hint::spin_loop();
            },
            "asks-itself" => {
                embeddings::query("where am I?")?;
            }
            "floods" => return Ok(vec![vec![0.5; 1 << 20]; 64]),
            _ => {}
        }
        Ok(vectors)
    }
}

/// The words of a text, each as a direction. An empty text has a direction too.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS as usize];
    vector[0] = 0.5;
    for word in text.split_whitespace() {
        let hash = word.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
        vector[(hash % DIMENSIONS) as usize] += 1.0;
    }
    vector
}

hermes_plugin::export!(Mapper: Embedder);
