//! A `config.yaml` and a change of it, selected by the first byte.
#![no_main]

use std::sync::Once;

/// The host's own code, included by path because no crate can depend on the binary.
#[path = "../../host/config/src/edit"]
mod edit {
    // Unused parts of it matter only to the binary.
    #[allow(dead_code)]
    pub(crate) mod invariants;
    pub(crate) mod text;
}

use edit::invariants::{Change, changed};

const PATHS: [&[&str]; 4] = [&["a"], &["a", "b"], &["plugins", "enabled"], &["a", "b", "c d"]];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static HOOK: Once = Once::new();
    // The host catches panics of third-party parsers, so they are not findings.
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
