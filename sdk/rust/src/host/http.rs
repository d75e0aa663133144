//! Requests to granted addresses. Needs the permission `http`.
//!
//! ```no_run
//! use hermes_plugin::{Error, http};
//!
//! # fn weather(place: &str) -> Result<String, Error> {
//! let response = http::Request::post("https://api.example.org/v1/weather")
//!     .bearer_secret("api_key")
//!     .json(&serde_json::json!({ "place": place }))?
//!     .timeout_ms(5_000)
//!     .send()?
//!     .ok()?;
//! let weather: serde_json::Value = response.json()?;
//! # Ok(weather["text"].as_str().unwrap_or_default().to_owned())
//! # }
//! ```
//!
//! The manifest requests the address and the secret. The host inserts the secret into a header, the query or the body; the
//! plugin never sees it:
//!
//! ```yaml
//! permissions:
//!   http: [{url: "https://api.example.org/v1/", methods: [POST]}]
//!   secrets: [{name: api_key, env: EXAMPLE_API_KEY, audience: "https://api.example.org/"}]
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::imports::http as wit;

/// Whether a secret is granted and has a value. If not, tell the user which one is missing.
pub fn has_secret(name: &str) -> bool {
    wit::has_secret(name)
}

/// Replaces the value of a secret that the manifest declares as `writable`, such as a token that the server has renewed.
///
/// ```no_run
/// use hermes_plugin::{Error, http};
///
/// # fn renew() -> Result<(), Error> {
/// let answer: serde_json::Value = http::Request::post("https://api.example.org/oauth/token")
///     .form([("grant_type", "refresh_token".into()), ("refresh_token", http::secret("refresh_token"))])
///     .send()?
///     .ok()?
///     .json()?;
/// http::replace_secret("access_token", answer["access_token"].as_str().unwrap_or_default())?;
/// # Ok(())
/// # }
/// ```
pub fn replace_secret(name: &str, value: &str) -> Result<(), Error> {
    wit::replace_secret(name, value)
}

pub use wit::Value;

/// A secret as the value of a header, a parameter or a field.
pub fn secret(name: impl Into<String>) -> Value {
    Value::Secret(wit::Secret { name: name.into(), prefix: String::new() })
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

/// A request, built step by step.
#[derive(Clone, Debug)]
#[must_use = "it is not sent before `send`"]
pub struct Request(wit::Request);

impl Request {
    /// A request with any method, in upper case.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let (method, url) = (method.into(), url.into());
        Self(wit::Request {
            method,
            url,
            query: Vec::new(),
            headers: Vec::new(),
            body: wit::Body::Bytes(Vec::new()),
            timeout_ms: None,
            extra: Vec::new(),
        })
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A `POST` request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// A `PUT` request.
    pub fn put(url: impl Into<String>) -> Self {
        Self::new("PUT", url)
    }

    /// A `PATCH` request.
    pub fn patch(url: impl Into<String>) -> Self {
        Self::new("PATCH", url)
    }

    /// A `DELETE` request.
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new("DELETE", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.headers.push(wit::Field { name: name.into(), value: Value::Plain(value.into()) });
        self
    }

    /// Adds a header whose value is a secret, with a prefix.
    pub fn secret_header(
        mut self,
        name: impl Into<String>,
        prefix: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let secret = wit::Secret { name: secret.into(), prefix: prefix.into() };
        self.0.headers.push(wit::Field { name: name.into(), value: Value::Secret(secret) });
        self
    }

    /// Adds `Authorization: Bearer` with a secret.
    pub fn bearer_secret(self, secret: impl Into<String>) -> Self {
        self.secret_header("authorization", "Bearer ", secret)
    }

    /// Adds a parameter to the query: a text, or a [`secret`]. The host encodes it.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.query.push(wit::Field { name: name.into(), value: value.into() });
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.0.body = wit::Body::Bytes(body.into());
        self
    }

    /// Sets the body to a form of texts and [`secret`]s. The host encodes it and sets its header.
    pub fn form<N: Into<String>>(mut self, fields: impl IntoIterator<Item = (N, Value)>) -> Self {
        let field = |(name, value): (N, Value)| wit::Field { name: name.into(), value };
        self.0.body = wit::Body::Form(fields.into_iter().map(field).collect());
        self
    }

    /// Sets the body to JSON in which the host puts secrets, each given by its place (a JSON Pointer such as `/auth/token`) and its
    /// name. The document must have a value at each place, such as an empty text.
    pub fn json_with_secrets(mut self, body: &impl Serialize, secrets: &[(&str, &str)]) -> Result<Self, Error> {
        let at = |(place, name): &(&str, &str)| {
            ((*place).to_owned(), wit::Secret { name: (*name).to_owned(), prefix: String::new() })
        };
        let text = serde_json::to_string(body)?;
        self.0.body = wit::Body::Json(wit::JsonBody { text, secrets: secrets.iter().map(at).collect() });
        Ok(self)
    }

    /// Sets the body and its header to JSON.
    pub fn json(self, body: &impl Serialize) -> Result<Self, Error> {
        Ok(self.header("content-type", "application/json").body(serde_json::to_vec(body)?))
    }

    /// Limits the total time, including the whole answer.
    pub fn timeout_ms(mut self, milliseconds: u32) -> Self {
        self.0.timeout_ms = Some(milliseconds);
        self
    }

    /// Sends the request and waits for the whole response. Any status is a response.
    pub fn send(&self) -> Result<Response, Error> {
        wit::send(&self.0).map(Response)
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response(wit::Response);

impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// The first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers, with lower-case names.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// The body as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.body).into_owned()
    }

    /// The body parsed as JSON. Invalid JSON is the server's failure, not the caller's.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.0.body)
            .map_err(|error| Error::failed(format!("the response of {} is not the expected JSON: {error}", self.0.url)))
    }

    /// The final URL, after redirects.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Returns the response if the status is 200 to 299, else an error: `unavailable` for 401 and 403, with the code `auth`, and
    /// for 408, 425, 429 and 5xx; `failed` for the rest. All have the server's retry time. The user can put a key right, so a
    /// memory's turn waits for it.
    pub fn ok(self) -> Result<Self, Error> {
        let status = self.0.status;
        if (200..300).contains(&status) {
            return Ok(self);
        }
        // What was asked may be private, and an error is shown and stored.
        let address = self.0.url.split(['?', '#']).next().unwrap_or_default();
        let message = format!("{address} answered {status}");
        let error = match status {
            401 | 403 => Error::unavailable(message).with_code("auth"),
            408 | 425 | 429 | 500.. => Error::unavailable(message).with_code(format!("status-{status}")),
            _ => Error::failed(message).with_code(format!("status-{status}")),
        };
        let seconds: Option<u32> = self.header("retry-after").and_then(|value| value.trim().parse().ok());
        Err(match seconds {
            Some(seconds) => error.with_retry_after(seconds.saturating_mul(1000)),
            None => error,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let url = "https://example.org/".to_owned();
        Response(wit::Response { status, headers, body: body.into(), url, extra: Vec::new() })
    }

    #[test]
    fn a_status_becomes_an_error_that_the_host_can_act_on() {
        assert_eq!(response(204, &[], "").ok().unwrap().status(), 204);
        for (status, kind) in [(404, ErrorKind::Failed), (304, ErrorKind::Failed), (503, ErrorKind::Unavailable)] {
            let error = response(status, &[], "").ok().unwrap_err();
            assert_eq!((error.kind, error.code), (kind, format!("status-{status}")));
        }
        for status in [401, 403] {
            let error = response(status, &[], "").ok().unwrap_err();
            assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Unavailable, "auth"));
        }
        let limited = response(429, &[("retry-after", "3")], "").ok().unwrap_err();
        assert_eq!((limited.kind, limited.retry_after_ms), (ErrorKind::Unavailable, Some(3000)));
    }

    #[test]
    fn an_invalid_json_body_is_the_servers_failure() {
        assert!(response(200, &[], "<html>").json::<serde_json::Value>().unwrap_err().is(ErrorKind::Failed));
        let response = response(200, &[("content-type", "text/plain")], "[1]");
        assert_eq!(response.json::<Vec<u8>>().unwrap(), [1]);
        assert_eq!((response.header("Content-Type"), response.header("date")), (Some("text/plain"), None));
    }

    #[test]
    fn a_secret_appears_in_a_request_only_by_name() {
        let request = Request::post("https://example.org/").bearer_secret("api_key").json(&[1]).unwrap().0;
        let Value::Secret(token) = &request.headers[0].value else { panic!("{request:?}") };
        assert_eq!((token.name.as_str(), token.prefix.as_str()), ("api_key", "Bearer "));
        assert_eq!((request.method.as_str(), request.headers.len()), ("POST", 2));
        assert_eq!(request.body, wit::Body::Bytes(b"[1]".to_vec()));
        let request = Request::get("https://example.org/").query("q", "a b").query("key", secret("api_key"));
        assert_eq!(request.0.query[1].value, secret("api_key"));
        let login = serde_json::json!({ "token": "" });
        let request =
            Request::post("https://example.org/").json_with_secrets(&login, &[("/token", "api_key")]).unwrap();
        let wit::Body::Json(body) = request.0.body else { panic!("a document") };
        assert_eq!((body.text.as_str(), body.secrets[0].0.as_str()), (r#"{"token":""}"#, "/token"));
    }
}
