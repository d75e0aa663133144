//! Which wire format an address speaks, and which routes take marks.

use serde_json::{Value, json};
use url::Url;

use super::{differs, run};
use crate::providers::{host, is_at};
use crate::{ApiMode, Marks, Style};

#[test]
fn api_mode_of_an_address() {
    run(
        "api_mode_url",
        &[differs(
            "api.openai.com/v1",
            "an address without https:// is an error that says so, so that no key goes unencrypted",
            json!({"api_mode": null}),
        )],
        |input| {
            let url = Url::parse(input["base_url"].as_str().unwrap()).ok();
            json!({"api_mode": url.and_then(|url| ApiMode::of_address(&url)).map(ApiMode::as_str)})
        },
        Value::clone,
    );
}

#[test]
fn hosts_of_addresses() {
    run(
        "url_host",
        &[],
        |input| {
            let url = Url::parse(input["base_url"].as_str().unwrap().trim()).ok();
            let domain = input["domain"].as_str().unwrap();
            json!({
                "host": url.as_ref().and_then(host).unwrap_or_default(),
                "matches": url.is_some_and(|url| is_at(&url, domain) || is_at(&url, &format!("*.{domain}"))),
            })
        },
        Value::clone,
    );
}

#[test]
fn cache_policy() {
    const BY_ROUTE: &str = "a route that understands marks is marked whatever the model's vendor";
    let envelope = || json!({"enabled": true, "native_layout": false});
    run(
        "cache_policy",
        &[
            differs("openrouter|chat_completions|qwen/qwen3-coder|openrouter.ai", BY_ROUTE, envelope()),
            differs(
                "nous|chat_completions|deepseek/deepseek-v4-pro|inference-api.nousresearch.com",
                BY_ROUTE,
                envelope(),
            ),
        ],
        |input| {
            let url = Url::parse(input["base_url"].as_str().unwrap()).unwrap();
            let mode = ApiMode::parse(input["api_mode"].as_str().unwrap()).unwrap();
            let style = Style::of_route(mode, input["provider"].as_str().unwrap(), &url, "");
            json!({"enabled": style.marks != Marks::None, "native_layout": style.marks == Marks::Native})
        },
        Value::clone,
    );
}

#[test]
fn context_catalog() {
    run(
        "context_catalog",
        &[differs("hermes-4-405b", "an unknown family has no window: 128,000 tokens are assumed", Value::Null)],
        |input| json!(crate::window::family_window(input["model"].as_str().unwrap())),
        Value::clone,
    );
}
