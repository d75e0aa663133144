//! Which wire format an address speaks, and which routes take marks.

use serde_json::{Value, json};
use url::Url;

use super::{differs, run};
use crate::{ApiMode, Marks, Style};

#[test]
fn api_mode_of_an_address() {
    const NO_RESPONSES: &str = "the responses API is not spoken; these hosts also speak chat completions";
    let nothing = || json!({"api_mode": null});
    run(
        "api_mode_url",
        &[
            differs("https://api.openai.com/v1", NO_RESPONSES, nothing()),
            differs("https://api.openai.com:443/v1", NO_RESPONSES, nothing()),
            differs("api.openai.com/v1", NO_RESPONSES, nothing()),
        ],
        |input| {
            let url = Url::parse(input["base_url"].as_str().unwrap()).ok();
            json!({"api_mode": url.and_then(|url| ApiMode::of_address(&url)).map(ApiMode::as_str)})
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
            let style = Style::of_route(mode, input["provider"].as_str().unwrap(), &url);
            json!({"enabled": style.marks != Marks::None, "native_layout": style.marks == Marks::Native})
        },
        Value::clone,
    );
}
