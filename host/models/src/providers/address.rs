//! Addresses: which host they are at, whether that is this machine, and the wire format that they imply.

use url::Url;

use crate::ApiMode;

/// The part of an address that implies its wire format. Paths count in any case, like hosts.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// The whole host.
    Host(&'static str),
    /// The end of the path.
    PathEnd(&'static str),
    /// One part of the path at this host.
    PathPart(&'static str, &'static str),
}

/// Addresses with another format than chat completions, besides those of [`PROVIDERS`](crate::PROVIDERS): gateways offer Anthropic's
/// API under a path of its own.
const SIGNS: &[(Sign, ApiMode)] = &[
    (Sign::Host("api.openai.com"), ApiMode::Responses),
    (Sign::Host("api.x.ai"), ApiMode::Responses),
    (Sign::Host("api.anthropic.com"), ApiMode::AnthropicMessages),
    (Sign::PathEnd("/anthropic"), ApiMode::AnthropicMessages),
    (Sign::PathEnd("/anthropic/v1"), ApiMode::AnthropicMessages),
    (Sign::PathPart("api.kimi.com", "coding"), ApiMode::AnthropicMessages),
];

/// The wire format that an address implies, if any.
pub(crate) fn mode_of_address(url: &Url) -> Option<ApiMode> {
    let path = url.path().trim_end_matches('/').to_ascii_lowercase();
    let fits = |sign: &Sign| match *sign {
        Sign::Host(whole) => is_at(url, whole),
        Sign::PathEnd(end) => path.ends_with(end),
        Sign::PathPart(whole, part) => is_at(url, whole) && path.split('/').any(|own| own == part),
    };
    SIGNS.iter().find(|(sign, _)| fits(sign)).map(|(_, mode)| *mode)
}

/// The host of an address: lower case, without port and trailing dot.
pub(crate) fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(host.trim_end_matches('.').to_ascii_lowercase())
}

/// Whether the host of an address is this one, as a whole. In a pattern such as `*.example.com`, a `*` is exactly one name
/// between dots. A look-alike such as `example.com.evil.test` never fits.
pub(crate) fn is_at(url: &Url, pattern: &str) -> bool {
    let Some(host) = host(url) else { return false };
    if !matches!(url.host(), Some(url::Host::Domain(_))) {
        return host == pattern;
    }
    let (names, wanted) = (host.split('.'), pattern.split('.'));
    names.clone().count() == wanted.clone().count()
        && names.zip(wanted).all(|(name, wanted)| wanted == "*" || wanted == name)
}

/// Whether an address is on this machine, so that no proxy lies between.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_gateway_implies_anthropics_messages_in_any_case() {
        let mode = |url: &str| mode_of_address(&Url::parse(url).unwrap());
        let messages = Some(ApiMode::AnthropicMessages);
        for address in [
            "https://host.test/Anthropic",
            "https://host.test/ANTHROPIC/V1/",
            "https://host.test/api/anthropic/v1",
            "https://API.Kimi.com/Coding/v1",
        ] {
            assert_eq!(mode(address), messages, "{address}");
        }
        for address in [
            "https://host.test/anthropic/v2",
            "https://host.test/Anthropic/chat",
            "https://host.test/my-anthropic",
            "https://host.test/v1?path=/anthropic",
            "https://api.kimi.com/encoding/v1",
        ] {
            assert_eq!(mode(address), None, "{address}");
        }
    }

    #[test]
    fn a_star_in_a_host_is_one_name() {
        let is = |url: &str, pattern: &str| is_at(&Url::parse(url).unwrap(), pattern);
        assert!(
            is("https://Mine.example.com./v1", "*.example.com") && is("https://a.eu.example.com", "a.*.example.com")
        );
        for url in [
            "https://example.com",
            "https://a.b.example.com",
            "https://mine.example.com.evil.test",
            "https://evil.test/mine.example.com",
        ] {
            assert!(!is(url, "*.example.com"), "{url}");
        }
        assert!(is("http://127.0.0.1:8080", "127.0.0.1") && !is("http://127.0.0.1", "*.0.0.1"));
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(
            is("http://localhost:1/v1") && is("http://127.8.9.1/") && is("http://[::1]/") && is("http://a.localhost/")
        );
        assert!(!is("http://localhost.evil.test/") && !is("http://10.0.0.1/") && !is("https://notlocalhost/"));
    }
}
