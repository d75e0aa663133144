//! Sends HTTP requests: tools `send`, `renew`, `replace`, `has_secret` and `config`. The tool's result is the host's answer as JSON, including errors
//! with their codes.

use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{Error, Plugin, Tools, http, log};
use serde_json::{Value as Json, json};

/// The plugin.
pub struct Courier {
    config: String,
}

impl Plugin for Courier {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self { config: config.to_owned() })
    }
}

impl Tools for Courier {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str, description: &str| {
            Tool::new(name, description, json!({ "type": "object" })).toolset("courier").effect(Effect::Reads)
        };
        Ok(vec![
            tool("send", "Sends `method`, `url`, `headers`, `secrets` ({header: name}) and `body`, in `timeout` ms."),
            tool("renew", "As `send`; then the `token` of the answer replaces the secret `name`."),
            tool("replace", "Replaces the secret `name` by `value`."),
            tool("has_secret", "Whether the secret `name` is there."),
            tool("config", "What it was configured with; it says so in its log, too."),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Json = invocation.parse()?;
        let answer = match invocation.name.as_str() {
            "send" => send(&arguments),
            "renew" => renew(&arguments),
            "replace" => {
                let text = |name: &str| arguments[name].as_str().unwrap_or_default();
                http::replace_secret(text("name"), text("value")).map(|()| json!("replaced"))
            }
            "has_secret" => Ok(json!(http::has_secret(arguments["name"].as_str().unwrap_or_default()))),
            "config" => {
                log::warn(&self.config);
                Ok(json!(self.config))
            }
            _ => return Err(invocation.unknown()),
        };
        let answer = answer.unwrap_or_else(
            |error| json!({ "kind": format!("{:?}", error.kind), "code": error.code, "message": error.message }),
        );
        Ok(Output::text(answer.to_string()))
    }
}

/// A text, or `{"secret": NAME}`.
fn field(value: &Json) -> http::Value {
    match value["secret"].as_str() {
        Some(secret) => http::secret(secret),
        None => value.as_str().unwrap_or_default().into(),
    }
}

/// Takes the token out of an answer, as a renewed one, and stores it as the secret `name`.
fn renew(arguments: &Json) -> Result<Json, Error> {
    let answer = send(arguments)?;
    let token: Json = serde_json::from_str(answer["body"].as_str().unwrap_or_default())?;
    let token = token["token"].as_str().unwrap_or_default();
    http::replace_secret(arguments["name"].as_str().unwrap_or_default(), token)?;
    // Only a hint of it: the result of a tool is stored.
    Ok(json!({ "renewed": token.len() }))
}

fn send(arguments: &Json) -> Result<Json, Error> {
    let text = |name: &str| arguments[name].as_str();
    let mut request = http::Request::new(text("method").unwrap_or("GET"), text("url").unwrap_or_default());
    for (name, value) in arguments["headers"].as_object().into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap_or_default());
    }
    for (name, secret) in arguments["secrets"].as_object().into_iter().flatten() {
        request = request.secret_header(name, "Bearer ", secret.as_str().unwrap_or_default());
    }
    for (name, value) in arguments["query"].as_object().into_iter().flatten() {
        request = request.query(name, field(value));
    }
    if let Some(body) = text("body") {
        request = request.body(body);
    }
    if let Some(form) = arguments["form"].as_object() {
        request = request.form(form.iter().map(|(name, value)| (name.as_str(), field(value))));
    }
    if let Some(places) = arguments["places"].as_object() {
        let places: Vec<(&str, &str)> =
            places.iter().map(|(place, secret)| (place.as_str(), secret.as_str().unwrap_or_default())).collect();
        request = request.json_with_secrets(&arguments["json"], &places)?;
    }
    if let Some(timeout) = arguments["timeout"].as_u64() {
        request = request.timeout_ms(u32::try_from(timeout).unwrap_or(u32::MAX));
    }
    let response = request.send()?;
    Ok(json!({
        "status": response.status(),
        "url": response.url(),
        "headers": response.headers().map(|(name, value)| json!([name, value])).collect::<Json>(),
        "body": response.text(),
    }))
}

hermes_plugin::export!(Courier: Tools);
