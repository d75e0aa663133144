//! How a route is spoken to: its wire format, and whether and where it takes cache marks.
//!
//! Which routes take marks is data. It goes by the route and never by the vendor of the model: a gateway that
//! understands marks passes them on to whoever wants them and drops them for the rest.

use hermes_conversation::Shown;
use url::Url;

use crate::{Rendered, known, wire};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiMode {
    /// OpenAI's chat completions, spoken by most endpoints.
    ChatCompletions,
    /// Anthropic's messages.
    AnthropicMessages,
}

impl ApiMode {
    /// Every wire format that is spoken.
    pub const ALL: &[ApiMode] = &[ApiMode::ChatCompletions, ApiMode::AnthropicMessages];

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            ApiMode::ChatCompletions => "chat_completions",
            ApiMode::AnthropicMessages => "anthropic_messages",
        }
    }

    /// The reverse of [`ApiMode::as_str`], in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str().eq_ignore_ascii_case(name))
    }

    /// The wire format that an address gives away, where it does: by its whole host, or by the path under which
    /// gateways offer Anthropic's API beside their own.
    pub fn of_address(url: &Url) -> Option<Self> {
        let host = known::host(url)?;
        let path = url.path().trim_end_matches('/');
        let messages = host == known::ANTHROPIC_HOST
            || ["/anthropic", "/anthropic/v1"].iter().any(|end| path.ends_with(end))
            || (host == "api.kimi.com" && path.split('/').any(|part| part == "coding"));
        messages.then_some(ApiMode::AnthropicMessages)
    }
}

/// Where a route takes `cache_control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Marks {
    /// Nowhere. Many such providers cache by themselves.
    None,
    /// In parts of messages of chat completions.
    Envelope,
    /// In blocks of Anthropic's messages.
    Native,
}

/// A route of chat completions that understands marks. On Anthropic's wire they belong to the format itself, so that
/// every route takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkedRoute {
    /// The provider's name in the configuration.
    pub provider: &'static str,
    /// The hosts of its API, whole.
    pub hosts: &'static [&'static str],
}

/// Every known route of chat completions that understands marks.
pub const MARKED_ROUTES: &[MarkedRoute] = &[
    MarkedRoute { provider: "openrouter", hosts: &["openrouter.ai"] },
    MarkedRoute { provider: "nous", hosts: &["inference-api.nousresearch.com"] },
    MarkedRoute { provider: "opencode", hosts: &["opencode.ai"] },
    MarkedRoute { provider: "opencode-zen", hosts: &["opencode.ai"] },
    MarkedRoute { provider: "opencode-go", hosts: &["opencode.ai"] },
    MarkedRoute { provider: "alibaba", hosts: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"] },
];

/// What decides how a message is written. Bytes that were rendered in one style fit no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Style {
    /// The wire format.
    pub mode: ApiMode,
    /// Where marks go.
    pub marks: Marks,
}

impl Style {
    /// Chat completions without marks.
    pub const PLAIN: Style = Style { mode: ApiMode::ChatCompletions, marks: Marks::None };

    /// The style of a route: by the provider's name, or by the host where it has another name.
    pub fn of_route(mode: ApiMode, provider: &str, url: &Url) -> Self {
        let marks = match mode {
            ApiMode::AnthropicMessages => Marks::Native,
            ApiMode::ChatCompletions => {
                let host = known::host(url).unwrap_or_default();
                let known =
                    MARKED_ROUTES.iter().any(|route| route.provider == provider || route.hosts.contains(&&*host));
                if known { Marks::Envelope } else { Marks::None }
            }
        };
        Self { mode, marks }
    }

    /// A message as it stands on the wire: serialised here, once, and never again.
    pub fn render(self, message: &Shown) -> Rendered {
        match self.mode {
            ApiMode::ChatCompletions => wire::chat::render(self, message),
            ApiMode::AnthropicMessages => wire::messages::render(self, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_and_prices_stand_in_the_documentation() {
        let page = include_str!("../../../docs/models.md");
        for route in MARKED_ROUTES {
            let hosts: Vec<String> = route.hosts.iter().map(|host| format!("`{host}`")).collect();
            let row = format!("| `{}` | {} |", route.provider, hosts.join(", "));
            assert!(page.contains(&row), "docs/models.md lacks the row {row}");
        }
        for mode in ApiMode::ALL {
            assert!(page.contains(&format!("- `{}`: ", mode.as_str())), "{mode:?}");
            assert_eq!(ApiMode::parse(&mode.as_str().to_ascii_uppercase()), Some(*mode));
        }
        assert!(page.contains(&format!("list prices as of {},", crate::prices_as_of())));
    }
}
