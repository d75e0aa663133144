//! An embedder without a model: each word is a direction.

use hermes_plugin::embedder::{Description, Request};
use hermes_plugin::{Embedder, Error, Plugin};

const DIMENSIONS: u32 = 16;

struct Words;

impl Plugin for Words {
    fn configure(_config: &str) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Embedder for Words {
    fn describe(&self) -> Result<Description, Error> {
        Ok(Description::new("words", DIMENSIONS))
    }

    fn embed(&mut self, request: &Request) -> Result<Vec<Vec<f32>>, Error> {
        Ok(request.texts.iter().map(|text| vector(text)).collect())
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

hermes_plugin::export!(Words: Embedder);
