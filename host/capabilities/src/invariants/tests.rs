use proptest::prelude::*;

use super::*;

/// The parts of grants and addresses: harmless ones, and known tricks to disguise one address as another.
fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec![
            "example.org", "api.example.org", "eu.api.example.org", "evil.example", "example.org.evil.example",
            "aexample.org", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost",
            "EXAMPLE.org", "example%2Eorg", "example.org.", "ex\u{430}mple.org", "xn--bcher-kva.example", "b\u{fc}cher.example",
        ]).prop_map(str::to_owned),
        1 => "[a-z0-9.%-]{1,12}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        3 => prop::sample::select(vec![
            "v1", "v1", "v1", "v2", "..", ".", "%2e%2e", "%2e.", "%2f", "..%2f", "%5c", "%252e%252e", "%25252e", "..;",
            "..;a=b", "v1;a", "", "%25", "%00", "%c0%ae", "caf%C3%A9", "caf\u{e9}", "%76%31", "\\..\\", "..%20", "v1x",
            "%E3%80%82", "\u{ff0e}\u{ff0e}", "\t..", "%09..",
        ]).prop_map(str::to_owned),
        1 => "[a-z%0-9.;\\\\]{0,6}",
    ];
    prop::collection::vec(segment, 0..5).prop_map(|segments| segments.join("/"))
}

fn address() -> impl Strategy<Value = String> {
    let scheme =
        prop::sample::select(vec!["https://", "https://", "http://", "HTTPS://", "https:", "https:\\\\", "ws://"]);
    let user = prop::sample::select(vec!["", "", "", "", "me@", "me:x@", "api.example.org@", "%40"]);
    let port = prop::sample::select(vec!["", "", "", ":443", ":80", ":8443", ":0", ":"]);
    let end = prop::sample::select(vec!["", "", "", "?q=..", "#/../x", "?https://example.org/"]);
    (scheme, user, host(), port, path(), end)
        .prop_map(|(scheme, user, host, port, path, end)| format!("{scheme}{user}{host}{port}/{path}{end}"))
}

fn grant() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["https://", "https://", "http://"]);
    let star = prop::sample::select(vec!["", "", "*."]);
    let port = prop::sample::select(vec!["", "", ":8443"]);
    (scheme, star, host(), port, path())
        .prop_map(|(scheme, star, host, port, path)| format!("{scheme}{star}{host}{port}/{path}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_grant_admits_only_addresses_that_its_text_names(grant in grant(), other in grant(), address in address()) {
        granted(&grant, &other, &address);
        // The most common address is the grant itself with a suffix.
        granted(&grant, &other, &format!("{grant}/{}", address.rsplit('/').next().unwrap_or_default()));
    }

    #[test]
    fn any_text_is_a_grant_or_refused(grant in "\\PC{0,40}|https?://\\PC{0,30}", other in grant(), address in address()) {
        granted(&grant, &other, &address);
        granted(&other, &grant, &grant);
    }

    #[test]
    fn private_addresses_are_not_public_in_any_notation(bits: u128, block in 0..6usize) {
        let block = [0, 0x0a00_0000, 0x7f00_0000, 0xa9fe_0000, 0xac10_0000, 0xc0a8_0000][block];
        public(bits);
        public(block | (bits & 0xffff));
        public(bits >> 3);
    }
}
