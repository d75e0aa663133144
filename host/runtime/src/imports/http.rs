//! The import `http`: requests to granted hosts.

use hermes_bindings::imported;
use imported::http as wit;
use imported::types::Error;

use crate::context::Context;
use crate::convert::fault;
use hermes_capabilities::http::{Body, Request, Value};

impl wit::Host for Context {
    async fn send(&mut self, request: wit::Request) -> Result<wit::Response, Error> {
        let wit::Request { method, url, query, headers, body, timeout_ms, .. } = request;
        let body = match body {
            wit::Body::Bytes(bytes) => Body::Bytes(bytes),
            wit::Body::Form(form) => Body::Form(fields(form)),
            wit::Body::Json(wit::JsonBody { text, secrets }) => {
                Body::Json { text, secrets: secrets.into_iter().map(|(place, of)| (place, secret(of))).collect() }
            }
        };
        let request = Request { method, url, query: fields(query), headers: fields(headers), body, timeout_ms };
        let http = self.services.http.clone();
        let sent = async { Ok(http.send(request).await?) };
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
        self.services.http.has_secret(&name).await
    }

    async fn replace_secret(&mut self, name: String, value: String) -> Result<(), Error> {
        let http = self.services.http.clone();
        // Not interrupted: the server may have forgotten the old value already.
        http.replace_secret(&name, value).await.map_err(|error| fault(error.into()))
    }
}

fn secret(wit::Secret { name, prefix }: wit::Secret) -> Value {
    Value::Secret { name, prefix }
}

fn fields(fields: Vec<wit::Field>) -> Vec<(String, Value)> {
    let value = |value| match value {
        wit::Value::Plain(text) => Value::Plain(text),
        wit::Value::Secret(of) => secret(of),
    };
    fields.into_iter().map(|field| (field.name, value(field.value))).collect()
}
