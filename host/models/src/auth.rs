//! How a request proves who sends it: a fixed key, or an access token that is refreshed when it expires.
//!
//! An [`Authentication`] gives the headers of each request anew, so that a session goes on with another token without being
//! set up again. Tokens are kept by [`Logins`], which all sessions of a home share.

mod built_in;
mod device;
mod file;
mod fixed;
mod logging_in;
mod login;
mod pkce;
mod redirect;
mod refresh;
mod resource;
mod revoke;
mod server;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::HeaderMap;

use crate::{Credential, ModelError, Route, Secret};

#[cfg(test)]
pub(crate) use fixed::cooldown;
pub use login::{Flow, LoggedIn, LoginClient, LoginError, LoginSettings, LoginStep, OnStep};
pub use resource::{KnownClient, discover_login};
pub use revoke::LoggedOut;
pub use token::{LoginState, Logins};

/// The headers of one request that carry its credential.
#[derive(Debug, Clone, Default)]
pub(crate) struct Authorized {
    /// Marked as sensitive, so that no log shows them.
    pub(crate) headers: HeaderMap,
    /// The token in them, where it can be replaced by another one.
    token: Option<Secret>,
}

/// A way to authenticate requests.
#[async_trait]
pub(crate) trait Authentication: Send + Sync {
    /// The headers of the next request. May refresh a token that has expired.
    async fn authorize(&self) -> Result<Authorized, ModelError>;

    /// Called when the server answered 401 to a request with these headers. Returns whether the next
    /// [`authorize`](Authentication::authorize) gives others, so that the request is worth sending again.
    async fn refused(&self, authorized: &Authorized) -> Result<bool, ModelError>;

    /// Called when the server refused a request with these headers for the key's sake. Lets the key rest if another one is
    /// ready for the next [`authorize`](Authentication::authorize), and says so without showing either.
    fn rest(&self, _: &Authorized, _: &ModelError) -> Option<String> {
        None
    }

    /// A text with every occurrence of a current or former secret made unreadable: servers quote what they refuse.
    fn scrub(&self, text: &str) -> String;

    /// What to do when the server refuses the credential.
    fn remedy(&self) -> String;
}

/// Reads the key of a route again, where it was configured; none if there is none, or none for this address.
pub type ReadKey = Arc<dyn Fn() -> Option<Secret> + Send + Sync>;

/// The authentication of a route. Nothing is read or sent yet. `read` gives the key anew after the server refused it.
pub(crate) fn for_route(
    route: &Route,
    logins: &Logins,
    read: Option<ReadKey>,
) -> Result<Arc<dyn Authentication>, ModelError> {
    Ok(match &route.credential {
        Some(Credential::Login(name)) => logins.token(name),
        Some(Credential::Key(key)) => Arc::new(fixed::FixedKeys::new(route, Some(key), read, logins.cooldowns())?),
        None => Arc::new(fixed::FixedKeys::new(route, None, read, logins.cooldowns())?),
    })
}

#[cfg(test)]
mod tests;
