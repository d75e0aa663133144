//! The list of models that a provider offers: `GET <base>/models`, with windows and prices where it names them.

use serde_json::Value;

use crate::assembly::Unread;
use crate::assembly::answer::Slot;
use crate::endpoint::{Endpoint, Patience, Persistence};
use crate::price::{Price, Prices};
use crate::window::{LEAST_WINDOW, family_window};
use crate::{Body, Logins, ModelError, Route};

/// A model of a provider's list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    /// Its name in requests.
    pub name: String,
    /// The window in tokens, if the list names it.
    pub window: Option<u32>,
    /// The price, if the list names it.
    pub price: Option<Price>,
}

impl ListedModel {
    /// The window in tokens: of the list, else of the model's family.
    pub fn known_window(&self) -> Option<u32> {
        self.window.or_else(|| family_window(&self.name))
    }

    /// The window that has to be configured: the list names it, and the table of families does not know it.
    pub fn unknown_window(&self) -> Option<u32> {
        self.window.filter(|window| family_window(&self.name) != Some(*window))
    }

    /// The price: of the list, else of the table.
    pub fn known_price(&self, prices: &Prices, provider: &str) -> Option<Price> {
        self.price.or_else(|| prices.of(provider, &self.name))
    }
}

/// The models that the provider of a route offers, sorted by name.
///
/// # Errors
///
/// Every [`ModelError`]. A provider without such a list answers 404, which is [`ModelError::NotFound`].
pub async fn list_models(route: &Route, logins: &Logins) -> Result<Vec<ListedModel>, ModelError> {
    let endpoint = Endpoint::for_models(route, logins, Patience::for_route(route))?;
    let slot = Slot::new();
    endpoint
        .complete(Body::default(), &route.model.name, &|| slot.assembly(read), &mut |_| {}, Persistence::Full)
        .await?;
    let mut listed = slot.take().unwrap_or_default();
    listed.sort_by(|left, right| left.name.cmp(&right.name));
    listed.dedup_by(|left, right| left.name == right.name);
    Ok(listed)
}

/// The names that lists give to the window, as they are found in the wild: LM Studio, llama.cpp, OpenRouter, vLLM, Anthropic, Groq, Mistral,
/// Gemini, Copilot. What a server has loaded counts more than what the model could do.
const WINDOWS: [&str; 10] = [
    "loaded_context_length",
    "n_ctx",
    "context_length",
    "max_model_len",
    "max_input_tokens",
    "context_window",
    "max_context_length",
    "inputTokenLimit",
    "max_context_window_tokens",
    "context_size",
];
/// How deep in a row the window can be: some servers put it into an object such as `meta` or `capabilities`.
const DEPTH: usize = 4;

/// The window that a row names: of the outermost object that has one.
fn window(row: &Value) -> Option<u32> {
    let mut level: Vec<&Value> = vec![row];
    for _ in 0..DEPTH {
        let named = WINDOWS.iter().find_map(|key| level.iter().find_map(|object| tokens(object.get(key)?)));
        if named.is_some() {
            return named;
        }
        let members = level.into_iter().filter_map(Value::as_object).flat_map(|members| members.values());
        level = members.filter(|value| value.is_object()).collect();
    }
    None
}

/// A number of tokens: as a number, or as a text that is one, such as `40960`, `40960.0`, `40,960` or `128k`.
fn tokens(value: &Value) -> Option<u32> {
    let number = value.as_f64().or_else(|| {
        let text = value.as_str()?.trim().replace([',', '_'], "").to_ascii_lowercase();
        let (digits, unit) = match text.strip_suffix('k') {
            Some(digits) => (digits, 1e3),
            None => text.strip_suffix('m').map_or((&*text, 1.0), |digits| (digits, 1e6)),
        };
        Some(digits.trim().parse::<f64>().ok()? * unit)
    })?;
    let is_window = number.is_finite() && number >= f64::from(LEAST_WINDOW) && number <= f64::from(u32::MAX);
    is_window.then_some(number as u32)
}

fn read(answer: &Value) -> Result<Vec<ListedModel>, Unread> {
    // Together answers with the bare array.
    let rows = ["data", "models"].iter().find_map(|key| answer[*key].as_array()).or_else(|| answer.as_array());
    let rows = rows.ok_or(Unread::Lacks("data"))?;
    Ok(rows.iter().filter_map(model).collect())
}

fn model(row: &Value) -> Option<ListedModel> {
    // Some servers list bare names.
    let name = row.as_str().or_else(|| ["id", "name", "model"].iter().find_map(|key| row[*key].as_str()))?;
    let name = name.strip_prefix("models/").unwrap_or(name).trim();
    // A user could not type a name that a line cannot show.
    if name.is_empty() || name.chars().any(char::is_control) {
        return None;
    }
    Some(ListedModel { name: name.to_owned(), window: window(row), price: dollars(&row["pricing"]) })
}

/// Prices of OpenRouter's form: dollars per token, as text.
fn dollars(pricing: &Value) -> Option<Price> {
    let of = |key: &str| {
        let per_token = pricing[key].as_str()?.parse::<f64>().ok()?;
        // A negative price stands for one that varies.
        (per_token.is_finite() && per_token >= 0.0).then_some(per_token * 1e6)
    };
    let (input, output) = (of("prompt")?, of("completion")?);
    let cache_write = of("input_cache_write").unwrap_or(input);
    let cache_read = of("input_cache_read").unwrap_or(input);
    Some(Price { input, output, cache_read, cache_write, cache_write_1h: cache_write })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_and_prices_are_read_where_a_list_names_them() {
        let listed = read(&json!({ "object": "list", "data": [
            { "id": "vendor/a", "context_length": 200_000,
              "pricing": { "prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003" } },
            { "id": "b", "max_model_len": 32_768, "owned_by": "vllm" },
            { "id": "claude-x", "type": "model", "display_name": "X", "max_input_tokens": 1_000_000 },
            { "id": "auto", "context_length": 2_000_000, "pricing": { "prompt": "-1", "completion": "-1" } },
            { "id": "tiny", "context_length": 0 },
            { "id": "two\nlines" }, { "object": "model" }, 7,
        ] }));
        let listed = listed.unwrap();
        let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(names, ["vendor/a", "b", "claude-x", "auto", "tiny"]);
        let windows: Vec<Option<u32>> = listed.iter().map(|model| model.window).collect();
        assert_eq!(windows, [Some(200_000), Some(32_768), Some(1_000_000), Some(2_000_000), None]);
        let price = listed[0].price.unwrap();
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(near(price.input, 3.0) && near(price.output, 15.0) && near(price.cache_read, 0.3), "{price:?}");
        assert!(near(price.cache_write, 3.0));
        assert!(listed[1..].iter().all(|model| model.price.is_none()));
    }

    #[test]
    fn a_window_is_read_in_every_form() {
        let window = |row: Value| window(&row);
        for row in [
            json!({"context_length": "40960"}),
            json!({"context_length": " 40,960 "}),
            json!({"max_model_len": 40960.0}),
            json!({"max_model_len": "40960.0"}),
            json!({"meta": {"n_ctx_train": 131_072, "n_ctx": 40_960}}),
            json!({"capabilities": {"limits": {"max_context_window_tokens": 40_960, "max_output_tokens": 4_096}}}),
            json!({"model_info": {"max_input_tokens": 40_960}}),
            json!({"max_context_length": 131_072, "loaded_context_length": 40_960}),
            json!({"context_length": 40_960, "top_provider": {"context_length": 32_000}}),
            json!({"context_length": "40.96k"}),
            json!({"context_length": null, "context_window": 40_960}),
        ] {
            assert_eq!(window(row.clone()), Some(40_960), "{row}");
        }
        for row in [
            json!({"context_length": 0}),
            json!({"context_length": -1}),
            json!({"context_length": 1e300}),
            json!({"context_length": "long"}),
            json!({"context_length": "k"}),
            json!({"context_length": ""}),
            json!({"meta": {"n_ctx_train": 131_072}}),
            json!("name"),
        ] {
            assert_eq!(window(row.clone()), None, "{row}");
        }
    }

    #[test]
    fn lists_in_other_forms_are_read() {
        let names =
            |answer: Value| -> Vec<String> { read(&answer).unwrap().into_iter().map(|each| each.name).collect() };
        assert_eq!(names(json!([{ "id": "a" }])), ["a"]);
        assert_eq!(names(json!({ "data": ["b", "a"] })), ["b", "a"]);
        assert_eq!(names(json!({ "models": [{ "name": "models/gemini-2.5-flash" }] })), ["gemini-2.5-flash"]);
        assert_eq!(read(&json!({ "hello": 1 })), Err(Unread::Lacks("data")));
    }

    #[test]
    fn what_a_list_leaves_out_comes_from_the_tables() {
        let bare = |name: &str| ListedModel { name: name.to_owned(), window: None, price: None };
        assert_eq!(bare("claude-sonnet-4-5").known_window(), Some(200_000));
        assert_eq!(bare("claude-sonnet-4-5").known_price(&Prices::built_in(), "anthropic").unwrap().input, 3.0);
        let listed = |name: &str, tokens| ListedModel { window: Some(tokens), ..bare(name) };
        assert_eq!(listed("claude-sonnet-4-5", 200_000).unknown_window(), None);
        assert_eq!(listed("claude-sonnet-4-5", 64_000).unknown_window(), Some(64_000));
        assert_eq!(bare("mine").unknown_window(), None);
        assert!(
            bare("claude-sonnet-4-5").known_price(&Prices::built_in(), "ollama").is_none()
                && bare("mine").known_window().is_none()
        );
    }
}
