//! Requests to a Honcho server.

use hermes_guest_backend::checked;
use hermes_plugin::{Error, clock, http};
use serde_json::Value;

/// The name of the secret in the manifest.
const KEY: &str = "api_key";

pub(crate) struct Client {
    base: String,
    timeout_ms: u32,
}

/// A request, before it is sent.
pub(crate) struct Call<'a> {
    client: &'a Client,
    attempt: &'a str,
    request: http::Request,
}

/// An answer with a status of success.
pub(crate) struct Answer {
    pub(crate) is_new: bool,
    pub(crate) body: Value,
}

impl Client {
    /// A client for a workspace. All names that become parts of addresses have passed `names::identity`.
    pub(crate) fn new(base_url: &str, timeout_ms: u32) -> Self {
        Self { base: format!("{}/v3", base_url.trim_end_matches('/')), timeout_ms }
    }

    /// `attempt` says in an error what failed.
    pub(crate) fn call<'a>(&'a self, attempt: &'a str, method: &str, path: &str) -> Call<'a> {
        let request = http::Request::new(method, format!("{}{path}", self.base)).timeout_ms(self.timeout_ms);
        // A server without keys ignores the header; without a value the host would refuse the request.
        let request = if http::has_secret(KEY) { request.bearer_secret(KEY) } else { request };
        Call { client: self, attempt, request }
    }
}

impl Call<'_> {
    pub(crate) fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.request = self.request.query(name, value.to_string());
        self
    }

    pub(crate) fn optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    pub(crate) fn within(mut self, milliseconds: u32) -> Self {
        self.request = self.request.timeout_ms(milliseconds);
        self
    }

    pub(crate) fn json(mut self, body: &Value) -> Result<Self, Error> {
        self.request = self.request.json(body)?;
        Ok(self)
    }

    /// Sends it. An answer without a body is null.
    pub(crate) fn send(self) -> Result<Answer, Error> {
        let answer = self.request.send().map_err(|error| error.context(self.attempt))?;
        let answer = checked(answer, self.attempt, clock::now()).map_err(|error| match error.code.as_str() {
            "auth" => Error { message: format!("{}; {}", error.message, self.client.about_the_key()), ..error },
            _ => error,
        })?;
        let is_new = answer.status() == 201;
        let body = match answer.body() {
            [] => Value::Null,
            // Something between here and the server answers in its place, such as a login page of a network.
            body => serde_json::from_slice(body).map_err(|_| {
                let why = format!("{}: the answer of {} is not JSON", self.attempt, answer.url());
                Error::unavailable(why).with_code("not-json")
            })?,
        };
        Ok(Answer { is_new, body })
    }
}

impl Client {
    fn about_the_key(&self) -> String {
        let known =
            if http::has_secret(KEY) { "HONCHO_API_KEY is not the right key" } else { "HONCHO_API_KEY is not set" };
        format!("{known} for {}", self.base)
    }
}
