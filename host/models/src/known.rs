//! The providers that need no more than a key: data, read by `resolve` and by whoever lists them.
//!
//! `docs/models.md` lists the same table.

use url::Url;

/// The host of Anthropic's own API.
pub(crate) const ANTHROPIC_HOST: &str = "api.anthropic.com";

/// A provider whose address is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name in the configuration.
    pub id: &'static str,
    /// Where its API begins.
    pub base_url: &'static str,
    /// Environment variables that may hold its key, the usual one first; none for servers on this machine.
    pub keys: &'static [&'static str],
    /// The model when none is named; none where that depends on what is installed.
    pub model: Option<&'static str>,
    /// Whether it accepts `stream_options`, which asks for token counts at the end of a stream. One that does
    /// not sends the counts unasked.
    pub stream_options: bool,
}

const fn hosted(id: &'static str, base_url: &'static str, keys: &'static [&'static str], model: &'static str) -> Known {
    Known { id, base_url, keys, model: Some(model), stream_options: true }
}

const fn local(id: &'static str, base_url: &'static str) -> Known {
    Known { id, base_url, keys: &[], model: None, stream_options: true }
}

/// Every known provider. Names and addresses as their own documentation gives them.
pub const KNOWN: &[Known] = &[
    hosted("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"], "gpt-4.1"),
    hosted("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], "openrouter/auto"),
    hosted("anthropic", "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], "claude-sonnet-4-5"),
    hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "gemini-2.5-flash",
    ),
    hosted("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], "deepseek-chat"),
    hosted("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "llama-3.3-70b-versatile"),
    Known {
        stream_options: false,
        ..hosted("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], "mistral-large-latest")
    },
    hosted("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    hosted("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], "grok-4"),
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
];

impl Known {
    /// A provider by its name.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.id == id)
    }

    /// The hosted provider that an address belongs to: by its whole host, so that no look-alike matches.
    pub fn by_host(url: &Url) -> Option<&'static Self> {
        let host = host(url)?;
        KNOWN.iter().filter(|known| known.is_hosted()).find(|known| known.host() == host)
    }

    /// Whether it wants a key.
    pub fn is_hosted(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The host of its address.
    pub fn host(&self) -> &'static str {
        let rest = self.base_url.split_once("://").map_or(self.base_url, |(_, rest)| rest);
        &rest[..rest.find(['/', ':']).unwrap_or(rest.len())]
    }
}

/// The host of an address: lower case, without port and trailing dot.
pub(crate) fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(host.trim_end_matches('.').to_ascii_lowercase())
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
    fn every_provider_stands_in_the_documentation() {
        let page = include_str!("../../../docs/models.md");
        for known in KNOWN {
            let keys: Vec<String> = known.keys.iter().map(|key| format!("`{key}`")).collect();
            let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
            let model = known.model.map_or("none".to_owned(), |model| format!("`{model}`"));
            let row = format!("| `{}` | `{}` | {keys} | {model} |", known.id, known.base_url);
            assert!(page.contains(&row), "docs/models.md lacks the row {row}");
        }
    }

    #[test]
    fn the_table_holds_addresses_and_each_name_once() {
        for (at, known) in KNOWN.iter().enumerate() {
            let url = Url::parse(known.base_url).unwrap();
            assert_eq!(host(&url).unwrap(), known.host());
            assert!(!known.base_url.ends_with('/'));
            assert_eq!(known.is_hosted(), url.scheme() == "https" && !is_loopback(&url));
            assert!(KNOWN[at + 1..].iter().all(|other| other.id != known.id));
        }
    }

    #[test]
    fn an_address_belongs_to_a_provider_by_its_whole_host() {
        let by_host = |url: &str| Known::by_host(&Url::parse(url).unwrap()).map(|known| known.id);
        assert_eq!(by_host("HTTPS://API.OpenAI.com./v1"), Some("openai"));
        assert_eq!(by_host("https://api.openai.com:8443/v1"), Some("openai"));
        assert_eq!(by_host("https://api.openai.com.evil.test/v1"), None);
        assert_eq!(by_host("https://evil.test/?u=api.openai.com"), None);
        assert_eq!(by_host("https://evil.test/api.openai.com"), None);
        assert_eq!(by_host("http://127.0.0.1:11434/v1"), None, "a local server is known by its name only");
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
