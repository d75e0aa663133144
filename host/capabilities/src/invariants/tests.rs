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

/// Expressions of functions and operators whose arguments are as large as the limits allow.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "NULL",
        "'a'",
        "b",
        "x'00'",
        "-1e300",
        "printf('%.*c', 1000000, 'a')",
        "zeroblob(1000000)",
        "replace(hex(zeroblob(100000)), '00', 'w OR ') || 'w'",
        "hex(randomblob(400000))",
        "'%a%a%a%a%b'",
        "'[' || replace(hex(zeroblob(100000)), '0', '1,') || '1]'",
        "(SELECT group_concat(b) FROM t)",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let one = prop::sample::select(vec![
            "length",
            "upper",
            "hex",
            "unhex",
            "quote",
            "soundex",
            "json",
            "json_pretty",
            "json_valid",
            "unicode",
            "trim",
            "abs",
            "date",
            "unistr",
            "json_group_array",
            "count",
            "total",
            "typeof",
            "jsonb",
            "zeroblob",
            "randomblob",
        ]);
        let two = prop::sample::select(vec![
            "trim",
            "ltrim",
            "rtrim",
            "instr",
            "unhex",
            "json_patch",
            "jsonb_patch",
            "json_extract",
            "printf",
            "strftime",
            "substr",
            "json_pretty",
            "like",
            "glob",
            "group_concat",
            "concat_ws",
            "max",
            "nullif",
            "timediff",
            "json_remove",
        ]);
        let three =
            prop::sample::select(vec!["replace", "json_set", "substr", "json_object", "concat", "min", "iif", "date"]);
        let operator =
            prop::sample::select(vec!["||", "LIKE", "GLOB", "+", "<", "->", "IN", "MATCH", "REGEXP", "COLLATE"]);
        prop_oneof![
            (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            (two, inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            (three, inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(name, a, b, c)| format!("{name}({a}, {b}, {c})")),
            (operator, inner.clone(), inner).prop_map(|(operator, a, b)| format!("({a} {operator} {b})")),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let frame = prop::sample::select(vec![
        "SELECT {} FROM t",
        "SELECT count(*) FROM f WHERE f MATCH {}",
        "SELECT snippet(f, 0, {}, '', '', 64) FROM f WHERE f MATCH 'w'",
        "SELECT rank FROM f WHERE f MATCH 'w' AND rank MATCH 'highlight(0, ''' || {} || ''', '''')'",
        "SELECT b FROM t, f ORDER BY {}",
        "INSERT INTO t (b) SELECT {} FROM t, f",
        "UPDATE t SET b = {}",
        "WITH RECURSIVE n (b) AS (SELECT 1 UNION ALL SELECT {} FROM n) SELECT count(*) FROM n",
        "SELECT * FROM json_tree({})",
        "CREATE INDEX i ON t ({})",
        "SELECT group_concat({}) OVER (ROWS 9 PRECEDING) FROM t",
    ]);
    (frame, expression()).prop_map(|(frame, expression)| frame.replace("{}", &expression))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn no_statement_outlives_its_deadline_by_much(statements in prop::collection::vec(statement(), 3)) {
        let (_home, database) = crate::sql::attack::attacked();
        for sql in statements {
            statement_ends(&database, &sql);
        }
    }
}
