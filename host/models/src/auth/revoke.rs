//! Logging out: the tokens of a login are revoked at its server (RFC 7009), and the login is removed from the file.

use url::Url;

use super::{
    built_in,
    file::{FileError, Login},
    login::LoginError,
    server::{self, Answer},
    token::{LONGEST_LOCK, Logins},
};
use crate::{Secret, providers};

/// What a logout did beside removing the login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoggedOut {
    /// The server no longer accepts the tokens.
    Revoked,
    /// The login was only removed here: it names no address for revoking, or the caller did not want that.
    Removed,
    /// The login was only removed here, and its key or token does not expire by itself.
    StaysValid {
        /// The server that issued it.
        host: String,
        /// The page on which the user deletes keys, if it is known.
        keys_page: Option<&'static str>,
    },
}

impl Logins {
    /// Revokes the tokens of a login where it has a `revoke_url`, unless `local`, and removes it. A login whose tokens
    /// could not be revoked stays, so that the user can try again.
    ///
    /// # Errors
    ///
    /// [`LoginError::Absent`], [`LoginError::NotRevoked`] and [`LoginError::File`].
    pub async fn log_out(&self, name: &str, local: bool) -> Result<LoggedOut, LoginError> {
        let file = self.file();
        let unusable = |error: FileError| match error {
            FileError::NoFile(_) | FileError::NoLogin(_) => LoginError::Absent { login: name.to_owned() },
            error => LoginError::of_file(file, &error),
        };
        // Checked before the lock, whose file would be created.
        file.check_has(name).map_err(unusable)?;
        // Held meanwhile, so that no other process refreshes a token that is being revoked.
        let lock = file.lock(LONGEST_LOCK).await.map_err(unusable)?;
        let done = match file.read(name) {
            Ok(login) if !local => revoke(name, &login).await?,
            // What cannot be used cannot be revoked either.
            Ok(login) => unrevoked(&login),
            Err(FileError::Incomplete { .. } | FileError::Malformed(_)) => LoggedOut::Removed,
            Err(error) => return Err(unusable(error)),
        };
        file.remove(&lock, name).map_err(unusable)?;
        Ok(done)
    }
}

/// The outcome of a logout that does not revoke the tokens.
fn unrevoked(login: &Login) -> LoggedOut {
    let stays = login.expires_at.is_none() && login.access_token.is_some() && login.refresh_token.trim().is_empty();
    match Url::parse(&login.token_url) {
        Ok(url) if stays => LoggedOut::StaysValid {
            host: providers::host(&url).unwrap_or_default(),
            keys_page: built_in::keys_page(&url),
        },
        _ => LoggedOut::Removed,
    }
}

async fn revoke(name: &str, login: &Login) -> Result<LoggedOut, LoginError> {
    let secrets: Vec<Secret> = [Some(&login.refresh_token), login.access_token.as_ref(), login.client_secret.as_ref()]
        .into_iter()
        .flatten()
        .filter_map(|text| Secret::new(text))
        .collect();
    let failed = |why: String| LoginError::NotRevoked {
        login: name.to_owned(),
        why: secrets.iter().fold(why, |why, secret| secret.scrub(&why)),
    };
    let Some(url) = &login.revoke_url else { return Ok(unrevoked(login)) };
    let url = server::address(url).map_err(|flaw| failed(format!("its revoke_url {flaw}")))?;
    // Servers may keep access tokens valid that came from a revoked refresh token, so both are revoked.
    let tokens = [("access_token", login.access_token.as_deref()), ("refresh_token", Some(&*login.refresh_token))];
    for (kind, token) in tokens {
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            revoke_one(login, &url, kind, token).await.map_err(&failed)?;
        }
    }
    Ok(LoggedOut::Revoked)
}

async fn revoke_one(login: &Login, url: &Url, kind: &str, token: &str) -> Result<(), String> {
    let form = server::form([
        ("token", Some(token)),
        ("token_type_hint", Some(kind)),
        ("client_id", Some(&login.client_id)),
        ("client_secret", login.client_secret.as_deref()),
    ]);
    let answer = server::post(url, form).await.map_err(server::NoAnswer::into_why)?;
    // Not every server can revoke both kinds.
    let is_spared = kind == "access_token" && answer.word("error") == Some("unsupported_token_type");
    if answer.is_success() || is_spared {
        return Ok(());
    }
    let Answer { host, status, .. } = &answer;
    Err(format!("{host} did not revoke its {kind} (status {status}): {}", answer.words()))
}
