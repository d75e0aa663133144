//! Logging in with a code that the user enters in any browser (RFC 8628).
//!
//! The server decides how often it may be asked: after `interval` seconds, and five seconds later each time that it answers
//! `slow_down`. A server that fails for a moment does not end the login.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::{
    login::{LoginClient, LoginError, LoginStep, OnStep, Unsaid},
    server::{self, Answer, NoAnswer, Tokens},
};
use crate::{Secret, failure};

/// Seconds between two questions, where the server names none.
const INTERVAL: u64 = 5;
/// The time that an answer `slow_down` adds to the interval.
const SLOWER: Duration = Duration::from_secs(5);
/// The longest wait after a failure of the server.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a code is valid where the server does not say, and at most.
const USUAL_LIFE: u64 = 15 * 60;
const LONGEST_LIFE: u64 = 60 * 60;
/// Most bytes of a code that people are asked to type.
const LONGEST_CODE: usize = 64;
/// Most bytes of an address that people are asked to open.
const LONGEST_PAGE: usize = 2_000;
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What the server gave to begin with.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    device_code: Secret,
    /// On one line, without control characters.
    user_code: String,
    page: Url,
    page_with_code: Option<Url>,
    valid: Duration,
    interval: Duration,
}

/// What follows from an answer to the question whether the user has approved.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Granted(Tokens),
    /// Ask again after this pause, which stays.
    Ask(Duration),
    /// Ask again after this pause; the server failed.
    Pause(Duration, String),
    End(LoginError),
}

/// From the first request to tokens.
pub(super) async fn log_in(client: &LoginClient, url: &Url, on_step: OnStep<'_>) -> Result<Tokens, LoginError> {
    let mut unsaid = Unsaid::of(client);
    let secret = client.client_secret.as_ref().map(Secret::expose);
    let form = server::form(client.asked().chain([("client_secret", secret)]));
    let answer = server::post(url, form).await;
    let answer = answer.map_err(|failed| client.failed(unsaid.scrub(&failed.into_why())))?;
    let begun = begin(client, &answer, &unsaid)?;
    unsaid.add(begun.device_code.expose());
    let end = Instant::now() + begun.valid;
    on_step(LoginStep::EnterCode {
        page: &begun.page,
        page_with_code: begun.page_with_code.as_ref(),
        code: &begun.user_code,
        valid: begun.valid,
    });
    let mut interval = begun.interval;
    let mut pause = interval;
    loop {
        tokio::time::sleep_until(end.min(Instant::now() + pause)).await;
        if Instant::now() >= end {
            return Err(LoginError::Late { login: client.name().to_owned(), after: begun.valid });
        }
        let form = server::form([
            ("grant_type", Some(GRANT)),
            ("device_code", Some(begun.device_code.expose())),
            ("client_id", Some(client.client_id.as_str())),
            ("client_secret", secret),
        ]);
        match next(client, server::post(&client.token_url, form).await, interval, pause, begun.valid) {
            Next::Granted(tokens) => return Ok(tokens),
            Next::Ask(after) => (interval, pause) = (after, after),
            Next::Pause(after, why) => {
                pause = after;
                on_step(LoginStep::Waiting { why: &unsaid.scrub(&why) });
            }
            Next::End(LoginError::Refused { login, host, message }) => {
                return Err(LoginError::Refused { login, host, message: unsaid.scrub(&message) });
            }
            Next::End(error) => return Err(error),
        }
    }
}

/// Reads the answer to the first request.
fn begin(client: &LoginClient, answer: &Answer, unsaid: &Unsaid) -> Result<Begun, LoginError> {
    let Answer { host, status, .. } = answer;
    if !answer.is_success() {
        let message = unsaid.scrub(&answer.words());
        return Err(match answer.is_final() {
            true => refused(client, answer, message),
            false => client.failed(format!("{host} failed (status {status}): {message}")),
        });
    }
    let wrong = |what: &str| client.failed(format!("the answer of {host} to the login {what}"));
    let device_code = answer.word("device_code").and_then(Secret::new).ok_or_else(|| wrong("has no device_code"))?;
    let user_code = answer.word("user_code").map(failure::one_line).filter(|code| !code.is_empty());
    let user_code = user_code.ok_or_else(|| wrong("has no user_code"))?;
    if user_code.len() > LONGEST_CODE {
        return Err(wrong("has a user_code that is too long to be typed"));
    }
    // Some servers have the older name of the draft.
    let page = answer.word("verification_uri").or_else(|| answer.word("verification_url"));
    let page = page.ok_or_else(|| wrong("has no verification_uri"))?;
    let page = shown(page).map_err(|flaw| wrong(&format!("has a verification_uri that {flaw}")))?;
    // The other page is a convenience. A link to another server is none.
    let complete = answer.word("verification_uri_complete").and_then(|text| shown(text).ok());
    Ok(Begun {
        device_code,
        user_code,
        page_with_code: complete.filter(|other| other.origin() == page.origin()),
        page,
        valid: Duration::from_secs(answer.seconds("expires_in").unwrap_or(USUAL_LIFE).clamp(1, LONGEST_LIFE)),
        interval: Duration::from_secs(answer.seconds("interval").unwrap_or(INTERVAL).clamp(1, LONGEST_LIFE)),
    })
}

/// An address that the user will open. The parser escapes control characters; a user name could look like another host.
fn shown(text: &str) -> Result<Url, &'static str> {
    let page = server::address(text)?;
    match () {
        () if !page.username().is_empty() || page.password().is_some() => Err("has a user name"),
        () if page.as_str().len() > LONGEST_PAGE => Err("is too long"),
        () => Ok(page),
    }
}

/// What to do after the server was asked, `pause` after the question before.
fn next(
    client: &LoginClient,
    answer: Result<Answer, NoAnswer>,
    interval: Duration,
    pause: Duration,
    valid: Duration,
) -> Next {
    let longer = (pause * 2).clamp(interval, LONGEST_PAUSE.max(interval));
    let answer = match answer {
        Ok(answer) => answer,
        Err(failed) => return Next::Pause(longer, failed.into_why()),
    };
    if answer.is_success() {
        return match answer.tokens() {
            Ok(tokens) => Next::Granted(tokens),
            Err(why) => Next::End(client.failed(why)),
        };
    }
    let login = || client.name().to_owned();
    match answer.word("error") {
        Some("authorization_pending") => Next::Ask(interval),
        Some("slow_down") => Next::Ask(interval + SLOWER),
        Some("access_denied") => Next::End(LoginError::Denied { login: login(), host: answer.host }),
        Some("expired_token") => Next::End(LoginError::Late { login: login(), after: valid }),
        _ if answer.is_final() => Next::End(refused(client, &answer, answer.words())),
        _ => Next::Pause(longer, format!("{} failed (status {}): {}", answer.host, answer.status, answer.words())),
    }
}

fn refused(client: &LoginClient, answer: &Answer, words: String) -> LoginError {
    let message = format!("{words} (status {})", answer.status);
    LoginError::Refused { login: client.name().to_owned(), host: answer.host.clone(), message }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
