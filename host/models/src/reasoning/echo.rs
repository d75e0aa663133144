//! Which reasoning of earlier replies a request carries, as data by provider.
//!
//! The conversation already holds only what the same provider, model and wire format wrote; this table says what of that goes
//! back, and where its absence is an error. `docs/use/models.md` shows the same rows; a test compares them.

use url::Url;

use crate::providers;

/// The member of a message with reasoning as one text, as DeepSeek, Kimi and vLLM send it.
pub(crate) const CONTENT_KEY: &str = "reasoning_content";
/// The member of a message with reasoning as a list of items, as OpenRouter sends it.
pub(crate) const DETAILS_KEY: &str = "reasoning_details";
/// The member of a message with reasoning as one text, as Ollama and Cerebras send it.
pub(crate) const TEXT_KEY: &str = "reasoning";
/// The member of a call with the signature of the thought before it, as Gemini sends it. A payload holds these members by the ids
/// of their calls.
pub(crate) const CALLS_KEY: &str = "extra_content";

/// The parts of earlier replies' reasoning that go back to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Echo {
    /// Chat completions: the members of a reply that go back unchanged. Others are only shown.
    pub members: &'static [&'static str],
    /// Whether the provider refuses a request in which a reply lacks its reasoning. A reply that has none, or that another model
    /// wrote, then gets a blank one, and reasoning without a signature goes back as well.
    pub demanded: bool,
}

impl Echo {
    /// The members in which the provider itself sent reasoning: servers read the members that they write.
    pub const RETURNED: Echo = Echo { members: &[CONTENT_KEY, DETAILS_KEY], demanded: false };
    const NOTHING: Echo = Echo { members: &[], demanded: false };
    const DEMANDED: Echo = Echo { members: &[CONTENT_KEY], demanded: true };
    const DETAILS: Echo = Echo { members: &[DETAILS_KEY], demanded: false };
    const TEXT: Echo = Echo { members: &[TEXT_KEY], demanded: false };
    const OF_CALLS: Echo = Echo { members: &[CALLS_KEY], demanded: false };

    /// Every kind of echo that a row may have.
    pub(crate) const ALL: [Echo; 6] =
        [Self::RETURNED, Self::NOTHING, Self::DEMANDED, Self::DETAILS, Self::TEXT, Self::OF_CALLS];

    /// The echo of a route: by the host, or else by the provider's name, because a proxy passes on what the provider wants.
    pub(crate) fn of(provider: &str, url: &Url) -> Self {
        let host = providers::host(url).unwrap_or_default();
        let by_host = ROWS.iter().find(|row| row.hosts.contains(&&*host));
        by_host
            .or_else(|| ROWS.iter().find(|row| row.providers.contains(&provider)))
            .map_or(Self::RETURNED, |row| row.echo)
    }
}

/// Providers with one kind of echo.
struct Row {
    providers: &'static [&'static str],
    hosts: &'static [&'static str],
    echo: Echo,
}

/// No row drops reasoning when a new turn begins: no provider refuses older reasoning, and dropping it would change bytes that
/// the provider's cache holds.
const ROWS: &[Row] = &[
    Row {
        providers: &["deepseek", "kimi", "kimi-coding", "moonshot", "xiaomi"],
        hosts: &["api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn", "api.kimi.com", "api.xiaomimimo.com"],
        echo: Echo::DEMANDED,
    },
    Row {
        providers: &["openrouter", "nous"],
        hosts: &["openrouter.ai", "inference-api.nousresearch.com"],
        echo: Echo::DETAILS,
    },
    Row { providers: &["ollama", "cerebras"], hosts: &["api.cerebras.ai"], echo: Echo::TEXT },
    Row { providers: &["gemini"], hosts: &["generativelanguage.googleapis.com"], echo: Echo::OF_CALLS },
    // These refuse members that they do not know.
    Row {
        providers: &["openai", "groq", "mistral"],
        hosts: &["api.openai.com", "api.groq.com", "api.mistral.ai"],
        echo: Echo::NOTHING,
    },
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_host_decides_and_else_the_name_of_the_provider() {
        for (provider, url, echo) in [
            ("deepseek", "https://api.deepseek.com/v1", Echo::DEMANDED),
            ("custom", "https://API.DeepSeek.com./v1", Echo::DEMANDED),
            ("kimi", "http://127.0.0.1:1/v1", Echo::DEMANDED),
            ("custom", "https://api.moonshot.cn/v1", Echo::DEMANDED),
            ("deepseek", "https://openrouter.ai/api/v1", Echo::DETAILS),
            ("custom", "https://api.cerebras.ai/v1", Echo::TEXT),
            ("ollama", "http://127.0.0.1:11434/v1", Echo::TEXT),
            ("gemini", "http://127.0.0.1:1/v1", Echo::OF_CALLS),
            ("groq", "https://api.groq.com/openai/v1", Echo::NOTHING),
            ("custom", "https://api.deepseek.com.evil.test/v1", Echo::RETURNED),
            ("custom", "http://127.0.0.1:8000/v1", Echo::RETURNED),
        ] {
            assert_eq!(Echo::of(provider, &Url::parse(url).unwrap()), echo, "{provider} {url}");
        }
    }

    #[test]
    fn the_documentation_shows_every_row_and_no_other() {
        let page = include_str!("../../../../docs/use/models.md");
        let mut lines = page.lines().skip_while(|line| !line.starts_with("| provider | hosts | what goes back |"));
        lines.next().expect("docs/use/models.md has the table of reasoning that goes back");
        let documented: Vec<&str> = lines.skip(1).take_while(|line| line.starts_with('|')).collect();
        let code = |texts: &[&str]| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
        let told = |echo: Echo| match (echo.members, echo.demanded) {
            ([], _) => "nothing".to_owned(),
            ([CALLS_KEY], _) => format!("`{CALLS_KEY}` of calls"),
            (members, false) => code(members),
            (members, true) => format!("{}, in every reply", code(members)),
        };
        let row = |row: &Row| format!("| {} | {} | {} |", code(row.providers), code(row.hosts), told(row.echo));
        let any = format!("| any other | | {} |", told(Echo::RETURNED));
        assert_eq!(documented, ROWS.iter().map(row).chain([any]).collect::<Vec<_>>());
        for (at, row) in ROWS.iter().enumerate() {
            let later = || ROWS[at + 1..].iter();
            assert!(row.providers.iter().all(|name| !later().any(|other| other.providers.contains(name))));
            assert!(row.hosts.iter().all(|host| !later().any(|other| other.hosts.contains(host))));
            assert!(Echo::ALL.contains(&row.echo));
        }
    }
}
