//! The style of a route: its wire format, where it takes cache marks, and which reasoning goes back.
//!
//! Which routes of chat completions take marks is data of `providers`, and what goes back is data of `reasoning`. The route decides
//! and never the vendor of the model.

use hermes_conversation::Shown;
use url::Url;

use crate::{CallIds, Echo, Rendered, SchemaDialect, providers};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiMode {
    /// OpenAI's chat completions, spoken by most endpoints.
    ChatCompletions,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's messages.
    AnthropicMessages,
}

impl ApiMode {
    /// Every supported wire format.
    pub const ALL: &[ApiMode] = &[ApiMode::ChatCompletions, ApiMode::Responses, ApiMode::AnthropicMessages];

    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        self.format().name()
    }

    /// The reverse of [`ApiMode::as_str`], in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str().eq_ignore_ascii_case(name))
    }

    /// The wire format that an address implies, if any: by its whole host, or by the path under which
    /// gateways offer Anthropic's API beside their own.
    pub fn of_address(url: &Url) -> Option<Self> {
        providers::mode_of_address(url)
    }

    /// The names of all formats, for an error that lists them.
    pub(crate) fn names() -> String {
        let names: Vec<String> = Self::ALL.iter().map(|mode| format!("`{}`", mode.as_str())).collect();
        let (last, others) = names.split_last().expect("there are wire formats");
        format!("{} or {last}", others.join(", "))
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

/// What decides how a message is written. Bytes that were rendered in one style fit no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Style {
    /// The wire format.
    pub mode: ApiMode,
    /// Where marks go.
    pub marks: Marks,
    /// Which reasoning goes back.
    pub echo: Echo,
    /// Chat completions: which ids of calls are taken.
    pub ids: CallIds,
    /// How the server reads schemas of tools.
    pub schemas: SchemaDialect,
    /// Whether deferred tools are sent as such, and the results of a search load them. Otherwise they are left out: the model gets their
    /// definitions as text.
    pub defers: bool,
}

impl Style {
    /// Chat completions without marks.
    pub const PLAIN: Style = Style::new(ApiMode::ChatCompletions, Marks::None);

    /// A style of a provider that reads the reasoning which it writes.
    pub const fn new(mode: ApiMode, marks: Marks) -> Self {
        let schemas = match mode {
            ApiMode::AnthropicMessages => SchemaDialect::Anthropic,
            ApiMode::ChatCompletions | ApiMode::Responses => SchemaDialect::OpenAi,
        };
        Self { mode, marks, echo: Echo::RETURNED, ids: CallIds::Any, schemas, defers: false }
    }

    /// The style of a route: by the provider's name, or by the host where it has another name.
    pub fn of_route(mode: ApiMode, provider: &str, url: &Url, model: &str) -> Self {
        let format = mode.format();
        let marks = format.marks(providers::takes_chat_marks(provider, url));
        let ids = format.ids(providers::call_ids(provider, url));
        let schemas = format.schemas(providers::schemas(provider, url));
        let defers = format.can_defer() && providers::defers_tools(provider, url, model);
        Self { mode, marks, echo: format.echo(Echo::of(provider, url)), ids, schemas, defers }
    }

    /// Every style in which a request of this wire format may have been written, the likeliest first: this style, if it is one.
    pub fn candidates(self, mode: ApiMode) -> Vec<Self> {
        let format = mode.format();
        let mut candidates: Vec<Self> = Some(self).filter(|own| own.mode == mode).into_iter().collect();
        let all = CallIds::ALL.into_iter().flat_map(|ids| Echo::ALL.into_iter().map(move |echo| (ids, echo)));
        let all = all.flat_map(|kind| [false, true].map(|defers| (kind, defers)));
        let all = SchemaDialect::ALL.iter().flat_map(|schemas| all.clone().map(move |kind| (*schemas, kind)));
        for (schemas, ((ids, echo), defers)) in all {
            for marked in [false, true] {
                let (marks, echo, ids) = (format.marks(marked), format.echo(echo), format.ids(ids));
                let (schemas, defers) = (format.schemas(schemas), defers && format.can_defer());
                let candidate = Self { mode, marks, echo, ids, schemas, defers };
                // No provider combines special ids with returned reasoning or marks, nor a special dialect of schemas with
                // special ids or marks.
                let is_usual = schemas == Self::new(mode, Marks::None).schemas;
                let exists = (ids == CallIds::Any || (is_usual && echo.members.is_empty() && marks == Marks::None))
                    && (is_usual || marks == Marks::None);
                if exists && !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        }
        candidates
    }

    /// Whether a message is sent in this style. Only results of chat completions have no pictures of their own, so that the
    /// pictures are repeated behind them.
    pub fn takes(self, message: &Shown) -> bool {
        !message.repeats_pictures || self.mode == ApiMode::ChatCompletions
    }

    /// A message as it is sent: serialised here, once, and never again.
    pub fn render(self, message: &Shown) -> Rendered {
        self.mode.format().render(self, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_style_of_a_wire_format_is_tried_once() {
        let count = |mode| Style::PLAIN.candidates(mode).len();
        assert_eq!(Style::PLAIN.candidates(ApiMode::ChatCompletions)[0], Style::PLAIN);
        // Four other ways to read schemas are without marks.
        assert_eq!(count(ApiMode::ChatCompletions), (2 + 4) * Echo::ALL.len() + CallIds::ALL.len() - 1);
        assert_eq!(
            count(ApiMode::Responses),
            5 * 2,
            "its items say themselves what goes back, but not how schemas are read, or whether tools are deferred"
        );
        assert_eq!(
            count(ApiMode::AnthropicMessages),
            4,
            "with and without reasoning that is demanded, and deferred tools"
        );
    }

    #[test]
    fn the_documentation_names_every_wire_format_and_the_date_of_the_prices() {
        let page = include_str!("../../../docs/use/models.md");
        for mode in ApiMode::ALL {
            assert!(page.contains(&format!("- `{}`: ", mode.as_str())), "{mode:?}");
            assert_eq!(ApiMode::parse(&mode.as_str().to_ascii_uppercase()), Some(*mode));
        }
        assert!(page.contains(&format!("list prices as of {} from", crate::prices_as_of())));
    }
}
