//! The attribute macros for typed arguments of tools and for configurations: `hermes_plugin::arguments` and `hermes_plugin::config`.
//!
//! They only add derives: `serde` parses a value and `schemars` describes it. Both come from the SDK, so a plugin does not
//! need them as dependencies.

use proc_macro::TokenStream;

const DERIVES: &str = r#"
    #[derive(::hermes_plugin::__private::serde::Deserialize, ::hermes_plugin::__private::schemars::JsonSchema)]
    #[serde(crate = "::hermes_plugin::__private::serde")]
    #[schemars(crate = "::hermes_plugin::__private::schemars")]
"#;

/// Marks a struct or enum as the configuration of a plugin, or as a part of it: `serde` reads it, and its schema can be compared with the
/// manifest. Doc comments become descriptions; `#[serde(…)]` and `#[schemars(…)]` work as usual.
#[proc_macro_attribute]
pub fn config(options: TokenStream, item: TokenStream) -> TokenStream {
    derived("config", &options, item)
}

/// Marks a struct or enum as the arguments of a tool, or as a part of them. The JSON Schema is derived from the fields, and doc
/// comments become descriptions. `Option` marks optional fields; `#[serde(…)]` works as usual.
#[proc_macro_attribute]
pub fn arguments(options: TokenStream, item: TokenStream) -> TokenStream {
    derived("arguments", &options, item)
}

fn derived(name: &str, options: &TokenStream, item: TokenStream) -> TokenStream {
    if !options.is_empty() {
        let error = format!("::core::compile_error!(\"`{name}` takes no options\");");
        return error.parse().unwrap_or_default();
    }
    let mut all: TokenStream = DERIVES.parse().unwrap_or_default();
    all.extend(item);
    all
}
