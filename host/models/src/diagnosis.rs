//! The code and the remedy of each failure of a model, and of its choice.

use hermes_diagnostic::{Action, Diagnose, Fix, Parts};

use crate::providers::unsupported;
use crate::route::{AuxiliaryError, LEAST_AUXILIARY_WINDOW, OFFLINE, ResolveError, Source};
use crate::window::LEAST_WINDOW;
use crate::{ApiMode, LoginError, LoginSettings, ModelError, ProviderRow, UnknownTtl};

hermes_diagnostic::codes! {
    /// The codes of models.
    pub mod codes {
        UNREACHABLE = "model.unreachable", Category::Model, "no connection to the model's endpoint";
        AUTH = "model.auth", Category::Model, "the provider refuses the key";
        LOGIN = "model.login", Category::Model, "a login gives no access token until the user acts";
        LOGIN_UNAVAILABLE = "model.login-unavailable", Category::Model, "a login gives no access token at the moment";
        BILLING = "model.billing", Category::Model, "the account has no money or quota left";
        NOT_FOUND = "model.not-found", Category::Model, "the model or the address does not exist";
        RATE_LIMITED = "model.rate-limited", Category::Model, "the provider limits the rate of requests";
        TOO_LONG = "model.too-long", Category::Model, "the request does not fit the model's window";
        REFUSED = "model.refused", Category::Model, "a policy of the provider forbids the request";
        REGION = "model.region", Category::Model, "the provider does not serve this country or region";
        BAD_REQUEST = "model.bad-request", Category::Model, "the provider does not accept the request";
        SERVER = "model.server", Category::Model, "the provider failed";
        MOVED = "model.moved", Category::Model, "the endpoint redirects to another address";
        STALLED = "model.stalled", Category::Model, "the provider stopped sending";
        CUT = "model.cut", Category::Model, "the reply broke off";
        MALFORMED = "model.malformed", Category::Model, "the reply cannot be read";
        TOO_MANY_CALLS = "model.too-many-calls", Category::Model, "the reply has more tool calls than a turn can run";
        LOGIN_UNKNOWN = "login.unknown", Category::Configuration, "nothing says how to log in";
        LOGIN_SETTINGS = "login.settings", Category::Configuration, "a section below `logins` cannot be used";
        LOGIN_DENIED = "login.denied", Category::Model, "the user or a policy declined the login";
        LOGIN_LATE = "login.late", Category::Model, "nobody approved the login in time";
        LOGIN_REFUSED = "login.refused", Category::Model, "the server does not accept the login";
        LOGIN_SERVER = "login.server", Category::Model, "the server of a login does not answer as it should";
        LOGIN_ABSENT = "login.absent", Category::General, "there is no login of that name";
        LOGIN_NOT_REVOKED = "login.not-revoked", Category::Model, "the server did not revoke the tokens of a login";
        LOGIN_FILE = "login.file", Category::Configuration, "`auth.json` cannot be used";
        CHOICE = "model.choice", Category::Configuration, "the model settings cannot be used";
        AUXILIARY = "model.auxiliary", Category::Configuration, "a section below `auxiliary` cannot be used";
        CACHE_TTL = "model.cache-ttl", Category::Configuration, "a cache lifetime that no provider offers";
    }
}

impl Diagnose for ModelError {
    fn parts(&self) -> Parts {
        let (code, fix) = match self {
            Self::Unreachable { .. } => {
                (codes::UNREACHABLE, Fix::words("check that the server is running and that model.base_url is right"))
            }
            Self::UnknownHost { .. } => (
                codes::UNREACHABLE,
                Fix::words("check that the address is right (model.base_url) and that the network works"),
            ),
            // The provider knows the key, so checking its spelling would not help.
            Self::Auth { status: 403, .. } => {
                (codes::AUTH, Fix::words("use another key").or(Action::ChooseAnotherModel))
            }
            Self::Auth { remedy, .. } => (codes::AUTH, Fix::words(remedy.clone())),
            Self::Login { fix, .. } => (codes::LOGIN, fix.clone()),
            Self::LoginUnavailable { fix, .. } => (codes::LOGIN_UNAVAILABLE, fix.clone()),
            Self::Billing { .. } => {
                (codes::BILLING, Fix::words("top up the account").or(Action::ChooseAnotherProvider))
            }
            Self::NotFound { .. } => (
                codes::NOT_FOUND,
                Fix::words("check model.default, and that model.base_url ends where the API begins, often in /v1"),
            ),
            Self::RateLimited { .. } => (codes::RATE_LIMITED, Fix::words("wait").or(Action::ChooseAnotherModel)),
            Self::TooLong { .. } => {
                (codes::TOO_LONG, Fix::words("compress the conversation").or("correct model.context_length"))
            }
            Self::Refused { .. } => (codes::REFUSED, Fix::words("change the request").or(Action::ChooseAnotherModel)),
            Self::Region { .. } => (codes::REGION, Fix::from(Action::ChooseAnotherProvider)),
            // Nothing was sent, so no provider names a setting.
            Self::BadRequest { status: 0, .. } => {
                (codes::BAD_REQUEST, Fix::words("try again").or(Action::ChooseAnotherModel))
            }
            Self::BadRequest { .. } => (
                codes::BAD_REQUEST,
                Fix::words("correct the setting that the provider names").or(Action::ChooseAnotherModel),
            ),
            Self::Server { .. } => (codes::SERVER, Fix::words("try again later").or(Action::ChooseAnotherProvider)),
            Self::Moved { .. } => (
                codes::MOVED,
                Fix::words(
                    "if you trust it, set model.base_url to the new address without /chat/completions or /messages",
                ),
            ),
            Self::Stalled { .. } => (
                codes::STALLED,
                Fix::words("try again").or("check the server").or("allow a longer silence with model.silence_timeout"),
            ),
            // The limit of such a request is not a setting.
            Self::Late { .. } => {
                (codes::STALLED, Fix::words("try again: a model may have to be loaded first").or("check the server"))
            }
            Self::Cut { .. } => (codes::CUT, Fix::words("try again")),
            Self::TooManyCalls { .. } => {
                (codes::TOO_MANY_CALLS, Fix::words("ask for the work in smaller steps").or(Action::ChooseAnotherModel))
            }
            Self::Malformed { .. } => (
                codes::MALFORMED,
                Fix::words(
                    "check that model.base_url is the address of the API, often ending in /v1, and that model.api_mode is \
                     right",
                ),
            ),
        };
        let what = match self {
            Self::Login { .. } | Self::LoginUnavailable { .. } => "the login for the model failed",
            _ => "the model did not answer",
        };
        (code, what.into(), fix)
    }
}

fn is_built_in(login: &str) -> bool {
    LoginSettings::built_in_names().any(|name| name == login)
}

impl Diagnose for LoginError {
    fn parts(&self) -> Parts {
        let again = |login: &String| Fix::from(Action::LogIn { login: login.clone() });
        let (code, fix) = match self {
            Self::Unknown { login, known } => {
                let add = format!("add the section `logins.{login}` to config.yaml");
                let fix = match known.is_empty() {
                    true => Fix::words(add),
                    false => Fix::words(format!("choose one of {}", known.join(", "))).or(add),
                };
                (codes::LOGIN_UNKNOWN, fix)
            }
            Self::Incomplete { login, key } => {
                (codes::LOGIN_SETTINGS, Fix::words(format!("set `logins.{login}.{key}` in config.yaml")))
            }
            Self::Setting { .. } => (codes::LOGIN_SETTINGS, Fix::from(Action::CorrectSetting)),
            Self::Denied { login, .. } => (codes::LOGIN_DENIED, again(login)),
            Self::Late { login, .. } => (codes::LOGIN_LATE, again(login)),
            // No setting is wrong: the code was used, or is too old.
            Self::Refused { login, .. } if is_built_in(login) => (codes::LOGIN_REFUSED, again(login)),
            Self::Refused { login, .. } => {
                (codes::LOGIN_REFUSED, Fix::words(format!("correct the section `logins.{login}` of config.yaml")))
            }
            Self::Server { login, .. } if is_built_in(login) => (
                codes::LOGIN_SERVER,
                Fix::words("try again later").or("use a key that you create on the provider's site"),
            ),
            Self::Server { login, .. } => {
                let check = format!("check the addresses in `logins.{login}`");
                (codes::LOGIN_SERVER, Fix::words("try again later").or(check))
            }
            Self::Absent { .. } => (codes::LOGIN_ABSENT, Action::ListLogins.into()),
            Self::NotRevoked { login, .. } => {
                let remove = Action::RemoveLogin { login: login.clone() };
                (codes::LOGIN_NOT_REVOKED, Fix::words("try again later").or(remove))
            }
            Self::File { fix, .. } => (codes::LOGIN_FILE, Fix::words(fix.clone())),
        };
        let what = match self {
            Self::Absent { .. } | Self::NotRevoked { .. } => "the logout failed",
            _ => "the login failed",
        };
        (code, what.into(), fix)
    }
}

impl Diagnose for ResolveError {
    fn parts(&self) -> Parts {
        let provider = || Fix::from(Action::ChooseProvider);
        let fix = match self {
            Self::UnknownProvider { given, .. } if let Some(row) = unsupported(given) => Fix::words(row.instead),
            Self::UnknownProvider { .. } => {
                Fix::words(format!("choose one of {}", providers())).or("set model.base_url")
            }
            Self::MissingKey { variables, .. } => set_variable(variables),
            Self::SeveralKeys { .. } | Self::KeyWithoutPlace { .. } => provider(),
            Self::NoModel { .. } => Action::ChooseModel.into(),
            Self::NoPlace { .. } => provider().or("set model.base_url"),
            Self::KeyAndLogin { .. } => Fix::words("remove one of them"),
            Self::NoAddress => Action::ChooseAddress.into(),
            Self::NoAddressOf { example, .. } => Fix::words(format!("set model.base_url, such as {example}")),
            Self::OfflineElsewhere { layer } => {
                let remove = match layer {
                    Source::Flags => "remove --base-url",
                    Source::Environment => "unset HERMES_BASE_URL",
                    _ => "remove model.base_url",
                };
                Fix::words(remove).or("choose another provider")
            }
            Self::BadAddress { flaw, .. } => Fix::words(flaw.fix("model.api_key")),
            Self::BadKey { .. } => Fix::words(COPY_AGAIN),
            Self::ApiMode { .. } => Fix::words(format!("choose {}", ApiMode::names())),
            Self::SmallWindow { .. } => Fix::words(format!("give at least {LEAST_WINDOW}")),
        };
        let what = match self {
            Self::MissingKey { .. }
            | Self::SeveralKeys { .. }
            | Self::NoModel { .. }
            | Self::NoPlace { .. }
            | Self::KeyWithoutPlace { .. } => "no model can be chosen",
            _ => "the model settings cannot be used",
        };
        (codes::CHOICE, what.into(), fix)
    }
}

impl Diagnose for AuxiliaryError {
    fn parts(&self) -> Parts {
        let fix = match self {
            Self::KeyAndLogin { .. } => Fix::words("remove one of them"),
            Self::UnknownProvider { given, .. } if let Some(row) = unsupported(given) => Fix::words(row.instead),
            Self::UnknownProvider { section, .. } => {
                Fix::words(format!("choose one of {}", places())).or(format!("set `{section}.base_url`"))
            }
            Self::NoAddress { section } => Fix::words(format!("set `{section}.base_url` to an http or https address")),
            Self::NoAddressOf { section, example, .. } => {
                Fix::words(format!("set `{section}.base_url`, such as {example}"))
            }
            Self::BadAddress { section, flaw } => Fix::words(flaw.fix(&format!("{section}.api_key"))),
            Self::ApiMode { .. } => Fix::words(format!("choose {}", ApiMode::names())),
            Self::NoModel { section, .. } => Fix::words(format!("set `{section}.model`")),
            Self::SmallWindow { .. } => {
                Fix::words(format!("give at least {LEAST_AUXILIARY_WINDOW}")).or("choose another model")
            }
            Self::BadKey { .. } => Fix::words(COPY_AGAIN),
            Self::MissingKey { variables, .. } => set_variable(variables),
            Self::NoEmbeddingModel { section } => Fix::words(format!("set `{section}.model`")),
            Self::NoEmbeddings { section, .. } | Self::NoPlace { section } => {
                Fix::words(format!("set `{section}.provider`"))
            }
        };
        (codes::AUXILIARY, "a section below `auxiliary` cannot be used".into(), fix)
    }
}

impl Diagnose for UnknownTtl {
    fn parts(&self) -> Parts {
        (codes::CACHE_TTL, "the prompt cache cannot be used".into(), Fix::words("choose `auto`, `5m` or `1h`"))
    }
}

/// What to do about a key that cannot be sent.
const COPY_AGAIN: &str = "copy the key again, without spaces";

/// What to do about a missing key.
fn set_variable(variables: &[&str]) -> Fix {
    Fix::words(format!("set {} in the environment or in .env beside config.yaml", variables.join(" or ")))
}

/// The providers that can be named, in a sentence.
fn providers() -> String {
    let known: Vec<&str> = ProviderRow::with_address().map(|row| row.id).chain([OFFLINE]).collect();
    known.join(", ")
}

/// What a section below `auxiliary` can name.
fn places() -> String {
    let known: Vec<&str> = ProviderRow::with_address().map(|row| row.id).chain(["main", "auto"]).collect();
    known.join(", ")
}

#[cfg(test)]
mod tests {
    use hermes_diagnostic::Diagnostic;

    use super::*;
    use crate::AddressFlaw;

    fn model_errors() -> Vec<ModelError> {
        let text = || "refused".to_owned();
        let host = || "h".to_owned();
        let status = 400;
        vec![
            ModelError::Unreachable { url: host(), why: text() },
            ModelError::UnknownHost { url: host(), why: text() },
            ModelError::Auth { host: host(), status, message: text(), remedy: "check the key".into() },
            ModelError::Login { login: "work".into(), why: text(), fix: Action::Diagnose.into() },
            ModelError::LoginUnavailable { login: "work".into(), why: text(), fix: Fix::words("try again later") },
            ModelError::Billing { host: host(), status, message: text() },
            ModelError::NotFound { url: host(), model: "m".into(), message: text() },
            ModelError::RateLimited { host: host(), message: text(), wait: None },
            ModelError::TooLong { message: text(), limit: None },
            ModelError::Refused { host: host(), message: text() },
            ModelError::Region { host: host(), message: text() },
            ModelError::BadRequest { host: host(), status, message: text() },
            ModelError::Server { host: host(), status, message: text() },
            ModelError::Moved { url: host(), to: "there".into() },
            ModelError::Stalled { host: host(), seconds: 1 },
            ModelError::Late { host: host(), seconds: 1 },
            ModelError::Cut { host: host(), why: text(), partial: String::new() },
            ModelError::Malformed { host: host(), why: text() },
            ModelError::TooManyCalls { host: host(), most: 256 },
        ]
    }

    fn login_errors() -> Vec<LoginError> {
        let login = || "work".to_owned();
        let text = || "x".to_owned();
        vec![
            LoginError::Unknown { login: login(), known: Vec::new() },
            LoginError::Incomplete { login: login(), key: "client_id" },
            LoginError::Setting { login: login(), key: "token_url", flaw: "is not a URL".to_owned() },
            LoginError::Denied { login: login(), host: text() },
            LoginError::Late { login: login(), after: std::time::Duration::from_secs(900) },
            LoginError::Refused { login: login(), host: text(), message: text() },
            LoginError::Server { login: login(), why: text() },
            LoginError::Absent { login: login() },
            LoginError::NotRevoked { login: login(), why: text() },
            LoginError::File { why: text(), fix: text() },
        ]
    }

    fn resolve_errors() -> Vec<ResolveError> {
        let layer = || Source::Config;
        let text = || "x".to_owned();
        vec![
            ResolveError::UnknownProvider { given: text(), layer: layer() },
            ResolveError::MissingKey { provider: text(), variables: &["KEY"], unsent: String::new() },
            ResolveError::SeveralKeys { variables: vec!["KEY"] },
            ResolveError::NoModel { place: text() },
            ResolveError::NoPlace { model: text(), layer: layer() },
            ResolveError::KeyAndLogin { layer: layer() },
            ResolveError::KeyWithoutPlace { place: text() },
            ResolveError::NoAddress,
            ResolveError::NoAddressOf { provider: text(), example: "https://x" },
            ResolveError::UnknownProvider { given: "openai-codex".to_owned(), layer: layer() },
            ResolveError::OfflineElsewhere { layer: layer() },
            ResolveError::BadAddress { layer: layer(), flaw: AddressFlaw::NotAUrl },
            ResolveError::BadKey { place: text() },
            ResolveError::ApiMode { given: text(), known: true },
            ResolveError::SmallWindow { given: 1 },
        ]
    }

    fn auxiliary_errors() -> Vec<AuxiliaryError> {
        let section = || "auxiliary.x".to_owned();
        let text = || "x".to_owned();
        vec![
            AuxiliaryError::UnknownProvider { section: section(), given: text() },
            AuxiliaryError::NoAddress { section: section() },
            AuxiliaryError::NoAddressOf { section: section(), provider: text(), example: "https://x" },
            AuxiliaryError::BadAddress { section: section(), flaw: AddressFlaw::NotAUrl },
            AuxiliaryError::ApiMode { section: section(), given: text(), known: false },
            AuxiliaryError::NoModel { section: section(), place: text() },
            AuxiliaryError::SmallWindow { section: section(), given: 1 },
            AuxiliaryError::KeyAndLogin { section: section() },
            AuxiliaryError::BadKey { place: text() },
            AuxiliaryError::MissingKey { section: section(), provider: text(), variables: &["KEY"] },
            AuxiliaryError::NoEmbeddingModel { section: section() },
            AuxiliaryError::NoEmbeddings { section: section(), provider: text() },
            AuxiliaryError::NoPlace { section: section() },
        ]
    }

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let mut diagnostics: Vec<Diagnostic> = model_errors().iter().map(Diagnose::diagnose).collect();
        diagnostics.extend(login_errors().iter().map(Diagnose::diagnose));
        diagnostics.extend(resolve_errors().iter().map(Diagnose::diagnose));
        diagnostics.extend(auxiliary_errors().iter().map(Diagnose::diagnose));
        diagnostics.push(UnknownTtl { given: "2h".to_owned() }.diagnose());
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &diagnostics), Vec::<String>::new());
    }
}
