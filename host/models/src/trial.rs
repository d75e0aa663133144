//! One small request, to learn whether a model answers.

use std::time::{Duration, Instant};

use hermes_conversation::{Role, Shown, Usage};

use crate::{Breakpoints, Logins, ModelError, Persistence, Prefix, Request, Route, System, connect, providers};

/// Words that every model can answer shortly.
const QUESTION: &str = "Reply with the word OK.";
/// How long the model may take. A model on this machine may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(60);
/// The cap on the reply: room for a short thought before the word.
const MOST_TOKENS: u32 = 256;

/// The answer to the one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The text. It may be empty if the model only thought.
    pub text: String,
    /// Whether the answer ended at the limit of its output, which is small. Models that think may reach it.
    pub is_cut: bool,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The tokens, if the provider reports them.
    pub usage: Option<Usage>,
    /// From the request to the whole answer.
    pub took: Duration,
}

/// Sends one small request to the model of a route, without a second try.
///
/// # Errors
///
/// Every [`ModelError`]; [`ModelError::Late`] if there is no whole answer within a minute.
pub async fn try_route(route: &Route, logins: &Logins) -> Result<Trial, ModelError> {
    try_within(PATIENCE, route, logins).await
}

async fn try_within(patience: Duration, route: &Route, logins: &Logins) -> Result<Trial, ModelError> {
    let provider = connect(route, logins)?;
    let style = provider.style();
    let prefix = Prefix::new(style, "[]", System::plain("You answer in one word."));
    let mut prefix = prefix.map_err(|error| ModelError::unsendable(error.to_string()))?;
    prefix.push(&style.render(&Shown::words(Role::User, QUESTION)));
    let request = Request {
        model: &route.model.name,
        prefix: &prefix,
        breakpoints: Breakpoints::default(),
        max_tokens: Some(MOST_TOKENS),
        temperature: None,
        schema: None,
        tool_choice: crate::ToolChoice::default(),
        effort: None,
    };
    let begun = Instant::now();
    let mut unseen = |_: crate::Delta<'_>| {};
    let answered =
        tokio::time::timeout(patience, provider.complete_with(Persistence::Once, &request, &mut unseen)).await;
    let reply = answered.map_err(|_| ModelError::Late {
        host: route.base_url.as_ref().and_then(providers::host).unwrap_or_default(),
        seconds: patience.as_secs(),
    })??;
    let is_cut = reply.finish == crate::Finish::Length;
    Ok(Trial { text: reply.text, is_cut, model: reply.model, usage: reply.usage, took: begun.elapsed() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_diagnostic::Diagnose as _;

    use super::*;

    #[tokio::test]
    async fn a_silent_server_names_the_limit_and_no_setting_that_does_not_count() {
        // Connections are accepted by the system, and nobody answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut route = Route::offline();
        route.base_url = Some(format!("http://{}/v1", silent.local_addr().unwrap()).parse().unwrap());
        route.model.provider = "custom".to_owned();
        assert!(!route.is_offline());
        let logins = Logins::new(
            "/nonexistent/auth.json".into(),
            hermes_private_files::FileDocuments::below("/nonexistent".as_ref()),
        );
        let error = try_within(Duration::from_secs(1), &route, &logins).await.unwrap_err();
        assert!(error.to_string().ends_with("gave no whole answer within 1 s"), "{error}");
        let said = error.diagnose().to_string();
        assert!(said.contains("try again") && !said.contains("silence_timeout"), "{said}");
    }
}
