//! A `config.yaml` and a change of it, which the first byte chooses.
#![no_main]

use std::sync::Once;

/// The host's own, as it stands in the binary, which no crate can depend on.
#[path = "../../host/config/src/edit"]
mod edit {
    // Whether anything else of them is used is the binary's matter.
    #[allow(dead_code)]
    pub(crate) mod invariants;
    pub(crate) mod text;
}

use edit::invariants::{Change, changed};

const PATHS: [&[&str]; 4] = [&["a"], &["a", "b"], &["plugins", "enabled"], &["a", "b", "c d"]];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static HOOK: Once = Once::new();
    // A parser of others that panics is caught by the host, and no finding.
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_some_and(|place| place.file().contains("config/src/edit")) {
                usual(panic);
            }
        }));
    });
    let Some((choice, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let path = PATHS[usize::from(choice % 4)];
    let change = match choice / 4 % 6 {
        0 => Change::Set("x: # y".into()),
        1 => Change::Set(serde_json::json!({"b": [1, {"c": "d"}]})),
        2 => Change::Remove,
        3 => Change::Add("b".to_owned()),
        4 => Change::Take("b".to_owned()),
        _ => Change::Set(serde_json::Value::Bool(true)),
    };
    let _ = changed(text, path, &change);
});
