//! The test environment of a plugin: a rule-based model, a fixed clock, storage in memory, two folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hermes_capabilities::documents::Documents;
use hermes_capabilities::files::Change;
use hermes_capabilities::process::Run;
use hermes_capabilities::sql::Database;
use hermes_conversation::{Model, Usage, tokens};
use hermes_engine_trials::Terms;
use hermes_plugin_host::services::{
    Approval, Clock, EmbeddingModel, EmbeddingRequest, Embeddings, Finish, ModelReply, ModelRequest, Models, Pieces,
    Refusal, Vectors,
};
use hermes_plugin_host::{Fault, FaultKind};
use hermes_testkit::{FaultMode, StandIn};

use crate::conversation::START_MS;
use crate::error::ConformanceError;

/// The size of the window in tokens.
pub(crate) const WINDOW: u32 = 32_000;

pub(crate) fn model() -> Model {
    Model { provider: "conformance".to_owned(), name: "scripted".to_owned(), context_length: WINDOW }
}

/// A user who agrees to every change in the folders of the test.
pub(crate) struct AgreeingUser;

#[async_trait]
impl Approval for AgreeingUser {
    async fn process(&self, run: &Run, _: bool) -> Result<(), Fault> {
        let why = format!("{:?} was not run: programs are not part of this test", run.program);
        Err(Fault::new(FaultKind::Denied, Refusal::Unattended.code(), why))
    }

    async fn file(&self, _: &Change, _: bool) -> Result<(), Fault> {
        Ok(())
    }
}

/// A model that picks lines of its input, or that is unavailable.
pub(crate) struct ScriptedModel {
    pub(crate) unavailable: bool,
}

#[async_trait]
impl Models for ScriptedModel {
    fn resolve(&self, task: &str) -> Result<Model, Fault> {
        if self.unavailable {
            let why = format!("no model is configured for `{task}`");
            return Err(Fault::new(FaultKind::Unavailable, "no-model", why));
        }
        Ok(model())
    }

    async fn stream(&self, request: ModelRequest, _: &Pieces) -> Result<ModelReply, Fault> {
        let model = self.resolve(&request.task)?;
        let source = request.texts().collect::<Vec<_>>().join("\n");
        let written =
            StandIn::new(Terms::STANDARD.bytes_per_token, FaultMode::Sound).write_within(&source, request.max_tokens);
        let text = written.text.unwrap_or_default();
        let usage = Usage { input: tokens::of_text(&source), output: tokens::of_text(&text), ..Usage::default() };
        Ok(ModelReply { text, finish: Finish::Stop, model: model.name, usage })
    }

    fn count_tokens(&self, text: &str) -> u32 {
        tokens::of_text(text)
    }
}

/// An embedding model by rule: texts that share words have similar vectors.
pub(crate) struct HashedVectors {
    pub(crate) unavailable: bool,
}

/// The length of the vectors.
const DIMENSIONS: u32 = 64;

#[async_trait]
impl Embeddings for HashedVectors {
    async fn resolve(&self) -> Result<EmbeddingModel, Fault> {
        if self.unavailable {
            return Err(Fault::new(FaultKind::Unavailable, "no-model", "no embedding model is configured"));
        }
        let Model { provider, name, .. } = model();
        Ok(EmbeddingModel { provider, name, dimensions: Some(DIMENSIONS) })
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Vectors, Fault> {
        let model = self.resolve().await?;
        let input = request.texts.iter().map(|text| tokens::of_text(text)).sum();
        Ok(Vectors {
            vectors: request.texts.iter().map(|text| hashed(text)).collect(),
            model: model.name,
            usage: Usage { input, ..Usage::default() },
        })
    }
}

/// A vector of length one whose places are the hashes of the words.
fn hashed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS as usize];
    // An empty text has a direction too.
    vector[0] = 0.01;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word.to_lowercase().bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
        vector[(hash % DIMENSIONS) as usize] += 1.0;
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

/// A clock that always shows the same time.
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> u64 {
        START_MS
    }

    fn utc_offset(&self) -> i32 {
        60
    }
}

/// A plugin's storage. Sessions that share it find each other's data.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) documents: Arc<Documents>,
    pub(crate) database: Arc<Database>,
}

impl Storage {
    pub(crate) fn empty() -> Self {
        Self { documents: Arc::new(Documents::in_memory()), database: Arc::new(Database::in_memory()) }
    }
}

/// Folders that a plugin may request.
pub(crate) struct Folders {
    root: tempfile::TempDir,
}

const FILES: [(&str, &str); 5] = [
    ("workspace/README.md", "# Harbour\n\nTwelve lanterns, one ferry.\n"),
    ("workspace/src/lamp.rs", "fn trim(wick: u32) -> u32 {\n    wick / 2\n}\n"),
    (
        "skills/lamps/SKILL.md",
        "---\nname: lamps\ndescription: Trims and fills the lamps of a harbour.\n---\n\n# Lamps\n\nSee references/oil.md.\n",
    ),
    ("skills/lamps/references/oil.md", "Two spoons a night.\n"),
    ("secret.txt", "no plugin may read this"),
];

impl Folders {
    pub(crate) fn make() -> Result<Self, ConformanceError> {
        let made = || -> std::io::Result<Self> {
            let root = tempfile::Builder::new().prefix("hermes-conformance-").tempdir()?;
            for (path, content) in FILES {
                let path = root.path().join(path);
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::write(path, content)?;
            }
            Ok(Self { root })
        };
        made().map_err(|error| ConformanceError::Surroundings(error.to_string()))
    }

    /// The folder that holds all others.
    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// The folder of a root by its name.
    pub(crate) fn of(&self, root: &str) -> PathBuf {
        self.root.path().join(if root == "skills" { "skills" } else { "workspace" })
    }

    /// The text of a file outside of every root, which must never be revealed.
    pub(crate) const SECRET: &str = FILES[4].1;
}
