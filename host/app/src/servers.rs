//! Servers of the Model Context Protocol: trying and keeping those of the configuration, and being one for other agents.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hermes_conversation::tokens;
use hermes_mcp::{Front, KeptListings, Said, Sampled, Sampling};
use hermes_models::{LoginClient, Logins, discover_login};
use hermes_private_files::{create_folder, read_text, write_whole};
use hermes_prompt::ProviderBlock;
use tokio::net::TcpListener;
use url::Url;

use crate::{AppError, Home, Setup};

pub use hermes_agent::{Weight, weight};
pub use hermes_mcp::{
    Cause, Condition, Confinement, Endpoint, ListedTool, Listing, McpError, Offer, OwnPrompt, OwnResource, OwnTool,
    PATH, Program, ServeError, ServerDefinition, ToolChoice, WebAddress, is_server_name, login_name, tool_name,
};
pub use hermes_models::KnownClient;

/// The most lines of a program that are the last ones.
const LAST: usize = 10;
/// The most bytes of the file with the token, and the fewest letters of a token.
const TOKEN: (u64, usize) = (4 << 10, 16);

/// A server that was tried once.
#[derive(Debug)]
pub struct Tried {
    /// What it offers, or why it cannot be used.
    pub listing: Result<Listing, McpError>,
    /// The last lines that its program wrote, if it cannot be used.
    pub last_lines: Vec<String>,
    /// The file with everything that its program wrote, if it cannot be used and wrote something.
    pub written: Option<PathBuf>,
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

/// Connects to a server, lists its tools and ends it. `folder` is the one that the user works in.
pub async fn try_server(setup: &Setup, definition: ServerDefinition, folder: PathBuf) -> Tried {
    let server = definition.name.clone();
    let alone = Alone { folder, server: server.clone(), logins: setup.logins.clone() };
    let said = Said::default();
    let listing = hermes_mcp::try_once(definition, Arc::new(alone), &said).await;
    if listing.is_ok() {
        return Tried { listing, last_lines: Vec::new(), written: None };
    }
    let written = KeptListings::new(setup.home.documents()).write_words(&server, &said).unwrap_or_else(|error| {
        tracing::warn!(server, %error, "what it wrote cannot be kept");
        None
    });
    Tried { listing, last_lines: said.last_lines(LAST), written }
}

/// The client of the login that a server on the web asks for.
///
/// # Errors
///
/// [`AppError::Login`], when the server does not say where one can log in.
pub async fn server_login(server: &str, address: &WebAddress, known: &KnownClient) -> Result<LoginClient, AppError> {
    let login = login_name(server);
    let settings = discover_login(&login, &address.url, known).await?;
    Ok(LoginClient::new(&login, &settings)?)
}

/// Keeps a list that was just verified, for sessions that cannot wait for the server.
pub fn keep_listing(setup: &Setup, definition: &ServerDefinition, listing: &Listing) {
    if let Err(error) = KeptListings::new(setup.home.documents()).write(definition, listing) {
        tracing::warn!(server = definition.name, %error, "its list of tools cannot be kept");
    }
}

/// The kept list of a server, if it is about this definition of it.
pub fn kept_listing(setup: &Setup, definition: &ServerDefinition) -> Option<Listing> {
    KeptListings::new(setup.home.documents()).read(definition)
}

/// Removes the kept list of a server.
///
/// # Errors
///
/// When its file cannot be removed.
pub fn forget_listing(setup: &Setup, name: &str) -> io::Result<()> {
    KeptListings::new(setup.home.documents()).forget(name)
}

/// Answers another agent over standard input and output, until it closes the input.
///
/// # Errors
///
/// When the other agent does not speak the protocol, or the connection breaks.
pub async fn serve(offer: Arc<dyn Offer>) -> Result<(), ServeError> {
    hermes_mcp::serve(offer, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Answers programs of this machine over HTTP. Without a token, everybody who reaches the address is answered.
pub async fn serve_web(offer: Arc<dyn Offer>, listener: TcpListener, token: Option<String>) -> Infallible {
    hermes_mcp::serve_web(offer, listener, token).await
}

/// The file with the token of the server.
pub fn serve_token_file(home: &Home) -> PathBuf {
    home.path().join("mcp").join("serve.token")
}

/// The token in the file. The first server makes it, so that a client's configuration stays right.
///
/// # Errors
///
/// When the file cannot be read or made, or has no token.
pub fn serve_token(file: &Path) -> io::Result<String> {
    let kept = match read_text(file, TOKEN.0) {
        Ok(kept) => kept.trim().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
            let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            create_folder(file.parent().unwrap_or(Path::new(".")))?;
            // Another server may begin at the same moment: the first file stays.
            let own = file.with_extension(format!("token-{}", std::process::id()));
            write_whole(&own, format!("{token}\n").as_bytes())?;
            let linked = std::fs::hard_link(&own, file);
            std::fs::remove_file(&own)?;
            match linked {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => read_text(file, TOKEN.0)?.trim().to_owned(),
            }
        }
        Err(error) => return Err(error),
    };
    if kept.len() < TOKEN.1 || !kept.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = format!("its token has not {} or more visible letters", TOKEN.1);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(kept)
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
