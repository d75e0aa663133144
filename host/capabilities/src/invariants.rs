//! Rules that hold for any input. The property tests of this crate and the targets in `fuzz/` call the same functions;
//! each panics if its rule is broken.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use url::Url;

use crate::http::{self, Site};
use crate::sql::{Budget, Database, Statement};

/// Checks an address against two grants: an admitted address has the scheme, host, port and path that the grant's text
/// names, and the two grants are consistent.
pub fn granted(grant: &str, other: &str, address: &str) {
    let Ok(site) = grant.parse::<Site>() else { return };
    assert_eq!(site.to_string().parse::<Site>().as_ref(), Ok(&site), "what {grant:?} means is not read back");
    assert!(site.covers(&site), "{site} does not cover itself");
    let Ok(address) = Url::parse(address) else { return };
    if site.admits(&address) {
        names(grant, &address);
    }
    let Ok(other) = other.parse::<Site>() else { return };
    if site.covers(&other) && other.admits(&address) {
        assert!(site.admits(&address), "{site} covers {other}, which admits {address}");
    }
    let both = site.admits(&address) && other.admits(&address);
    let shared = site.meet(&other);
    assert_eq!(shared.as_ref().is_some_and(|shared| shared.admits(&address)), both, "{site}, {other}: {address}");
    assert!(shared.is_none_or(|shared| site.covers(&shared) && other.covers(&shared)), "{site}, {other}");
}

/// Parses the text of a grant independently of [`Site`], and checks an admitted address against it.
fn names(grant: &str, address: &Url) {
    let (scheme, rest) = grant.split_once("://").expect("a grant has a scheme");
    if matches!(rest, "*" | "*/") {
        assert_eq!((scheme.to_ascii_lowercase().as_str(), address.port()), (address.scheme(), None), "{address}");
        assert!(address.username().is_empty() && address.password().is_none(), "{address} names a user");
        let name = matches!(address.host(), Some(url::Host::Domain(name)) if name != "localhost");
        return assert!(name, "{address} has no name that is looked up");
    }
    let below = rest.strip_prefix("*.");
    let named = Url::parse(&format!("{scheme}://{}", below.unwrap_or(rest))).expect("a grant is an address");
    assert!(matches!(address.scheme(), "https" | "http"), "{address}");
    assert_eq!((named.scheme(), named.port_or_known_default()), (address.scheme(), address.port_or_known_default()));
    assert!(address.username().is_empty() && address.password().is_none(), "{address} names a user");
    let (own, asked) = (named.host_str().unwrap(), address.host_str().unwrap());
    match below {
        None => assert_eq!(own, asked),
        Some(_) => assert!(asked.ends_with(&format!(".{own}")), "{asked} is not below {own}"),
    }
    let (mut own, mut asked) = (named.path().to_owned(), address.path().to_owned());
    if own.trim_end_matches('/').is_empty() {
        return;
    }
    // A server may decode any number of times.
    for _ in 0..8 {
        let (prefix, path) = (segments(&own), segments(&asked));
        assert!(path.starts_with(&prefix), "{address} can be read as {path:?}, which is not below {prefix:?}");
        own = percent_decode_str(&own).decode_utf8_lossy().into_owned();
        asked = percent_decode_str(&asked).decode_utf8_lossy().into_owned();
    }
}

/// The segments of a path, as a careless server resolves them.
fn segments(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']).filter(|segment| !segment.is_empty()) {
        match segment.split(';').next().unwrap_or(segment).trim() {
            "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    segments
}

/// Checks a numeric address: an address that the standard library knows as private is not public, in any notation.
pub fn public(address: u128) {
    let v4 = Ipv4Addr::from_bits(u32::try_from(address & u128::from(u32::MAX)).unwrap());
    let own = v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_broadcast()
        || v4.is_documentation()
        || v4.is_multicast()
        || v4.is_unspecified();
    assert!(!(own && http::is_public(v4.into())), "{v4}");
    let v6 = Ipv6Addr::from_bits(address);
    let own = v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        || v6.is_unique_local()
        || v6.is_unicast_link_local()
        || v6.to_ipv4_mapped().is_some();
    assert!(!(own && http::is_public(v6.into())), "{v6}");
    for carrier in [v4.to_ipv6_mapped(), v4.to_ipv6_compatible(), sixtofour(v4), translated(v4)] {
        assert!(!http::is_public(carrier.into()), "{carrier} carries {v4}");
        assert!(!http::is_loopback(carrier.into()) || v4.is_loopback() || carrier == Ipv6Addr::LOCALHOST);
    }
    assert!(!(http::is_public(IpAddr::V4(v4)) && http::is_loopback(IpAddr::V4(v4))), "{v4}");
}

fn sixtofour(v4: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x2002 << 112) | (u128::from(v4.to_bits()) << 80))
}

fn translated(v4: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits((0x0064_ff9b << 96) | u128::from(v4.to_bits()))
}

/// The tables that [`statement_ends`] makes.
const TABLES: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b TEXT)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS f USING fts5 (b)",
    "INSERT OR REPLACE INTO t VALUES (1, 'tea'), (2, printf('%.*c', 300000, 'a'))",
    "DELETE FROM f",
    "INSERT INTO f VALUES ('w x y z'), (replace(hex(zeroblob(50000)), '00', 'w '))",
];

/// Checks a statement with a budget of a quarter of a second: it ends not much later, and the next one works.
pub fn statement_ends(database: &Database, sql: &str) {
    /// Far more than a busy machine needs, and far less than the statements that this is about.
    const PATIENCE: Duration = Duration::from_secs(600);
    // Earlier statements may have left tables of another shape, for which these do not work.
    let _ = database.execute(&TABLES.map(|sql| Statement::new(sql, [])), &Budget::of(PATIENCE));
    let statement = Statement::new(sql, []);
    let short = || Budget::of(Duration::from_millis(250));
    let begun = Instant::now();
    let _ = database.query(&statement, &short());
    let _ = database.execute(&[statement], &short());
    assert!(begun.elapsed() < PATIENCE, "{sql:?} took {:?}", begun.elapsed());
    let one = database.query(&Statement::new("SELECT 1", []), &Budget::of(PATIENCE));
    assert_eq!(one.map(|rows| rows.rows.len()), Ok(1), "after {sql:?}");
    let dropped = ["DROP TABLE IF EXISTS t", "DROP TABLE IF EXISTS f"].map(|sql| Statement::new(sql, []));
    let _ = database.execute(&dropped, &Budget::of(PATIENCE));
}

#[cfg(test)]
mod tests;
