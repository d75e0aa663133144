//! Computes vectors of texts from their words: texts that share words have similar vectors.

use hermes_plugin::embedder::{Description, Request};
use hermes_plugin::{Embedder, Error, Instance, NoConfig, Setup};

const DIMENSIONS: u32 = 256;

struct WordVectors;

impl Instance for WordVectors {
    type Config = NoConfig;

    fn new(_: Setup<NoConfig>) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Embedder for WordVectors {
    fn describe(&self) -> Result<Description, Error> {
        // Stored vectors are valid under this name. Change it together with `vector`.
        Ok(Description::new("word-vectors-1", DIMENSIONS))
    }

    fn embed(&mut self, request: &Request) -> Result<Vec<Vec<f32>>, Error> {
        // `request.purpose` is for models that embed questions in another way than documents.
        Ok(request.texts.iter().map(|text| vector(text)).collect())
    }
}

/// A vector of length 1. Each word adds to one of its numbers.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS as usize];
    // A text without words has a direction too.
    vector[0] = 0.01;
    let text = text.to_lowercase();
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = hash(word);
        vector[(hash % DIMENSIONS) as usize] += if hash >> 31 == 0 { 1.0 } else { -1.0 };
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter().map(|number| number / length).collect()
}

/// FNV-1a, which is the same on every machine and in every run.
fn hash(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

hermes_plugin::export!(WordVectors: Embedder);
