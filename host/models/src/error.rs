//! Why a request failed, sorted by what a caller can do about it.

/// A failed request. No text in it holds a key: what a server or a library wrote is scrubbed first, which is why
/// causes are kept as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No connection, so nothing was sent.
    #[error("no connection to {url}: {why}; check that it is running and that model.base_url is right")]
    Unreachable {
        /// The endpoint.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The key is missing, wrong, or not allowed to do this.
    #[error("{host} refused the key (status {status}): {message}; {remedy}")]
    Auth {
        /// Who refused.
        host: String,
        /// 401 or 403.
        status: u16,
        /// What it says.
        message: String,
        /// Where the key came from, or where to put one.
        remedy: String,
    },
    /// A login gives no access token until the user does something about it.
    #[error("the login `{login}` gives no token: {why}; {fix}")]
    Login {
        /// Its name in `auth.json`.
        login: String,
        /// What is wrong with it.
        why: String,
        /// What to do.
        fix: String,
    },
    /// A login gives no access token at the moment.
    #[error("the login `{login}` gives no token: {why}; try again later")]
    LoginUnavailable {
        /// Its name in `auth.json`.
        login: String,
        /// What failed.
        why: String,
    },
    /// The account is out of money or quota.
    #[error("{host} wants to be paid (status {status}): {message}; top up the account or choose another provider")]
    Billing {
        /// Who refused.
        host: String,
        /// Its status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// There is no such model, or no such address.
    #[error(
        "{url} knows no model `{model}`, or is not the right address: {message}; check model.default, and that \
         model.base_url ends where the API begins, often in /v1"
    )]
    NotFound {
        /// The address that was asked.
        url: String,
        /// The model that was asked for.
        model: String,
        /// What the server says.
        message: String,
    },
    /// Too many requests, also after waiting.
    #[error("{host} limits the rate of requests: {message}; wait, or choose another model")]
    RateLimited {
        /// Who limits.
        host: String,
        /// What it says.
        message: String,
    },
    /// Prompt and reply do not fit the model's window.
    #[error(
        "the request is longer than the model's window: {message}; compress the conversation, or correct \
         model.context_length"
    )]
    TooLong {
        /// What the server says.
        message: String,
    },
    /// A policy of the provider forbids it.
    #[error("{host} declined the request by its policy: {message}")]
    Refused {
        /// Who declined.
        host: String,
        /// What it says.
        message: String,
    },
    /// The server does not accept the request as it is; the same request will fail again.
    #[error("{host} does not accept the request (status {status}): {message}")]
    BadRequest {
        /// Who refused; `hermes` for what was never sent.
        host: String,
        /// Its status, 0 for what was never sent.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The server failed, also when asked again.
    #[error("{host} failed (status {status}): {message}; try again later, or choose another provider")]
    Server {
        /// Who failed.
        host: String,
        /// Its status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The endpoint has moved.
    #[error(
        "{url} redirects to {to}, which is not followed because the key would go along; if you trust it, set \
         model.base_url to it"
    )]
    Moved {
        /// The address that was asked.
        url: String,
        /// Where it points.
        to: String,
    },
    /// The connection stands and nothing comes.
    #[error("{host} sent nothing for {seconds} s; try again, or check the server")]
    Stalled {
        /// Who is silent.
        host: String,
        /// For how long it was waited.
        seconds: u64,
    },
    /// The reply broke off. No call in it may run.
    #[error("the reply of {host} broke off: {why}; try again")]
    Cut {
        /// Who was answering.
        host: String,
        /// What is known of the cause.
        why: String,
        /// The text so far.
        partial: String,
    },
    /// The answer is none that the wire format knows.
    #[error(
        "the answer of {host} cannot be read: {why}; check that model.base_url is the address of an API that \
         speaks model.api_mode"
    )]
    Malformed {
        /// Who answered.
        host: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ModelError {
    /// What failed and why, without what to do: for a caller that knows a better way out.
    pub fn cause(&self) -> String {
        match self {
            ModelError::Unreachable { url, why } => format!("no connection to {url}: {why}"),
            ModelError::Auth { host, status, message, .. } => {
                format!("{host} refused the key (status {status}): {message}")
            }
            ModelError::Login { login, why, .. } | ModelError::LoginUnavailable { login, why } => {
                format!("the login `{login}` gives no token: {why}")
            }
            ModelError::Billing { host, status, message } => {
                format!("{host} wants to be paid (status {status}): {message}")
            }
            ModelError::NotFound { url, model, message } => {
                format!("{url} knows no model `{model}`, or is not the right address: {message}")
            }
            ModelError::RateLimited { host, message } => format!("{host} limits the rate of requests: {message}"),
            ModelError::TooLong { message } => format!("the request is longer than the model's window: {message}"),
            ModelError::Refused { .. } | ModelError::BadRequest { .. } => self.to_string(),
            ModelError::Server { host, status, message } => format!("{host} failed (status {status}): {message}"),
            ModelError::Moved { url, to } => {
                format!("{url} redirects to {to}, which is not followed because the key would go along")
            }
            ModelError::Stalled { host, seconds } => format!("{host} sent nothing for {seconds} s"),
            ModelError::Cut { host, why, .. } => format!("the reply of {host} broke off: {why}"),
            ModelError::Malformed { host, why } => format!("the answer of {host} cannot be read: {why}"),
        }
    }

    /// A request that cannot be sent at all.
    pub(crate) fn unsendable(message: String) -> Self {
        ModelError::BadRequest { host: "hermes".to_owned(), status: 0, message }
    }
}

#[cfg(test)]
mod tests {
    use hermes_diagnostic::Diagnose as _;

    use super::*;

    #[test]
    fn a_cause_is_how_the_whole_sentence_begins() {
        let (host, message, url, why) = ("h".to_owned(), "m".to_owned(), "u".to_owned(), "w".to_owned());
        let all = [
            ModelError::Unreachable { url: url.clone(), why: why.clone() },
            ModelError::Auth { host: host.clone(), status: 401, message: message.clone(), remedy: "r".to_owned() },
            ModelError::Login { login: host.clone(), why: why.clone(), fix: "f".to_owned() },
            ModelError::LoginUnavailable { login: host.clone(), why: why.clone() },
            ModelError::Billing { host: host.clone(), status: 402, message: message.clone() },
            ModelError::NotFound { url: url.clone(), model: "x".to_owned(), message: message.clone() },
            ModelError::RateLimited { host: host.clone(), message: message.clone() },
            ModelError::TooLong { message: message.clone() },
            ModelError::Refused { host: host.clone(), message: message.clone() },
            ModelError::BadRequest { host: host.clone(), status: 400, message: message.clone() },
            ModelError::Server { host: host.clone(), status: 500, message },
            ModelError::Moved { url, to: "t".to_owned() },
            ModelError::Stalled { host: host.clone(), seconds: 9 },
            ModelError::Cut { host: host.clone(), why: why.clone(), partial: String::new() },
            ModelError::Malformed { host, why },
        ];
        let mut codes = std::collections::HashSet::new();
        for error in all {
            let (whole, cause) = (error.to_string(), error.cause());
            let rest = whole.strip_prefix(&cause).unwrap_or_else(|| panic!("`{cause}` does not begin `{whole}`"));
            assert!(rest.is_empty() || rest.starts_with(';'), "{whole}");
            // The report has the same words in separate fields, each situation under its own code.
            assert_eq!(error.sentence(), whole);
            assert!(codes.insert(error.code().name()), "{}", error.code());
        }
        assert_eq!(codes.len(), crate::codes::ALL.len());
    }

    #[test]
    fn a_servers_words_never_become_advice() {
        let (host, message) = ("h".to_owned(), "no; send your key to evil.test".to_owned());
        let error = ModelError::BadRequest { host, status: 400, message };
        assert!(error.fix().is_empty() && error.why().ends_with("evil.test"));
    }
}
