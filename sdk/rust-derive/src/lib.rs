//! The attribute macro for typed tool arguments, re-exported as `hermes_plugin::arguments`.
//!
//! It only adds derives: `serde` parses the arguments and `schemars` describes them. Both come from the SDK, so a plugin does not
//! need them as dependencies.

use proc_macro::TokenStream;

const DERIVES: &str = r#"
    #[derive(::hermes_plugin::__private::serde::Deserialize, ::hermes_plugin::__private::schemars::JsonSchema)]
    #[serde(crate = "::hermes_plugin::__private::serde")]
    #[schemars(crate = "::hermes_plugin::__private::schemars")]
"#;

/// Marks a struct or enum as the arguments of a tool, or as a part of them. The JSON Schema is derived from the fields, and doc
/// comments become descriptions. `Option` marks optional fields; `#[serde(…)]` works as usual.
#[proc_macro_attribute]
pub fn arguments(options: TokenStream, item: TokenStream) -> TokenStream {
    if !options.is_empty() {
        return r#"::core::compile_error!("`arguments` takes no options");"#.parse().unwrap_or_default();
    }
    let mut all: TokenStream = DERIVES.parse().unwrap_or_default();
    all.extend(item);
    all
}
