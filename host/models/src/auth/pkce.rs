//! Logging in with a browser on this machine: the authorization code grant with a proof key (RFC 7636) and a redirect to a
//! port of this machine (RFC 8252).
//!
//! The proof key ties the code to this process: a program that steals the code from the browser cannot use it.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    login::{Browser, LoginClient, LoginError, LoginStep, OnStep, Unsaid},
    redirect::{Outcome, Redirect},
    server::{self, Answer, Tokens},
};
use crate::{Secret, failure, providers};

/// Only the hash of the proof key goes through the browser.
const CHALLENGE_METHOD: &str = "S256";
/// How long the user has for the browser.
pub(super) const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The values that are made for one login.
struct Proof {
    /// Ties the redirect to this login.
    state: String,
    /// Ties the code to this process. Only its hash goes through the browser.
    verifier: String,
}

impl Proof {
    fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { state: random()?, verifier: random()? })
    }

    /// The method S256 of RFC 7636, section 4.2.
    fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

/// 32 random bytes as 43 characters.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// From the address for the browser to tokens.
pub(super) async fn log_in(
    client: &LoginClient,
    browser: &Browser,
    patience: Duration,
    on_step: OnStep<'_>,
) -> Result<Tokens, LoginError> {
    let proof = prove(client)?;
    let redirect = listen(client, &browser.redirect_url).await?;
    let url = redirect.url().clone();
    let page = page(client, &browser.authorize_url, &url, &proof);
    let mut unsaid = Unsaid::of(client);
    unsaid.add(&proof.verifier);
    unsaid.add(&proof.state);
    on_step(LoginStep::Open { page: &page, redirect: &url, valid: patience });
    let code =
        code(client, browser, patience, redirect.wait(Some(&proof.state), client.issuer.as_ref()), &unsaid).await?;
    unsaid.add(code.expose());
    exchange(client, &url, &proof, &code, &unsaid).await
}

/// From the address for the browser to a key, which does not expire by itself. The server returns no `state`, so the path of
/// the redirect carries it.
pub(super) async fn get_key(
    client: &LoginClient,
    browser: &Browser,
    patience: Duration,
    on_step: OnStep<'_>,
) -> Result<Tokens, LoginError> {
    let proof = prove(client)?;
    let mut back = browser.redirect_url.clone();
    back.set_path(&format!("{}/{}", back.path().trim_end_matches('/'), proof.state));
    let redirect = listen(client, &back).await?;
    let url = redirect.url().clone();
    let mut page = browser.authorize_url.clone();
    let challenge = proof.challenge();
    let own =
        [("callback_url", url.as_str()), ("code_challenge", &challenge), ("code_challenge_method", CHALLENGE_METHOD)];
    let others = client.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    page.query_pairs_mut().extend_pairs(others.chain(own));
    let mut unsaid = Unsaid::of(client);
    unsaid.add(&proof.verifier);
    on_step(LoginStep::Open { page: &page, redirect: &url, valid: patience });
    let code = code(client, browser, patience, redirect.wait(None, client.issuer.as_ref()), &unsaid).await?;
    unsaid.add(code.expose());
    let body =
        json!({"code": code.expose(), "code_verifier": proof.verifier, "code_challenge_method": CHALLENGE_METHOD});
    let failed = |why: &str| client.failed(unsaid.scrub(why));
    let answer = server::post_json(&client.token_url, &body).await;
    let answer = answer.map_err(|no_answer| failed(&no_answer.into_why()))?;
    if answer.is_success() {
        return answer.key().map_err(|why| failed(&why));
    }
    Err(refusal(client, &answer, &unsaid))
}

fn prove(client: &LoginClient) -> Result<Proof, LoginError> {
    Proof::new().map_err(|why| client.failed(format!("the system gives no random numbers: {why}")))
}

async fn listen(client: &LoginClient, url: &Url) -> Result<Redirect, LoginError> {
    Redirect::listen(url).await.map_err(|why| LoginError::Setting {
        login: client.name().to_owned(),
        key: "redirect_url",
        flaw: format!("cannot be used: {why}"),
    })
}

/// The code that the browser brings back.
async fn code(
    client: &LoginClient,
    browser: &Browser,
    patience: Duration,
    back: impl Future<Output = Outcome>,
    unsaid: &Unsaid,
) -> Result<Secret, LoginError> {
    let late = |_| LoginError::Late { login: client.name().to_owned(), after: patience };
    let outcome = tokio::time::timeout(patience, back).await.map_err(late)?;
    let host = providers::host(&browser.authorize_url).unwrap_or_default();
    match outcome {
        Outcome::Code(code) => Ok(code),
        Outcome::OtherIssuer(named) => {
            let named = named.map_or_else(
                || "names no login server".to_owned(),
                |named| format!("comes from the login server {}", failure::one_line(&named)),
            );
            let asked = client.issuer.as_ref().map(|issuer| issuer.name.as_str()).unwrap_or_default();
            Err(client.failed(
                unsaid.scrub(&format!("the answer {named}, but {asked} was asked: its code was sent to nobody")),
            ))
        }
        Outcome::Error(word, _) if word == "access_denied" => {
            Err(LoginError::Denied { login: client.name().to_owned(), host })
        }
        Outcome::Error(word, description) => {
            let words: Vec<String> =
                [Some(word), description].into_iter().flatten().map(|word| failure::one_line(&word)).collect();
            let (message, login) = (unsaid.scrub(&words.join(": ")), client.name().to_owned());
            Err(LoginError::Refused { login, host, message })
        }
    }
}

/// The page that the user opens.
fn page(client: &LoginClient, authorize_url: &Url, redirect: &Url, proof: &Proof) -> Url {
    let challenge = proof.challenge();
    let own = [
        ("response_type", Some("code")),
        ("redirect_uri", Some(redirect.as_str())),
        ("state", Some(&proof.state)),
        ("code_challenge", Some(&challenge)),
        ("code_challenge_method", Some(CHALLENGE_METHOD)),
    ];
    let mut page = authorize_url.clone();
    let fields = client.asked().chain(own).filter_map(|(name, value)| Some((name, value?)));
    page.query_pairs_mut().extend_pairs(fields);
    page
}

/// A code goes in, tokens come out (RFC 6749, section 4.1.3). A code is worth one try, so a failure is final.
async fn exchange(
    client: &LoginClient,
    redirect: &Url,
    proof: &Proof,
    code: &Secret,
    unsaid: &Unsaid,
) -> Result<Tokens, LoginError> {
    let secret = client.client_secret.as_ref().map(Secret::expose);
    let form = server::form([
        ("grant_type", Some("authorization_code")),
        ("code", Some(code.expose())),
        ("redirect_uri", Some(redirect.as_str())),
        ("client_id", Some(client.client_id.as_str())),
        ("client_secret", secret.filter(|_| !client.is_basic)),
        ("code_verifier", Some(&proof.verifier)),
        ("resource", client.resource.as_deref()),
    ]);
    let failed = |why: &str| client.failed(unsaid.scrub(why));
    let basic = secret.filter(|_| client.is_basic).map(|secret| (client.client_id.as_str(), secret));
    let answer = server::post_as(basic, &client.token_url, form).await;
    let answer = answer.map_err(|no_answer| failed(&no_answer.into_why()))?;
    if answer.is_success() {
        return answer.tokens().map_err(|why| failed(&why));
    }
    Err(refusal(client, &answer, unsaid))
}

/// The error of a server that gives nothing for a code.
fn refusal(client: &LoginClient, answer: &Answer, unsaid: &Unsaid) -> LoginError {
    let Answer { host, status, .. } = answer;
    let message = unsaid.scrub(&format!("{} (status {status})", answer.words()));
    match answer.is_final() {
        true => LoginError::Refused { login: client.name().to_owned(), host: host.clone(), message },
        false => client.failed(format!("the token server {host} failed: {message}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
