#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn site(text: &str) -> Site {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_site_has_one_canonical_form() {
    for (text, written) in [
        ("https://api.example.org", "https://api.example.org/"),
        ("https://API.Example.ORG:443/v1", "https://api.example.org/v1/"),
        ("https://api.example.org:8443/v1/", "https://api.example.org:8443/v1/"),
        ("http://localhost:80", "http://localhost/"),
        ("http://127.1:8080/", "http://127.0.0.1:8080/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://[::0001]:8080/a", "http://[::1]:8080/a/"),
        ("https://*.example.org/", "https://*.example.org/"),
        ("https://*", "https://*/"),
        ("HTTP://*/", "http://*/"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC/"),
        ("https://example.org/a/./b/../c", "https://example.org/a/c/"),
    ] {
        assert_eq!(site(text).to_string(), written, "{text}");
        assert_eq!(site(written), site(text), "{text}");
    }
}

#[test]
fn a_text_that_grants_more_than_it_says_is_not_a_site() {
    for text in [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "https://",
        "https:///v1",
        "https://user@example.org/",
        "https://user:password@example.org/",
        "https://example.org/?query",
        "https://example.org/#fragment",
        "https://example.org./",
        "https://example.org:0/",
        "https://example.org:65536/",
        "https://*/v1/",
        "https://*:8443/",
        "https://user@*/",
        "https://**/",
        "https://*.org/",
        "https://*.127.0.0.1/",
        "https://*.localhost/",
        "https://a.*.example.org/",
        "https://a*.example.org/",
        "https://example.org/*",
        "https://%2a.example.org/",
        "https:*.example.org/x://y",
        "https:evil.example/x://api.example.org/",
        "https://*.*.example.org/",
        "https://example.org/%2e%2e%2fadmin",
        "https://example.org/v1/..%5cadmin",
        "https://example.org/v1/..;/admin",
        "https://example.org/%c0%ae",
        "https://example.org/%00",
        "https://exa mple.org/",
        "https://example.org/a\nb",
        "https://[fe80::1%25eth0]/",
    ] {
        assert!(text.parse::<Site>().is_err(), "{text:?} is {:?}", text.parse::<Site>());
    }
}

/// Addresses that disguise their path, host or port. The client uses the same parser.
#[test]
fn an_address_belongs_to_a_site_only_if_every_reading_of_it_does() {
    let grant = "https://api.example.org/v1/";
    for (text, admitted) in [
        ("https://api.example.org/v1", true),
        ("https://api.example.org/v1/", true),
        ("https://api.example.org/v1/items?next=../..", true),
        ("https://api.example.org/v1/items#/../admin", true),
        ("https://api.example.org:443/v1/items", true),
        ("HTTPS://API.EXAMPLE.ORG/v1/items", true),
        ("https://api.example.org/v1/a%2Fb", true),
        ("https://api.example.org/v1/100%", true),
        ("https://api.example.org/v1/caf%C3%A9", true),
        ("https://api.example.org/v1/a..b/...", true),
        ("https://api.example.org/v1//items", true),
        ("https://api.example.org/v0/../v1/items", true),
        ("https://api.example.org/v1/./items/../other", true),
        ("https://api%2Eexample.org/v1/items", true),
        ("https://api。example.org/v1/items", true),
        ("https://api.example.org/v10", false),
        ("https://api.example.org/v1x/items", false),
        ("https://api.example.org/V1/items", false),
        ("https://api.example.org/", false),
        ("https://api.example.org/v1/../admin", false),
        ("https://api.example.org/v1/..", false),
        ("https://api.example.org/v1/%2e%2e/admin", false),
        ("https://api.example.org/v1/%2E./admin", false),
        ("https://api.example.org/v1/.%2e/admin", false),
        ("https://api.example.org/v1/..%2fadmin", false),
        ("https://api.example.org/v1/%2e%2e%2fadmin", false),
        ("https://api.example.org/v1/%252e%252e%252fadmin", false),
        ("https://api.example.org/v1/%25252e%25252e/admin", false),
        ("https://api.example.org/v1/%2525252525252e/admin", false),
        ("https://api.example.org/v1/..%5cadmin", false),
        ("https://api.example.org/v1\\..\\admin", false),
        ("https://api.example.org/v1/a%5cb", false),
        ("https://api.example.org/v1/..;/admin", false),
        ("https://api.example.org/v1/..;a=b/admin", false),
        ("https://api.example.org/v1/%2e%2e;/admin", false),
        ("https://api.example.org/v1/%c0%ae%c0%ae/admin", false),
        ("https://api.example.org/v1/%00/admin", false),
        ("https://api.example.org/v1/a%0d%0ab", false),
        ("https://api.example.org/v1/..%20/admin", false),
        ("https://api.example.org/%76%31/items", false),
        ("https://api.example.org//v1/items", false),
        ("https://api.example.org/%2fv1/items", false),
        ("http://api.example.org/v1/items", false),
        ("https://api.example.org:8443/v1/items", false),
        ("https://api.example.org:80/v1/items", false),
        ("https://api.example.org./v1/items", false),
        ("https://example.org/v1/items", false),
        ("https://a.api.example.org/v1/items", false),
        ("https://api.example.org.evil.example/v1/items", false),
        ("https://evilapi.example.org/v1/items", false),
        ("https://user@api.example.org/v1/items", false),
        ("https://api.example.org@evil.example/v1/items", false),
        ("https://api.example.org%40evil.example/v1/items", false),
        ("https://evil.example\\@api.example.org/v1/items", false),
        ("https://evil.example/https://api.example.org/v1/items", false),
        ("https://evil.example#@api.example.org/v1/items", false),
        ("https://evil.example?@api.example.org/v1/items", false),
        ("https:\\\\evil.example\\v1", false),
        ("https://аpi.example.org/v1/items", false),
        ("ftp://api.example.org/v1/items", false),
        ("data:text/plain,https://api.example.org/v1/", false),
    ] {
        let admits = Url::parse(text).is_ok_and(|url| site(grant).admits(&url));
        assert_eq!(admits, admitted, "{text}");
    }
}

#[test]
fn a_numeric_address_is_the_same_in_every_notation() {
    let grant = site("http://127.0.0.1:8080/");
    for (text, admitted) in [
        ("http://127.0.0.1:8080/x", true),
        ("http://127.1:8080/x", true),
        ("http://2130706433:8080/x", true),
        ("http://0x7f.0.0.1:8080/x", true),
        ("http://0177.0.0.1:8080/x", true),
        ("http://127.0.0.1.:8080/x", true),
        ("http://127.0.0.1/x", false),
        ("http://127.0.0.2:8080/x", false),
        ("http://localhost:8080/x", false),
        ("http://[::1]:8080/x", false),
        ("http://[::ffff:127.0.0.1]:8080/x", false),
    ] {
        assert_eq!(grant.admits(&Url::parse(text).unwrap()), admitted, "{text}");
    }
}

#[test]
fn a_star_matches_hosts_below_a_domain_but_not_the_domain() {
    let grant = site("https://*.example.org/");
    for (text, admitted) in [
        ("https://a.example.org/", true),
        ("https://a.b.example.org/..%2f", true),
        ("https://example.org/", false),
        ("https://.example.org/", false),
        ("https://aexample.org/", false),
        ("https://a.example.org.evil.example/", false),
    ] {
        assert_eq!(Url::parse(text).is_ok_and(|url| grant.admits(&url)), admitted, "{text}");
    }
}

fn sites() -> impl Strategy<Value = Site> {
    let host = prop::sample::select(vec![
        "example.org",
        "*.example.org",
        "api.example.org",
        "*.api.example.org",
        "eu.api.example.org",
        "127.0.0.1",
    ]);
    let port = prop::sample::select(vec!["", ":8443"]);
    let path = prop::collection::vec(prop::sample::select(vec!["v1", "v2", "a", "v1x"]), 0..3);
    (prop::bool::ANY, host, port, path).prop_map(|(https, host, port, path)| {
        let scheme = if https { "https" } else { "http" };
        site(&format!("{scheme}://{host}{port}/{}", path.join("/")))
    })
}

fn addresses() -> impl Strategy<Value = Url> {
    let host =
        prop::sample::select(vec!["example.org", "api.example.org", "eu.api.example.org", "127.0.0.1", "evil.example"]);
    let segment =
        prop::sample::select(vec!["v1", "v2", "a", "..", "%2e%2e", "%2f", "..%2f", "%5c", "v1x", "", ";", "%25"]);
    (prop::bool::ANY, host, prop::bool::ANY, prop::collection::vec(segment, 0..5)).prop_map(
        |(https, host, other, path)| {
            let scheme = if https { "https" } else { "http" };
            let port = if other { ":8443" } else { "" };
            Url::parse(&format!("{scheme}://{host}{port}/{}", path.join("/"))).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn a_covering_site_admits_everything_that_the_covered_one_admits(one in sites(), other in sites(), url in addresses()) {
        if one.covers(&other) && other.admits(&url) {
            prop_assert!(one.admits(&url), "{one} covers {other}, which admits {url}");
        }
    }

    #[test]
    fn the_intersection_admits_exactly_what_both_sites_admit(one in sites(), other in sites(), url in addresses()) {
        let both = one.admits(&url) && other.admits(&url);
        prop_assert_eq!(one.meet(&other).is_some_and(|meet| meet.admits(&url)), both, "{} and {}: {}", one, other, url);
        if let Some(meet) = one.meet(&other) {
            prop_assert!(one.covers(&meet) && other.covers(&meet));
        }
    }

    #[test]
    fn an_admitted_address_is_below_the_path_in_every_decoding(one in sites(), url in addresses()) {
        if one.admits(&url) && !one.path.is_empty() {
            let mut path = url.path().to_owned();
            for _ in 0..6 {
                let mut segments: Vec<&str> = Vec::new();
                for segment in path.split(['/', '\\']).filter(|segment| !segment.is_empty()) {
                    match segment {
                        ".." => drop(segments.pop()),
                        segment => segments.push(segment),
                    }
                }
                let read = format!("/{}", segments.join("/"));
                prop_assert!(is_below(&one.path, &read), "{one} admits {url}, which can be read as {read}");
                path = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
            }
        }
    }

    #[test]
    fn the_parser_never_panics(text in "\\PC{0,40}", url in "https?://[a-z.*%0-9\\\\/@:;]{0,30}") {
        for text in [text, url] {
            if let Ok(site) = text.parse::<Site>() {
                prop_assert_eq!(site.to_string().parse::<Site>(), Ok(site));
            }
        }
    }
}

#[test]
fn every_public_host_is_a_name_at_the_usual_port() {
    let every = site("https://*/");
    for (text, admitted) in [
        ("https://example.org/", true),
        ("https://a.b.example.org/x?y", true),
        ("https://xn--bcher-kva.example/", true),
        ("https://intranet/", true),
        ("http://example.org/", false),
        ("https://example.org:8443/", false),
        ("https://localhost/", false),
        ("https://1.1.1.1/", false),
        ("https://127.1/", false),
        ("https://0x7f000001/", false),
        ("https://2130706433/", false),
        ("https://[::1]/", false),
        ("https://[2606:4700::1111]/", false),
        ("https://user@example.org/", false),
    ] {
        assert_eq!(every.admits(&Url::parse(text).unwrap()), admitted, "{text}");
    }
    let (below, one) = (site("https://*.example.org/"), site("https://api.example.org/v1/"));
    assert!(every.covers(&below) && every.covers(&one) && every.covers(&every));
    assert!(!below.covers(&every) && !one.covers(&every) && !every.covers(&site("https://127.0.0.1/")));
    assert_eq!((every.meet(&one), one.meet(&every)), (Some(one.clone()), Some(one)));
    assert_eq!((every.meet(&site("http://*/")), every.host()), (None, None));
}
