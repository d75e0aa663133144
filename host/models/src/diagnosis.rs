//! Failed requests as reports: a stable code, what failed, why, and what to do, each as a field of its own. Nothing is read
//! back out of a sentence, so that a server's words never become advice.

use hermes_diagnostic::{Code, Diagnose, Fix};

use crate::ModelError;

hermes_diagnostic::codes! {
    /// The codes of failed requests to models.
    pub mod codes {
        UNREACHABLE = "model.unreachable", Category::Model, "no connection to the model's endpoint";
        AUTH = "model.auth", Category::Model, "the endpoint refused the key or token";
        LOGIN = "model.login", Category::Model, "a login gives no access token until it is renewed";
        LOGIN_UNAVAILABLE = "model.login-unavailable", Category::Model, "a login gives no access token at the moment";
        BILLING = "model.billing", Category::Model, "the account has no money or quota left";
        NOT_FOUND = "model.not-found", Category::Model, "the endpoint does not know the model";
        RATE_LIMITED = "model.rate-limited", Category::Model, "the endpoint limits the rate of requests";
        TOO_LONG = "model.too-long", Category::Model, "the request does not fit the model's window";
        REFUSED = "model.refused", Category::Model, "a policy of the provider forbids the request";
        BAD_REQUEST = "model.bad-request", Category::Model, "the endpoint does not accept the request";
        SERVER = "model.server", Category::Model, "the endpoint failed";
        MOVED = "model.moved", Category::Model, "the endpoint redirects to another address";
        STALLED = "model.stalled", Category::Model, "the endpoint stopped sending";
        CUT = "model.cut", Category::Model, "the reply ended before it was complete";
        MALFORMED = "model.malformed", Category::Model, "the answer is not in the expected wire format";
    }
}

impl Diagnose for ModelError {
    fn code(&self) -> Code {
        match self {
            ModelError::Unreachable { .. } => codes::UNREACHABLE,
            ModelError::Auth { .. } => codes::AUTH,
            ModelError::Login { .. } => codes::LOGIN,
            ModelError::LoginUnavailable { .. } => codes::LOGIN_UNAVAILABLE,
            ModelError::Billing { .. } => codes::BILLING,
            ModelError::NotFound { .. } => codes::NOT_FOUND,
            ModelError::RateLimited { .. } => codes::RATE_LIMITED,
            ModelError::TooLong { .. } => codes::TOO_LONG,
            ModelError::Refused { .. } => codes::REFUSED,
            ModelError::BadRequest { .. } => codes::BAD_REQUEST,
            ModelError::Server { .. } => codes::SERVER,
            ModelError::Moved { .. } => codes::MOVED,
            ModelError::Stalled { .. } => codes::STALLED,
            ModelError::Cut { .. } => codes::CUT,
            ModelError::Malformed { .. } => codes::MALFORMED,
        }
    }

    fn what(&self) -> String {
        "the model did not answer".to_owned()
    }

    fn why(&self) -> String {
        self.cause()
    }

    fn fix(&self) -> Fix {
        Fix::words(match self {
            ModelError::Unreachable { .. } => "check that it is running and that model.base_url is right",
            ModelError::Auth { remedy, .. } => remedy.as_str(),
            ModelError::Login { fix, .. } => fix.as_str(),
            ModelError::LoginUnavailable { .. } => "try again later",
            ModelError::Billing { .. } => "top up the account or choose another provider",
            ModelError::NotFound { .. } => {
                "check model.default, and that model.base_url ends where the API begins, often in /v1"
            }
            ModelError::RateLimited { .. } => "wait, or choose another model",
            ModelError::TooLong { .. } => "compress the conversation, or correct model.context_length",
            ModelError::Refused { .. } | ModelError::BadRequest { .. } => return Fix::none(),
            ModelError::Server { .. } => "try again later, or choose another provider",
            ModelError::Moved { .. } => "if you trust it, set model.base_url to it",
            ModelError::Stalled { .. } => "try again, or check the server",
            ModelError::Cut { .. } => "try again",
            ModelError::Malformed { .. } => {
                "check that model.base_url is the address of an API that speaks model.api_mode"
            }
        })
    }
}
