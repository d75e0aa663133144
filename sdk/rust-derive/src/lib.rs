//! The attribute behind typed arguments of tools; `hermes_plugin::arguments` is how plugins name it.
//!
//! It only chooses derives: `serde` reads the arguments, `schemars` describes them, both as the SDK has them, so that a
//! plugin needs neither among its own dependencies.

use proc_macro::TokenStream;

const DERIVES: &str = r#"
    #[derive(::hermes_plugin::__private::serde::Deserialize, ::hermes_plugin::__private::schemars::JsonSchema)]
    #[serde(crate = "::hermes_plugin::__private::serde")]
    #[schemars(crate = "::hermes_plugin::__private::schemars")]
"#;

/// Makes a struct or an enum the arguments of a tool, or a part of them: a JSON Schema is read off its fields, their doc
/// comments are the descriptions. `Option` is what may be left out; `#[serde(…)]` works as usual.
#[proc_macro_attribute]
pub fn arguments(options: TokenStream, item: TokenStream) -> TokenStream {
    if !options.is_empty() {
        return r#"::core::compile_error!("`arguments` takes no options");"#.parse().unwrap_or_default();
    }
    let mut all: TokenStream = DERIVES.parse().unwrap_or_default();
    all.extend(item);
    all
}
