use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec![
            "owner", "repo", "repo.git", "x.wasm", "x.tar.gz", "v1.2", "feature/x", "sub/dir", "github.com", "host.example",
            "127.0.0.1:5000", "[::1]:22", "git", "me", "latest",
        ]).prop_map(str::to_owned),
        2 => select(vec![
            "-x", "--upload-pack=x", "-oProxyCommand=x", "..", ".", "a/../b", "a..b", "me:secret", "", " ", "UPPER", "%2e%2e",
            "%20", "\u{e9}", "\u{3000}", "::", "ext::sh -c x", "a\\b", "?q=1", "sha256:00",
        ]).prop_map(str::to_owned),
        1 => "[ -~]{0,8}|\\PC{0,4}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    let scheme = select(vec![
        "",
        "https://",
        "http://",
        "ssh://",
        "git://",
        "file://",
        "oci://",
        "git+",
        "git+https://",
        "git+ssh://",
        "git+file://",
        "ftp://",
        "ext::",
        "./",
        "~/",
    ]);
    let user = prop_oneof![3 => Just(String::new()), 1 => part().prop_map(|part| format!("{part}@"))];
    let end = |mark: &'static str| prop_oneof![2 => Just(String::new()), 1 => part().prop_map(move |part| format!("{mark}{part}"))];
    let mark = select(vec!["/", "/", ":"]);
    (scheme, user, part(), mark, part(), end("/"), end("@"), end("#")).prop_map(
        |(scheme, user, host, mark, path, more, reference, folder)| {
            format!("{scheme}{user}{host}{mark}{path}{more}{reference}{folder}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_valid_source_is_safe_and_survives_a_round_trip(text in text()) {
        source(&text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "\\PC{0,40}|[ -~]{0,40}|(oci|git\\+https|https|ssh|file)://[a-z.:@/#-]{0,30}",
    ) {
        source(&text);
    }
}
