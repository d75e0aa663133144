//! Every provider that is known by name, each as one row of data. What is particular to a provider is a field here and
//! never a branch elsewhere.
//!
//! `docs/models.md` shows the same rows; a test compares them.

use url::Url;

use crate::ApiMode;

/// Which headers carry a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// `x-api-key`.
    ApiKey,
    /// Both of them.
    Both,
}

/// A provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRow {
    /// Its name in the configuration.
    pub id: &'static str,
    /// The hosts of its API, whole and in lower case; a `*` is one name between dots. None for a server on this machine, which
    /// has no host of its own.
    pub hosts: &'static [&'static str],
    /// The usual base of its API; none where the configuration has to give one.
    pub base_url: Option<&'static str>,
    /// The wire format that it speaks unless the address or the configuration says otherwise.
    pub api_mode: ApiMode,
    /// Environment variables that may hold its key, the usual one first; none for servers on this machine, and for rows
    /// without an address.
    pub keys: &'static [&'static str],
    /// The model when none is named; none where that depends on what is installed.
    pub model: Option<&'static str>,
    /// Which headers carry the key, where that differs from the usual headers of the wire format.
    pub key_headers: &'static [(ApiMode, KeyHeader)],
    /// Chat completions: what comes between a base without a path and the endpoint.
    pub chat_version: Option<&'static str>,
    /// Chat completions: whether it accepts `stream_options`, which asks for token counts at the end of a stream. A
    /// provider that does not accept it sends the counts unasked.
    pub stream_options: bool,
    /// Chat completions: whether the cap on output has its newer name whatever the model.
    pub newer_cap: bool,
    /// Chat completions: whether it understands `cache_control` in parts of messages. A gateway that does passes the
    /// marks on to models that want them and drops them for others.
    pub chat_marks: bool,
    /// Anthropic's messages: whether models have the vendor's own names, so that `anthropic/claude-sonnet-4.5` is sent as
    /// `claude-sonnet-4-5`. A gateway may have names of its own.
    pub vendor_names: bool,
}

/// A row with defaults.
const ROW: ProviderRow = ProviderRow {
    id: "",
    hosts: &[],
    base_url: None,
    api_mode: ApiMode::ChatCompletions,
    keys: &[],
    model: None,
    key_headers: &[],
    chat_version: None,
    stream_options: true,
    newer_cap: false,
    chat_marks: false,
    vendor_names: false,
};

/// Every known provider. Names and addresses are those of the provider's own documentation.
pub const PROVIDERS: &[ProviderRow] = &[
    ProviderRow {
        id: "openai",
        hosts: &["api.openai.com"],
        base_url: Some("https://api.openai.com/v1"),
        api_mode: ApiMode::Responses,
        keys: &["OPENAI_API_KEY"],
        model: Some("gpt-4.1"),
        newer_cap: true,
        ..ROW
    },
    ProviderRow {
        id: "openrouter",
        hosts: &["openrouter.ai"],
        base_url: Some("https://openrouter.ai/api/v1"),
        keys: &["OPENROUTER_API_KEY"],
        model: Some("openrouter/auto"),
        chat_marks: true,
        ..ROW
    },
    ProviderRow {
        id: "anthropic",
        hosts: &["api.anthropic.com"],
        base_url: Some("https://api.anthropic.com"),
        api_mode: ApiMode::AnthropicMessages,
        keys: &["ANTHROPIC_API_KEY"],
        model: Some("claude-sonnet-4-5"),
        // A bearer token is another kind of credential here.
        key_headers: &[(ApiMode::AnthropicMessages, KeyHeader::ApiKey)],
        // The base is that of the vendor's own format, which lacks the version.
        chat_version: Some("/v1"),
        vendor_names: true,
        ..ROW
    },
    ProviderRow {
        id: "gemini",
        hosts: &["generativelanguage.googleapis.com"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-2.5-flash"),
        ..ROW
    },
    ProviderRow {
        id: "deepseek",
        hosts: &["api.deepseek.com"],
        base_url: Some("https://api.deepseek.com/v1"),
        keys: &["DEEPSEEK_API_KEY"],
        model: Some("deepseek-chat"),
        ..ROW
    },
    ProviderRow {
        id: "groq",
        hosts: &["api.groq.com"],
        base_url: Some("https://api.groq.com/openai/v1"),
        keys: &["GROQ_API_KEY"],
        model: Some("llama-3.3-70b-versatile"),
        ..ROW
    },
    ProviderRow {
        id: "mistral",
        hosts: &["api.mistral.ai"],
        base_url: Some("https://api.mistral.ai/v1"),
        keys: &["MISTRAL_API_KEY"],
        model: Some("mistral-large-latest"),
        stream_options: false,
        ..ROW
    },
    ProviderRow {
        id: "together",
        hosts: &["api.together.xyz"],
        base_url: Some("https://api.together.xyz/v1"),
        keys: &["TOGETHER_API_KEY"],
        model: Some("meta-llama/Llama-3.3-70B-Instruct-Turbo"),
        ..ROW
    },
    ProviderRow {
        id: "xai",
        hosts: &["api.x.ai"],
        base_url: Some("https://api.x.ai/v1"),
        api_mode: ApiMode::Responses,
        keys: &["XAI_API_KEY"],
        model: Some("grok-4"),
        ..ROW
    },
    ProviderRow { id: "ollama", base_url: Some("http://127.0.0.1:11434/v1"), ..ROW },
    ProviderRow { id: "lmstudio", base_url: Some("http://127.0.0.1:1234/v1"), ..ROW },
    ProviderRow { id: "nous", hosts: &["inference-api.nousresearch.com"], chat_marks: true, ..ROW },
    ProviderRow { id: "opencode", hosts: &["opencode.ai"], chat_marks: true, ..ROW },
    ProviderRow { id: "opencode-zen", hosts: &["opencode.ai"], chat_marks: true, ..ROW },
    ProviderRow { id: "opencode-go", hosts: &["opencode.ai"], chat_marks: true, ..ROW },
    ProviderRow {
        id: "alibaba",
        hosts: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
        chat_marks: true,
        ..ROW
    },
];

impl ProviderRow {
    /// A provider by its name, where the name alone says which address to ask.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        Self::with_address().find(|row| row.id == id)
    }

    /// The hosted provider that an address belongs to: by its whole host, so that no look-alike matches.
    pub fn by_host(url: &Url) -> Option<&'static Self> {
        PROVIDERS.iter().filter(|row| row.is_hosted()).find(|row| row.serves(url))
    }

    /// Providers that can be chosen by name alone.
    pub fn with_address() -> impl Iterator<Item = &'static Self> {
        PROVIDERS.iter().filter(|row| row.base_url.is_some())
    }

    /// Whether an address is at one of its hosts.
    pub(crate) fn serves(&self, url: &Url) -> bool {
        self.hosts.iter().any(|host| is_at(url, host))
    }

    /// Whether it wants a key.
    pub fn is_hosted(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The usual base of its API.
    pub(crate) fn url(&self) -> Option<Url> {
        Url::parse(self.base_url?).ok()
    }

    /// Which headers carry a key on a wire format.
    pub(crate) fn key_header(&self, mode: ApiMode) -> Option<KeyHeader> {
        self.key_headers.iter().find(|(of, _)| *of == mode).map(|(_, header)| *header)
    }
}

/// Whether a route of chat completions understands cache marks: by the provider's name, or by the host where the provider
/// has another name.
pub(crate) fn takes_chat_marks(provider: &str, url: &Url) -> bool {
    PROVIDERS.iter().any(|row| row.chat_marks && (row.id == provider || row.serves(url)))
}

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

/// Addresses with another format than chat completions, besides those of [`PROVIDERS`]: gateways offer Anthropic's
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

    /// The lines of a table of `docs/models.md`, found by its heading row.
    fn documented(heading: &str) -> Vec<&'static str> {
        let page = include_str!("../../../docs/models.md");
        let mut lines = page.lines().skip_while(|line| *line != heading);
        assert!(lines.next().is_some(), "docs/models.md lacks the table {heading}");
        lines.skip(1).take_while(|line| line.starts_with('|')).collect()
    }

    fn code(texts: &[&str]) -> String {
        texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_documentation_shows_every_row_and_no_other() {
        let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
        let rows: Vec<String> = ProviderRow::with_address()
            .map(|row| {
                let model = or_none(code(row.model.as_slice()));
                let (keys, mode) = (or_none(code(row.keys)), row.api_mode.as_str());
                format!("| `{}` | `{}` | {keys} | {model} | `{mode}` |", row.id, row.base_url.unwrap())
            })
            .collect();
        assert_eq!(documented("| `provider` | address | key | default model | wire format |"), rows);
        let marked = PROVIDERS.iter().filter(|row| row.chat_marks);
        let rows: Vec<String> = marked.map(|row| format!("| `{}` | {} |", row.id, code(row.hosts))).collect();
        assert_eq!(documented("| provider | hosts |"), rows);
    }

    #[test]
    fn every_row_is_consistent_and_has_its_own_name() {
        for (at, row) in PROVIDERS.iter().enumerate() {
            assert!(PROVIDERS[at + 1..].iter().all(|other| other.id != row.id), "{}", row.id);
            assert!(row.base_url.is_some() || !row.hosts.is_empty(), "{} can never be matched", row.id);
            let Some(url) = row.url() else { continue };
            assert!(!row.base_url.unwrap().ends_with('/'));
            assert_eq!(row.is_hosted(), url.scheme() == "https" && !is_loopback(&url));
            assert_eq!(row.is_hosted(), row.hosts.contains(&&*host(&url).unwrap()));
            assert_eq!(mode_of_address(&url).unwrap_or(ApiMode::ChatCompletions), row.api_mode, "{}", row.id);
        }
    }

    #[test]
    fn an_address_belongs_to_a_provider_by_its_whole_host() {
        let by_host = |url: &str| ProviderRow::by_host(&Url::parse(url).unwrap()).map(|row| row.id);
        assert_eq!(by_host("HTTPS://API.OpenAI.com./v1"), Some("openai"));
        assert_eq!(by_host("https://api.openai.com:8443/v1"), Some("openai"));
        assert_eq!(by_host("https://api.openai.com.evil.test/v1"), None);
        assert_eq!(by_host("https://evil.test/?u=api.openai.com"), None);
        assert_eq!(by_host("https://evil.test/api.openai.com"), None);
        assert_eq!(by_host("http://127.0.0.1:11434/v1"), None, "a local server is known by its name only");
    }

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
