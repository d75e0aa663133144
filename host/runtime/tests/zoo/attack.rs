//! Attacks by the bytes of a component, by its versions, and through WASI.

mod adapters;
mod components;
mod wasi;

/// The bytes with which a component begins.
const PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";
/// Ids of sections at the top level of a component.
const CUSTOM: u8 = 0;
const COMPONENT: u8 = 4;
const TYPES: u8 = 7;
const IMPORTS: u8 = 10;

/// A number in the variable form of WebAssembly.
fn number(mut rest: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &number(content.len())[..], content].concat()
}

fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    section(CUSTOM, &[&number(name.len())[..], name.as_bytes(), content].concat())
}

/// A component that imports these names, each as an empty instance.
fn importing<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut imports = number(names.len());
    for name in names {
        imports.push(0);
        imports.extend(number(name.len()));
        imports.extend(name.as_bytes());
        imports.extend([5, 0]);
    }
    [PREAMBLE, &section(TYPES, &[1, 0x42, 0]), &section(IMPORTS, &imports)].concat()
}

/// Loads a component that must be refused, and returns the reason, which must be short.
fn refusal(name: &str, bytes: &[u8]) -> String {
    let Err(error) = crate::runtime().load(bytes) else { panic!("{name}: it was loaded") };
    let error = error.to_string();
    assert!(!error.is_empty() && error.len() < 1_000, "{name}: {} bytes: {error}", error.len());
    assert!(!error.contains(['\u{1b}', '\u{202e}']), "{name}: {error:?}");
    error
}
