//! A refresh token goes in, an access token comes out (RFC 6749, section 6).

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};

use super::{
    file::Login,
    server::{self, Answer, NoAnswer, Tokens},
};

/// How often a request is sent while the network fails, and the shortest delay before the second try.
const TRIES: usize = 3;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Why there is no new token. The texts may quote secrets: the caller scrubs them.
pub(super) enum Refusal {
    /// The server does not accept the refresh token, and will not accept it later.
    Final(String),
    /// The request was not sent, because `token_url` cannot be used.
    Address(String),
    /// The server failed, or did not answer in time.
    Passing(String),
    /// The connection failed, so that the server may never have seen the request.
    Network(String),
}

/// Asks for a new access token, up to [`TRIES`] times where the network fails.
pub(super) async fn ask(login: &Login) -> Result<Tokens, Refusal> {
    let waits = ExponentialBuilder::new().with_min_delay(FIRST_WAIT).with_max_times(TRIES - 1).with_jitter();
    let is_network = |refusal: &Refusal| matches!(refusal, Refusal::Network(_));
    (|| ask_once(login)).retry(waits).when(is_network).await
}

async fn ask_once(login: &Login) -> Result<Tokens, Refusal> {
    let url = server::address(&login.token_url).map_err(|flaw| Refusal::Address(format!("its token_url {flaw}")))?;
    let secret = login.client_secret.as_deref();
    let basic = secret.filter(|_| login.is_basic).map(|secret| (login.client_id.as_str(), secret));
    let form = server::form([
        ("grant_type", Some("refresh_token")),
        ("refresh_token", Some(&login.refresh_token)),
        ("client_id", Some(&login.client_id)),
        ("client_secret", secret.filter(|_| !login.is_basic)),
        ("scope", login.scope.as_deref()),
        ("resource", login.resource.as_deref()),
    ]);
    match server::post_as(basic, &url, form).await {
        Ok(answer) => read(&answer),
        Err(NoAnswer::Network(why)) => Err(Refusal::Network(why)),
        Err(NoAnswer::Server(why)) => Err(Refusal::Passing(why)),
    }
}

fn read(answer: &Answer) -> Result<Tokens, Refusal> {
    if answer.is_success() {
        return answer.tokens().map_err(Refusal::Passing);
    }
    let Answer { host, status, .. } = answer;
    let why = format!("the token server {host} refused to refresh it (status {status}): {}", answer.words());
    Err(if answer.is_final() { Refusal::Final(why) } else { Refusal::Passing(why) })
}
