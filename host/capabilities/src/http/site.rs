//! A site: a scheme, a host, all hosts below one or every public host, a port, and a path with everything below it.
//!
//! Grants and audiences of secrets are sites. Both sides of every comparison go through the URL parser of the client, so
//! that an address has only one meaning.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// A part of the web, such as `https://api.example.org:8443/v1/`, `https://*.example.org/`, `https://*/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    https: bool,
    host: Hosts,
    port: u16,
    /// Empty, or `/` and segments, without a `/` at the end.
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Hosts {
    /// One host. An IPv6 address is in brackets.
    One(String),
    /// All hosts below this one, without itself.
    Below(String),
    /// Every host with a name. Not addresses in numbers and not `localhost`, so that the resolver checks each address.
    Every,
}

/// Why a text is not a site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// The text is not an address of the web.
    #[error("`{text}` is not an address such as https://api.example.org/v1/: {why}")]
    Address {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text names more than a site.
    #[error("`{text}` has {what}, which an address to be granted cannot have: leave it out")]
    Surplus {
        /// The text.
        text: String,
        /// The surplus part.
        what: &'static str,
    },
    /// The star is at a wrong place.
    #[error(
        "`{0}` has a `*` in another place than before a domain of at least two names, as in https://*.example.org/, or \
         alone for every public host, as in https://*/"
    )]
    Star(String),
    /// The path has more than one meaning.
    #[error("the path of `{text}` {why}: write it as the server sees it")]
    Path {
        /// The text.
        text: String,
        /// The other meaning.
        why: &'static str,
    },
}

impl FromStr for Site {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<Self, SiteError> {
        let address = |why: &str| SiteError::Address { text: text.to_owned(), why: why.to_owned() };
        // The parser would drop some of them silently.
        if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err(address("it has blanks or control characters"));
        }
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| address("it does not begin with https:// or http://"))?;
        // In `https:evil.example/x://`, the parser would take the first name as the host.
        if !scheme.chars().all(|character| character.is_ascii_alphanumeric()) {
            return Err(address("it does not begin with https:// or http://"));
        }
        if rest == "*" || rest == "*/" {
            let url = Url::parse(&format!("{scheme}://every.invalid/")).map_err(|error| address(&error.to_string()))?;
            return Ok(Self { host: Hosts::Every, ..Self::of(&url).map_err(|why| address(&why))? });
        }
        let (below, rest) = match rest.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        // The parser reads `\` as `/`, and skips any number of them before the host.
        if rest.starts_with('/') || rest.contains('\\') {
            return Err(address("there is no host after the `//`, or it has a `\\`"));
        }
        if rest.contains('*') {
            return Err(SiteError::Star(text.to_owned()));
        }
        let url = Url::parse(&format!("{scheme}://{rest}")).map_err(|error| address(&error.to_string()))?;
        // An encoded star would be read as a star when the site is stored and parsed again.
        if url.host_str().is_some_and(|host| host.contains('*')) {
            return Err(SiteError::Star(text.to_owned()));
        }
        for (there, what) in [
            (has_userinfo(&url), "a user or a password"),
            (url.query().is_some(), "a query"),
            (url.fragment().is_some(), "a fragment"),
        ] {
            if there {
                return Err(SiteError::Surplus { text: text.to_owned(), what });
            }
        }
        let mut site = Self::of(&url).map_err(|why| address(&why))?;
        if below {
            let two = matches!(url.host(), Some(Host::Domain(domain)) if domain.contains('.'));
            let Hosts::One(host) = site.host else { return Err(SiteError::Star(text.to_owned())) };
            if !two {
                return Err(SiteError::Star(text.to_owned()));
            }
            site.host = Hosts::Below(host);
        }
        if let Some(why) = ambiguity(&site.path) {
            return Err(SiteError::Path { text: text.to_owned(), why });
        }
        Ok(site)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.https { "https://" } else { "http://" })?;
        match &self.host {
            Hosts::One(host) => f.write_str(host)?,
            Hosts::Below(host) => write!(f, "*.{host}")?,
            Hosts::Every => f.write_str("*")?,
        }
        if self.port != if self.https { 443 } else { 80 } {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "{}/", self.path)
    }
}

impl Site {
    /// The site of one address: the address and everything below it.
    fn of(url: &Url) -> Result<Self, String> {
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(format!("`{other}` is neither https nor http")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?;
        // A final dot makes no difference to the resolver, but to certificates and comparisons.
        if host.ends_with('.') {
            return Err("its host ends with a dot".to_owned());
        }
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or("its port is 0")?;
        let path = url.path().trim_end_matches('/').to_owned();
        Ok(Self { https, host: Hosts::One(host.to_owned()), port, path })
    }

    /// Whether the site contains an address. If the site has a path, an address with an ambiguous path is outside of it.
    pub fn admits(&self, url: &Url) -> bool {
        if has_userinfo(url) {
            return false;
        }
        let Ok(asked) = Self::of(url) else { return false };
        (self.path.is_empty() || ambiguity(url.path()).is_none()) && self.covers(&asked)
    }

    /// Whether the site contains another one.
    pub fn covers(&self, other: &Self) -> bool {
        self.https == other.https
            && self.port == other.port
            && self.host.covers(&other.host)
            && is_below(&self.path, &other.path)
    }

    /// The intersection of two sites.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        if self.https != other.https || self.port != other.port {
            return None;
        }
        let host = match (self.host.covers(&other.host), other.host.covers(&self.host)) {
            (true, _) => &other.host,
            (_, true) => &self.host,
            _ => return None,
        };
        let path = match (is_below(&self.path, &other.path), is_below(&other.path, &self.path)) {
            (true, _) => &other.path,
            (_, true) => &self.path,
            _ => return None,
        };
        Some(Self { https: self.https, host: host.clone(), port: self.port, path: path.clone() })
    }

    /// Whether connections to the site are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.https
    }

    /// The only host of the site, without brackets. None if it means several.
    pub fn host(&self) -> Option<&str> {
        match &self.host {
            Hosts::One(host) => Some(host.trim_start_matches('[').trim_end_matches(']')),
            Hosts::Below(_) | Hosts::Every => None,
        }
    }

    /// Whether the site means every public host.
    pub fn is_every_host(&self) -> bool {
        self.host == Hosts::Every
    }
}

impl Hosts {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(own), Self::One(other)) => own == other,
            (Self::Below(own), Self::One(other)) => is_subdomain(other, own),
            (Self::Below(own), Self::Below(other)) => own == other || is_subdomain(other, own),
            (Self::Every, Self::One(other)) => is_name(other),
            (Self::Every, Self::Below(_) | Self::Every) => true,
            (Self::One(_), Self::Below(_)) | (Self::One(_) | Self::Below(_), Self::Every) => false,
        }
    }
}

/// Whether a host in the parser's spelling is a name that a resolver looks up.
fn is_name(host: &str) -> bool {
    host != "localhost" && !host.starts_with('[') && host.parse::<std::net::Ipv4Addr>().is_err()
}

fn is_subdomain(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).and_then(|front| front.strip_suffix('.')).is_some_and(|front| !front.is_empty())
}

fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn has_userinfo(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// How often a path is decoded in search of another meaning.
const DECODINGS: usize = 4;

/// Why a server may read a path as a different one: it may decode more than once, read `\` as `/`, cut parameters off a
/// segment, or stop at a control character. The parser has already resolved plain dots.
fn ambiguity(path: &str) -> Option<&'static str> {
    let mut path = path.to_owned();
    for _ in 0..DECODINGS {
        if path.chars().any(char::is_control) {
            return Some("has a control character");
        }
        if path.contains('\\') {
            return Some("has a `\\`");
        }
        let climbs = |segment: &str| matches!(segment.split(';').next().map(str::trim), Some("." | ".."));
        if path.split('/').any(climbs) {
            return Some("has `.` or `..` as a segment");
        }
        match percent_encoding::percent_decode_str(&path).decode_utf8() {
            Ok(decoded) if decoded == path => return None,
            Ok(decoded) => path = decoded.into_owned(),
            Err(_) => return Some("encodes what is not UTF-8"),
        }
    }
    Some("is encoded over and over")
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
