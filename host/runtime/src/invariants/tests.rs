use proptest::prelude::*;

use super::*;

/// A component with one custom section: the stamp's name and the given content.
fn component(content: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"\x0ahermes:abi";
    let mut bytes = b"\0asm\x0d\0\x01\0\0".to_vec();
    let mut length = NAME.len() + content.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    [&bytes[..], NAME, content].concat()
}

#[test]
fn a_stamp_of_any_length_gives_a_short_reason() {
    for version in ["9".repeat(100_000), format!("0.{}", "\u{1b}[2J".repeat(10_000)), String::new()] {
        stamped(&component(format!(r#"{{"package":"hermes:plugin@{version}"}}"#).as_bytes()));
    }
    stamped(&component("[".repeat(100_000).as_bytes()));
    stamped(&b"\0asm\x0d\0\x01\0\x04\x08".repeat(10_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_stamp_is_read_or_refused(
        content in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            r#"\{"package": ?"(hermes:plugin)?@?[0-9.]{0,8}\PC{0,20}"\}?.{0,9}"#.prop_map(String::into_bytes),
        ],
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = component(&content);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        stamped(&bytes);
        stamped(&content);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn only_code_of_this_installation_is_mapped(
        code in prop::collection::vec(any::<u8>(), 0..400),
        at: usize,
        altered: u8,
    ) {
        compiled_code(&code, at, altered);
    }
}
