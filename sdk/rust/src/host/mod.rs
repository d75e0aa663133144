//! The host's imports.

pub mod clock;
pub mod documents;
pub mod embeddings;
pub mod files;
pub mod history;
pub mod http;
pub mod info;
pub mod llm;
pub mod log;
pub mod process;
pub mod random;
pub mod sql;
pub mod task;
