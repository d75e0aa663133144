//! What a server may want of its session.

use std::path::PathBuf;

use async_trait::async_trait;
use url::Url;

use crate::sampling::{Sampled, Sampling};

/// The session of a server. Its texts come from the server and are untrusted.
#[async_trait]
pub trait Front: Send + Sync + 'static {
    /// A line for the user.
    fn notice(&self, text: String);
    /// A line about a call that runs.
    fn progress(&self, text: &str);
    /// A line for the log.
    fn log(&self, is_warning: bool, text: &str);
    /// Asks the user during a call; `None` if nobody can answer. The user can also answer in other words than the choices.
    /// With `takes_values`, such words are a value, and a typed number is a value too, not the number of a choice.
    async fn ask(&self, question: String, choices: Vec<String>, takes_values: bool) -> Option<String>;
    /// Whether somebody can answer questions.
    fn is_attended(&self) -> bool;
    /// Asks a model of the user for the server, or says why not. Only servers that the user allowed it ask.
    async fn sample(&self, request: Sampling) -> Result<Sampled, String>;
    /// A token for requests to the server's address, another one than the one that the server refused. `None` without a login.
    async fn token(&self, url: &Url, refused: Option<&str>) -> Result<Option<String>, String>;
    /// The folders that the server should work in.
    fn roots(&self) -> Vec<PathBuf>;
}
