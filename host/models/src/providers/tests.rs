#![allow(clippy::unwrap_used)]

use hermes_diagnostic::Diagnose as _;

use super::unsupported::UNSUPPORTED;
use super::*;
use crate::endpoint::address;
use crate::{Logins, Marks, Wanted, auth, resolve};

/// The lines of a table of `docs/use/models.md`, found by its heading row.
fn documented(heading: &str) -> Vec<&'static str> {
    let page = include_str!("../../../../docs/use/models.md");
    let mut lines = page.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "docs/use/models.md lacks the table {heading}");
    lines.skip(1).take_while(|line| line.starts_with('|')).collect()
}

fn code(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_documentation_shows_every_row_and_no_other() {
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let rows: Vec<String> = PROVIDERS
        .iter()
        .map(|row| {
            let address = row.base_url.map_or_else(|| "your own".to_owned(), |url| code(&[url]));
            let (aliases, model) = (code(row.aliases), or_none(code(row.model.as_slice())));
            let (keys, mode) = (or_none(code(row.keys)), row.api_mode.as_str());
            format!("| `{}` | {aliases} | {address} | {keys} | {model} | `{mode}` |", row.id)
        })
        .collect();
    let shown = documented("| `provider` | also | address | key | default model | wire format |");
    assert_eq!(shown, rows, "\n{}", rows.join("\n"));
    let marked = PROVIDERS.iter().filter(|row| row.chat_marks);
    let rows: Vec<String> = marked.map(|row| format!("| `{}` | {} |", row.id, code(row.hosts))).collect();
    assert_eq!(documented("| provider | hosts |"), rows);
    let rows: Vec<String> =
        UNSUPPORTED.iter().map(|row| format!("| {} | {} | {} |", code(row.names), row.reason, row.instead)).collect();
    let shown = documented("| not supported | because | instead |");
    assert_eq!(shown, rows, "\n{}", rows.join("\n"));
}

#[test]
fn every_row_is_consistent_and_has_its_own_names() {
    let names = |row: &ProviderRow| [&[row.id], row.aliases].concat();
    for (at, row) in PROVIDERS.iter().enumerate() {
        for name in names(row) {
            assert_eq!(ProviderRow::by_name(&name.to_ascii_uppercase()), Some(row), "{name}");
            assert!(unsupported(name).is_none(), "{name}");
            assert!(!["custom", "offline", "main", "auto"].contains(&name), "{name}");
            assert!(PROVIDERS[at + 1..].iter().all(|other| !names(other).contains(&name)), "{name}");
        }
        assert!(row.base_url.is_some() != row.own_address.is_some(), "{} needs an address, or an example", row.id);
        assert!(!row.is_hosted() || !row.keys.is_empty(), "{} is on the network and needs a key", row.id);
        let Some(url) = row.url() else { continue };
        assert!(!row.base_url.unwrap().ends_with('/'));
        assert_eq!(row.is_hosted(), url.scheme() == "https" && !is_loopback(&url));
        assert_eq!(row.is_hosted(), row.serves(&url));
        assert!(!row.is_hosted() || ProviderRow::by_host(&url) == Some(row), "{}", row.id);
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
    assert_eq!(by_host("https://mine.openai.azure.com/openai/v1"), Some("azure"));
    assert_eq!(by_host("https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1"), Some("bedrock"));
    // Several plans at one host differ in their paths.
    assert_eq!(by_host("https://opencode.ai/zen/v1"), Some("opencode-zen"));
    assert_eq!(by_host("https://opencode.ai/zen/go/v1"), Some("opencode-go"));
    assert_eq!(by_host("https://api.z.ai/api/coding/paas/v4"), Some("zai-coding"));
    assert_eq!(by_host("https://api.z.ai/api/anthropic"), Some("zai"));
    assert_eq!(by_host("https://api.z.ai/api/coding/paas/v40"), Some("zai"));
}

/// What goes over the wire to a provider.
struct Wire {
    url: &'static str,
    /// `bearer`, `x-api-key`, both, or empty for no key.
    key: &'static str,
    marks: Marks,
}

const fn wire(url: &'static str, key: &'static str, marks: Marks) -> Wire {
    Wire { url, key, marks }
}

/// For every row, in its order: where a request goes, which headers carry the key, and where marks go.
const WIRES: &[(&str, Wire)] = &[
    ("openai", wire("https://api.openai.com/v1/responses", "bearer", Marks::None)),
    ("openrouter", wire("https://openrouter.ai/api/v1/chat/completions", "bearer", Marks::Envelope)),
    ("anthropic", wire("https://api.anthropic.com/v1/messages", "x-api-key", Marks::Native)),
    ("nous", wire("https://inference-api.nousresearch.com/v1/chat/completions", "bearer", Marks::Envelope)),
    ("gemini", wire("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "bearer", Marks::None)),
    ("deepseek", wire("https://api.deepseek.com/v1/chat/completions", "bearer", Marks::None)),
    ("minimax", wire("https://api.minimax.io/anthropic/v1/messages", "bearer", Marks::Native)),
    ("minimax-cn", wire("https://api.minimaxi.com/anthropic/v1/messages", "bearer", Marks::Native)),
    ("kimi-coding", wire("https://api.moonshot.ai/v1/chat/completions", "bearer", Marks::None)),
    ("kimi-coding-cn", wire("https://api.moonshot.cn/v1/chat/completions", "bearer", Marks::None)),
    ("kimi-code", wire("https://api.kimi.com/coding/v1/messages", "bearer x-api-key", Marks::Native)),
    ("zai", wire("https://api.z.ai/api/paas/v4/chat/completions", "bearer", Marks::None)),
    ("zai-coding", wire("https://api.z.ai/api/coding/paas/v4/chat/completions", "bearer", Marks::None)),
    ("zai-cn", wire("https://open.bigmodel.cn/api/paas/v4/chat/completions", "bearer", Marks::None)),
    ("huggingface", wire("https://router.huggingface.co/v1/chat/completions", "bearer", Marks::None)),
    ("azure", wire("https://me.openai.azure.com/openai/v1/chat/completions", "bearer", Marks::None)),
    (
        "azure-foundry",
        wire("https://me.services.ai.azure.com/anthropic/v1/messages?api-version=2025-04-15", "bearer", Marks::Native),
    ),
    (
        "bedrock",
        wire("https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions", "bearer", Marks::None),
    ),
    ("nvidia", wire("https://integrate.api.nvidia.com/v1/chat/completions", "bearer", Marks::None)),
    ("xai", wire("https://api.x.ai/v1/responses", "bearer", Marks::None)),
    ("groq", wire("https://api.groq.com/openai/v1/chat/completions", "bearer", Marks::None)),
    ("mistral", wire("https://api.mistral.ai/v1/chat/completions", "bearer", Marks::None)),
    ("together", wire("https://api.together.xyz/v1/chat/completions", "bearer", Marks::None)),
    (
        "alibaba",
        wire("https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", "bearer", Marks::Envelope),
    ),
    ("opencode-zen", wire("https://opencode.ai/zen/v1/chat/completions", "bearer", Marks::Envelope)),
    ("opencode-go", wire("https://opencode.ai/zen/go/v1/chat/completions", "bearer", Marks::Envelope)),
    ("ollama-cloud", wire("https://ollama.com/v1/chat/completions", "bearer", Marks::None)),
    ("ollama", wire("http://127.0.0.1:11434/v1/chat/completions", "", Marks::None)),
    ("lmstudio", wire("http://127.0.0.1:1234/v1/chat/completions", "bearer", Marks::None)),
    ("llamacpp", wire("http://127.0.0.1:8080/v1/chat/completions", "bearer", Marks::None)),
    ("vllm", wire("http://127.0.0.1:8000/v1/chat/completions", "bearer", Marks::None)),
];

#[tokio::test]
async fn every_row_has_its_address_its_headers_its_format_and_its_marks() {
    assert_eq!(
        WIRES.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        PROVIDERS.iter().map(|row| row.id).collect::<Vec<_>>()
    );
    let logins = Logins::new(
        "/nonexistent/auth.json".into(),
        hermes_private_files::FileDocuments::below("/nonexistent".as_ref()),
    );
    for ((id, wire), row) in WIRES.iter().zip(PROVIDERS) {
        // Its last variable alone suffices, and no other key is there.
        let variable = |name: &str| (row.keys.last() == Some(&name)).then(|| "its-key".to_owned());
        let own = row.own_address.map(|_| wire.url.replace("/v1/messages?api-version=2025-04-15", ""));
        let wanted = Wanted {
            provider: Some((*id).to_owned()),
            model: Some("m".to_owned()),
            base_url: own,
            ..Wanted::default()
        };
        let route = resolve(&wanted, &variable, &Wanted::default()).unwrap();
        assert_eq!(address(route.base_url.as_ref().unwrap(), route.api_mode).as_str(), wire.url, "{id}");
        let headers = auth::for_route(&route, &logins, None).unwrap().authorize().await.unwrap().headers;
        let mut carriers = Vec::new();
        for (name, value) in &headers {
            carriers.push(match (name.as_str(), value.to_str().unwrap()) {
                ("authorization", "Bearer its-key") => "bearer",
                ("x-api-key", "its-key") => "x-api-key",
                other => panic!("{id}: {other:?}"),
            });
        }
        carriers.sort_unstable();
        assert_eq!(carriers.join(" "), wire.key, "{id}");
        assert_eq!(route.style().marks, wire.marks, "{id}");
        if row.is_hosted() {
            let error = resolve(&wanted, &|_| None, &Wanted::default()).unwrap_err().sentence();
            assert!(error.contains(row.keys[0]), "{id}: {error}");
        }
    }
}

#[test]
fn deferred_tools_are_decided_by_the_host_and_the_model_and_unknown_ones_get_the_common_form() {
    let anthropic = "https://api.anthropic.com";
    let openai = "https://api.openai.com/v1";
    for (model, expected) in
        [("gpt-5.4", true), ("gpt-5.6-sol", true), ("gpt-5.3-chat-latest", false), ("gpt-4.1", false)]
    {
        let style = |mode| crate::Style::of_route(mode, "openai", &Url::parse(openai).unwrap(), model).defers;
        assert_eq!(style(ApiMode::Responses), expected, "{model}");
        assert!(!style(ApiMode::ChatCompletions), "the format has no form for them");
    }
    for (provider, url, model, expected) in [
        ("anthropic", anthropic, "claude-sonnet-4-5", true),
        ("anthropic", anthropic, "claude-sonnet-4-20250514", true),
        ("anthropic", anthropic, "anthropic/claude-opus-4.6", true),
        ("anthropic", anthropic, "claude-haiku-4-5", true),
        ("anthropic", anthropic, "claude-opus-5-5", true),
        ("anthropic", anthropic, "claude-3-7-sonnet-20250219", false),
        ("anthropic", anthropic, "claude-3-5-haiku-20241022", false),
        ("anthropic", anthropic, "claude-unreleased-9", false),
        // A proxy under the provider's name, another name for the host, and an imitation of the format.
        ("anthropic", "http://127.0.0.1:4000", "claude-sonnet-4-5", true),
        ("custom", anthropic, "claude-sonnet-4-5", true),
        ("custom", "http://127.0.0.1:4000", "claude-sonnet-4-5", false),
        ("anthropic", "https://api.minimax.io/anthropic", "claude-sonnet-4-5", false),
    ] {
        let url = Url::parse(url).unwrap();
        assert_eq!(super::defers_tools(provider, &url, model), expected, "{provider} {url} {model}");
        let style = |mode| crate::Style::of_route(mode, provider, &url, model).defers;
        assert_eq!(style(ApiMode::AnthropicMessages), expected);
        assert!(!style(ApiMode::ChatCompletions), "the format has no form for them");
    }
}
