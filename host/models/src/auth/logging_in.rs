//! Logging in: from the settings of a login to tokens in `auth.json`.

use super::{
    device,
    file::FileError,
    login::{LoggedIn, LoginClient, LoginError, OnStep, Start},
    pkce,
    token::{LONGEST_LOCK, Logins},
};

impl Logins {
    /// Logs in, and stores the tokens. `on_step` gets what the user has to do. Dropping the future ends the login, and
    /// stores nothing.
    ///
    /// # Errors
    ///
    /// Every [`LoginError`] except [`LoginError::Unknown`].
    pub async fn log_in(&self, client: &LoginClient, on_step: OnStep<'_>) -> Result<LoggedIn, LoginError> {
        let file = self.file();
        let unusable = |error: &FileError| LoginError::of_file(file, error);
        // Nobody should log in for a file that cannot take the tokens.
        file.check().map_err(|error| unusable(&error))?;
        let tokens = match &client.start {
            Start::Device(url) => device::log_in(client, url, on_step).await?,
            Start::Browser(browser) => pkce::log_in(client, browser, pkce::PATIENCE, on_step).await?,
            Start::BrowserForKey(browser) => pkce::get_key(client, browser, pkce::PATIENCE, on_step).await?,
        };
        let logged_in = LoggedIn { expires_in: tokens.expires_in, is_refreshable: tokens.refresh.is_some() };
        let login = client.login(tokens, self.seconds());
        let lock = file.lock(LONGEST_LOCK).await.map_err(|error| unusable(&error))?;
        file.write(&lock, &client.name, &login).map_err(|error| unusable(&error))?;
        Ok(logged_in)
    }
}
