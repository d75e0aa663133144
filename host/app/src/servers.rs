//! Servers of the Model Context Protocol outside of sessions: a trial, what they say about their use, and the login to one.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::tokens;
use hermes_mcp::{
    Front, KeptListings, Listing, McpError, Said, Sampled, Sampling, ServerDefinition, WebAddress, login_name, try_once,
};
use hermes_models::{LoginClient, Logins, discover_login};
use hermes_prompt::ProviderBlock;
use url::Url;

use crate::{AppError, Setup};

pub use hermes_agent::{Weight, weight};
pub use hermes_models::KnownClient;

/// The end of a trial of a server.
#[derive(Debug)]
pub struct ServerTrial {
    /// What the server offers, or why that is not known.
    pub listing: Result<Listing, McpError>,
    /// After a failure, the last lines that its program wrote.
    pub last_lines: Vec<String>,
    /// After a failure, the file with all that its program wrote.
    pub words: Option<PathBuf>,
}

/// What a server says about its use.
#[derive(Debug, Clone)]
pub struct ServerInstructions {
    /// Estimated tokens of all of it.
    pub tokens: u32,
    /// As the model reads it.
    pub shown: String,
    /// What the scan for injected instructions found, in words.
    pub suspicious: Option<String>,
}

impl ServerInstructions {
    /// The instructions of a server by its name.
    pub fn of(name: &str, instructions: &str) -> Self {
        let (block, suspicious) = ProviderBlock::of_server(name, instructions);
        let shown = block.instructions().to_owned();
        Self { tokens: tokens::of_text(instructions), shown, suspicious: suspicious.map(|notice| notice.to_string()) }
    }
}

impl Setup {
    /// Starts a server or connects to it, and asks what it offers. `folder` is the root that it gets.
    pub async fn try_server(&self, definition: ServerDefinition, folder: PathBuf) -> ServerTrial {
        /// The most lines.
        const SHOWN: usize = 10;
        let name = definition.name.clone();
        let alone = Alone { folder, server: name.clone(), logins: self.logins.clone() };
        let said = Said::default();
        let listing = try_once(definition, Arc::new(alone), &said).await;
        if listing.is_ok() {
            return ServerTrial { listing, last_lines: Vec::new(), words: None };
        }
        let words = KeptListings::in_home(self.home.path()).write_words(&name, &said).unwrap_or_else(|error| {
            tracing::warn!(server = name, %error, "what it wrote cannot be kept");
            None
        });
        ServerTrial { listing, last_lines: said.last_lines(SHOWN), words }
    }

    /// The client of the login that a server on the web asks for.
    ///
    /// # Errors
    ///
    /// [`AppError::Login`], when the server does not say where one can log in.
    pub async fn server_login(
        &self,
        server: &str,
        address: &WebAddress,
        known: &KnownClient,
    ) -> Result<LoginClient, AppError> {
        let login = login_name(server);
        let settings = discover_login(&login, &address.url, known).await?;
        Ok(LoginClient::new(&login, &settings)?)
    }
}

/// Without a session, nobody needs what a server tells.
struct Alone {
    folder: PathBuf,
    server: String,
    logins: Logins,
}

#[async_trait]
impl Front for Alone {
    async fn ask(&self, _: String, _: Vec<String>, _: bool) -> Option<String> {
        None
    }

    fn is_attended(&self) -> bool {
        false
    }

    fn notice(&self, _: String) {}

    async fn token(&self, url: &Url, refused: Option<&str>) -> Result<Option<String>, String> {
        let token = self.logins.token_for(&login_name(&self.server), url, refused).await;
        token.map_err(|error| error.to_string())
    }

    async fn sample(&self, _: Sampling) -> Result<Sampled, String> {
        Err("there is no session".to_owned())
    }

    fn progress(&self, _: &str) {}

    fn log(&self, _: bool, text: &str) {
        tracing::debug!("{text}");
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.folder.clone()]
    }
}
