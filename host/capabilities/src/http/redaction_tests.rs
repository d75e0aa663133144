#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn secret(value: &str) -> Secret {
    let audience = "https://api.example.org/".parse().unwrap();
    Secret::new("key".into(), "EXAMPLE_KEY".into(), audience, Some(value.into()))
}

fn redacted(value: &str, text: &str) -> String {
    Redaction::of(&[secret(value)]).text(text)
}

const KEY: &str = "sk-a/b+c=d&e\"f 0123";

#[test]
fn a_secret_is_found_in_every_encoding_that_servers_use() {
    for (form, quoted) in [
        ("plain", r#"sk-a/b+c=d&e"f 0123"#),
        ("in other case", r#"SK-A/B+C=D&E"F 0123"#),
        ("in an address", "sk-a%2Fb%2bc%3Dd%26e%22f%200123"),
        ("in a form", "sk-a%2Fb%2Bc%3Dd%26e%22f+0123"),
        ("in an address twice", "sk-a%252Fb%252Bc%253Dd%2526e%2522f%25200123"),
        ("all of it encoded", "%73%6b%2d%61%2f%62%2b%63%3d%64%26%65%22%66%20%30%31%32%33"),
        ("in JSON", r#"sk-a\/b+c=d&e\"f 0123"#),
        ("in careful JSON", r"sk-a/b\u002bc\u003dd\u0026e\u0022f 0123"),
        ("in HTML", "sk-a/b+c=d&amp;e&quot;f 0123"),
        ("in numbered HTML", "sk-a&#47;b&#x2B;c&#61;d&#38;e&#034;f 0123"),
        ("in hexadecimal digits", "736b2d612f622b633d6426652266203031323"),
    ] {
        let text = format!("<< {quoted} >>");
        let found = redacted(KEY, &text);
        // This hexadecimal form lacks its last digit, so it is another value.
        let expected = if form == "in hexadecimal digits" { text.as_str() } else { "<< [REDACTED] >>" };
        assert_eq!(found, expected, "{form}");
    }
    assert_eq!(redacted(KEY, "(736B2d612f622b633d64266522662030313233)"), "([REDACTED])");
}

#[test]
fn a_secret_is_found_in_base64_at_any_alignment() {
    for (encoded, what) in [
        ("c2stYS9iK2M9ZCZlImYgMDEyMw==", "alone"),
        ("dXNlcjpzay1hL2IrYz1kJmUiZiAwMTIz", "behind `user:`"),
        ("YTpzay1hL2IrYz1kJmUiZiAwMTIzOmI=", "between `a:` and `:b`"),
        ("QmVhcmVyIHNrLWEvYitjPWQmZSJmIDAxMjM=", "behind `Bearer `"),
        ("c2stYS9i\r\nK2M9ZCZl\r\nImYgMDEy\r\nMw==", "in short lines"),
    ] {
        let found = redacted(KEY, encoded);
        assert!(found.contains(REDACTED) && found.len() < REDACTED.len() + 16, "{what}: {found}");
    }
}

#[test]
fn other_text_is_unchanged() {
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(Redaction::of(&[secret(KEY)]).bytes(bytes.clone()), bytes);
    assert!(Redaction::of(&[]).is_idle() && Redaction::default().text(KEY) == KEY);
    assert_eq!(redacted("a.b.c.d.e", "aXbXcXdXe"), "aXbXcXdXe");
}

#[test]
fn the_longest_secrets_are_found_too() {
    let value: String = (0..4096).map(|index| char::from(b'!' + u8::try_from(index * 7 % 94).unwrap())).collect();
    let several: Vec<Secret> = (0..3).map(|turn| secret(&format!("{}{}", &value[turn..], &value[..turn]))).collect();
    assert_eq!(Redaction::of(&several).text(&format!("a {value} b")), "a [REDACTED] b");
}

fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let number = (0..3).fold(0u32, |sum, at| sum << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        (0..4)
            .map(|at| {
                let bits = (number >> (18 - 6 * at)) & 63;
                if at > group.len() { '=' } else { char::from(ALPHABET[bits as usize]) }
            })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

proptest! {
    #[test]
    fn every_encoded_secret_is_found(
        value in "[ -~]{1}[!-~]{10,40}[!-~]",
        before in "[ -~]{0,9}",
        after in "[ -~]{0,9}",
        mask in prop::collection::vec(0u8..6, 60),
    ) {
        let value = value.trim().to_owned();
        let mixed: String = value
            .bytes()
            .zip(&mask)
            .map(|(byte, how)| match how {
                0 => format!("%{byte:02x}"),
                1 => format!("%{byte:02X}"),
                2 => format!("\\u00{byte:02x}"),
                3 => format!("&#{byte};"),
                _ => char::from(byte).to_string(),
            })
            .collect();
        let redaction = Redaction::of(&[secret(&value)]);
        prop_assert!(redaction.finds(format!("{before}{mixed}{after}").as_bytes()), "{mixed}");
        let plain = format!("{before}{value}{after}");
        prop_assert!(!redaction.text(&plain).contains(&value));
        let encoded = encode(plain.as_bytes());
        let found = redaction.text(&encoded);
        // The characters left on either side share bits with the surrounding text.
        prop_assert!(found.contains(REDACTED), "{encoded}");
        let url_safe = encoded.replace('+', "-").replace('/', "_");
        prop_assert!(redaction.finds(url_safe.as_bytes()), "{url_safe}");
    }
}

/// A plugin that chooses both a secret and the text in which it is looked for.
mod attack {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_long_secret_of_one_letter_is_looked_for_in_one_pass() {
        let secret = "a".repeat(4_000) + "b";
        let near = ("a".repeat(60) + "c").repeat((1 << 18) / 61);
        assert_eq!(redacted(&secret, &near), near);
        let long = "a".repeat(1 << 20);
        let found = redacted(&secret, &long);
        assert!(found.len() < 10_000 && found.contains(REDACTED), "{} bytes", found.len());
        // A search that begins anew at each letter takes a hundred times as long for a secret that is a hundred times as long.
        // The fastest of three rounds counts: the machine may be busy.
        let text = "a".repeat(1 << 16);
        let took = |letters: usize| {
            let secret = "a".repeat(letters) + "b";
            let rounds = (0..3).map(|_| {
                let begun = Instant::now();
                redacted(&secret, &text);
                begun.elapsed()
            });
            rounds.min().unwrap_or_default()
        };
        let (short, long) = (took(40), took(4_000));
        assert!(
            long < 10 * short + Duration::from_millis(100),
            "{long:?} for a long secret, {short:?} for a short one"
        );
    }

    #[test]
    fn a_long_beginning_of_a_secret_is_removed_too() {
        let secret: String = (0..100).map(|at| format!("{at:03}")).collect();
        assert_eq!(redacted(&secret, &format!("x {} y", &secret[..150])), "x [REDACTED] y");
        assert_eq!(redacted(&secret, &secret[..30]), secret[..30]);
    }
}
