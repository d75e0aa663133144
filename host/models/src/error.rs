//! Why a request failed, sorted by what a caller can do about it. `Display` gives the cause; `diagnosis.rs` has the remedies.

use std::time::Duration;

use hermes_diagnostic::Fix;

use crate::failure::class;

/// A failed request. Its texts contain no key: messages of servers and libraries are scrubbed first, so causes are kept as
/// text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No connection, so nothing was sent.
    #[error("no connection to {url}: {why}")]
    Unreachable {
        /// The endpoint.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The name in the address could not be looked up, so nothing was sent.
    #[error("no connection to {url}: the name of the server was not found ({why})")]
    UnknownHost {
        /// The endpoint.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The key is missing, wrong, or not allowed to do this.
    #[error(
        "{host} {} (status {status}): {message}",
        if *status == 403 { "does not allow this key to do this" } else { "refused the key" }
    )]
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
    /// A login gives no access token until the user fixes it.
    #[error("login `{login}`: {why}")]
    Login {
        /// Its name in `auth.json`.
        login: String,
        /// What is wrong with it.
        why: String,
        /// What to do.
        fix: Fix,
    },
    /// A login gives no access token at the moment.
    #[error("login `{login}`: {why}")]
    LoginUnavailable {
        /// Its name in `auth.json`.
        login: String,
        /// What failed.
        why: String,
        /// What to do.
        fix: Fix,
    },
    /// The account is out of money or quota.
    #[error("the account at {host} has no credit or quota left (status {status}): {message}")]
    Billing {
        /// Who refused.
        host: String,
        /// Its status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// There is no such model, or no such address.
    #[error("{url} has no model `{model}`, or is not the right address: {message}")]
    NotFound {
        /// The address that was asked.
        url: String,
        /// The model that was asked for.
        model: String,
        /// What the server says.
        message: String,
    },
    /// Too many requests, also after waiting.
    #[error("{host} limits the rate of requests: {message}")]
    RateLimited {
        /// Who limits.
        host: String,
        /// What it says.
        message: String,
        /// How long the server asks to wait, if it says so.
        wait: Option<Duration>,
    },
    /// Prompt and reply do not fit the model's window.
    #[error("the request is longer than the model's window: {message}")]
    TooLong {
        /// What the server says.
        message: String,
        /// The window in tokens, if the server names it.
        limit: Option<u32>,
    },
    /// A policy of the provider forbids it.
    #[error("{host} declined the request by its policy: {message}")]
    Refused {
        /// Who declined.
        host: String,
        /// What it says.
        message: String,
    },
    /// The provider does not serve this country or region.
    #[error("{host} does not serve this country or region: {message}")]
    Region {
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
    #[error("{host} failed (status {status}): {message}")]
    Server {
        /// Who failed.
        host: String,
        /// Its status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The endpoint has moved.
    #[error("{url} redirects to {to}; Hermes does not follow it, because it would send your key there")]
    Moved {
        /// The address that was asked.
        url: String,
        /// Where it points.
        to: String,
    },
    /// The connection is open, and no bytes arrive.
    #[error("{host} sent nothing for {seconds} s")]
    Stalled {
        /// Who is silent.
        host: String,
        /// How long we waited.
        seconds: u64,
    },
    /// A request with a limit of its own has no whole answer in time.
    #[error("{host} gave no whole answer within {seconds} s")]
    Late {
        /// Who did not answer.
        host: String,
        /// The limit.
        seconds: u64,
    },
    /// The reply broke off. No call in it may run.
    #[error("the reply of {host} broke off: {why}")]
    Cut {
        /// Who was answering.
        host: String,
        /// What is known of the cause.
        why: String,
        /// The text so far.
        partial: String,
    },
    /// The reply has more tool calls than a turn can run. None of them runs.
    #[error("the reply of {host} has more than {most} tool calls; none of them was run")]
    TooManyCalls {
        /// Who answered.
        host: String,
        /// The limit.
        most: usize,
    },
    /// The answer is not valid in the wire format.
    #[error("the answer of {host} cannot be read: {why}")]
    Malformed {
        /// Who answered.
        host: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ModelError {
    /// Whether another model may answer the same conversation: the key, the account, the address or the server failed. A failure
    /// that the request itself causes would occur with any model.
    pub fn is_of_place(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::UnknownHost { .. }
            | Self::Auth { .. }
            | Self::Login { .. }
            | Self::LoginUnavailable { .. }
            | Self::Billing { .. }
            | Self::NotFound { .. }
            | Self::RateLimited { .. }
            | Self::Region { .. }
            | Self::Server { .. }
            | Self::Moved { .. }
            | Self::Stalled { .. }
            | Self::Late { .. }
            | Self::Cut { .. }
            | Self::Malformed { .. } => true,
            Self::TooLong { .. } | Self::Refused { .. } | Self::BadRequest { .. } | Self::TooManyCalls { .. } => false,
        }
    }

    /// Whether this may be a refusal of a request that is too long, in words that are not known: of a request of about `sent` tokens
    /// that fills most of the window, or with a number near either.
    pub fn may_be_size(&self, sent: u32, window: u32) -> bool {
        let Self::BadRequest { status: 400 | 413 | 422, message, .. } = self else { return false };
        class::may_be_size(message, sent, window)
    }

    /// Whether the provider read the request, and charges for it although the reply is not whole.
    pub fn is_charged(&self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Stalled { .. } | Self::TooManyCalls { .. })
    }

    /// Whether the same request may succeed later, without a change of key, account or settings.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::UnknownHost { .. }
                | Self::LoginUnavailable { .. }
                | Self::RateLimited { .. }
                | Self::Server { .. }
                | Self::Stalled { .. }
                | Self::Late { .. }
                | Self::Cut { .. }
        )
    }

    /// A request that cannot be sent at all.
    pub(crate) fn unsendable(message: String) -> Self {
        ModelError::BadRequest { host: "hermes".to_owned(), status: 0, message }
    }
}
