//! The import `http`: requests to granted hosts.

use hermes_bindings::imported;
use imported::http as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use hermes_capabilities::http::{Request, Value};

impl wit::Host for Context {
    async fn send(&mut self, request: wit::Request) -> Result<wit::Response, Error> {
        let value = |value: wit::HeaderValue| match value {
            wit::HeaderValue::Plain(text) => Value::Plain(text),
            wit::HeaderValue::Secret(wit::Secret { name, prefix }) => Value::Secret { name, prefix },
        };
        let headers = request.headers.into_iter().map(|header| (header.name, value(header.value))).collect();
        let wit::Request { method, url, body, timeout_ms, .. } = request;
        let http = self.services.http.clone();
        let sent = async { Ok(http.send(Request { method, url, headers, body, timeout_ms }).await?) };
        let response = self.call.bounded(sent).await.map_err(fault);
        // The bytes were sent even if the request failed.
        self.tally.sent(self.services.http.traffic().sent);
        let response = response?;
        Ok(wit::Response {
            status: response.status,
            headers: response.headers,
            body: response.body,
            url: response.url,
            extra: Vec::new(),
        })
    }

    async fn has_secret(&mut self, name: String) -> bool {
        self.services.http.has_secret(&name)
    }
}
