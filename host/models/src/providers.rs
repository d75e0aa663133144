//! Every provider that is known by name, each as one row of data. What is particular to a provider is a field here and
//! never a branch elsewhere.
//!
//! `rows.rs` has the rows, `custom.rs` those of the user, and `unsupported.rs` the providers that cannot be used, with the
//! reasons. `docs/use/models.md` shows the same tables; tests compare them.

mod address;
mod custom;
mod names;
mod rows;
mod unsupported;

use url::Url;

use crate::{ApiMode, CallIds, SchemaDialect};

pub(crate) use address::{host, is_at, is_loopback, mode_of_address};
pub use custom::{CustomFlaw, CustomProvider};
pub(crate) use names::Names;
pub use rows::PROVIDERS;
pub(crate) use unsupported::unsupported;

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
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The hosts of its API, whole and in lower case; a `*` is one name between dots. None for a server on this machine, which
    /// has no host of its own.
    pub hosts: &'static [&'static str],
    /// The usual base of its API; none if each user has an address of their own.
    pub base_url: Option<&'static str>,
    /// What such an address of one's own looks like.
    pub own_address: Option<&'static str>,
    /// The wire format that it speaks unless the address or the configuration says otherwise.
    pub api_mode: ApiMode,
    /// Environment variables that may hold its key, the usual one first. A server on this machine can do without a key.
    pub keys: &'static [&'static str],
    /// Whether its key alone in the environment chooses it. Some variables are usually set for another purpose.
    pub chosen_by_key: bool,
    /// The model when none is named; none if that depends on what is installed or offered.
    pub model: Option<&'static str>,
    /// Which headers carry the key, where that differs from the usual headers of the wire format.
    pub key_headers: &'static [(ApiMode, KeyHeader)],
    /// Members of the query that it wants, by wire format.
    pub query: &'static [(ApiMode, &'static str, &'static str)],
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
    /// Chat completions: which ids of calls it takes.
    pub call_ids: CallIds,
    /// Chat completions and the Responses API: how it reads schemas of tools.
    pub schemas: SchemaDialect,
    /// The most tools of a request, if it refuses more.
    pub most_tools: Option<usize>,
    /// Parts of the names of models for which it keeps definitions of tools out of the context until a result names them. Only
    /// wire formats that have a form for this use it.
    pub deferred_tools: &'static [&'static str],
}

/// A row with defaults.
const ROW: ProviderRow = ProviderRow {
    id: "",
    aliases: &[],
    hosts: &[],
    base_url: None,
    own_address: None,
    api_mode: ApiMode::ChatCompletions,
    keys: &[],
    chosen_by_key: true,
    model: None,
    key_headers: &[],
    query: &[],
    chat_version: None,
    stream_options: true,
    newer_cap: false,
    chat_marks: false,
    vendor_names: false,
    call_ids: CallIds::Any,
    schemas: SchemaDialect::OpenAi,
    most_tools: None,
    deferred_tools: &[],
};

impl ProviderRow {
    /// A provider by its name or an alias, in any case.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        PROVIDERS.iter().find(|row| is(&row.id) || row.aliases.iter().any(&is))
    }

    /// The hosted provider that an address belongs to: by its whole host, so that no look-alike matches. Of several plans at
    /// one host, the one whose path the address has.
    pub fn by_host(url: &Url) -> Option<&'static Self> {
        let here = PROVIDERS.iter().filter(|row| row.serves(url));
        // The first of equal ones counts.
        here.rev().max_by_key(|row| row.shared_path(url))
    }

    /// Providers that can be chosen by name alone.
    pub fn with_address() -> impl Iterator<Item = &'static Self> {
        PROVIDERS.iter().filter(|row| row.base_url.is_some())
    }

    /// Whether an address is at one of its hosts.
    pub(crate) fn serves(&self, url: &Url) -> bool {
        self.hosts.iter().any(|host| is_at(url, host))
    }

    /// The length of its path if the address has the same path, or one below it.
    fn shared_path(&self, url: &Url) -> usize {
        let base = self.url();
        let own = base.as_ref().map_or("", |base| base.path().trim_end_matches('/'));
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        if url.path().strip_prefix(own).is_some_and(is_below) { own.len() } else { 0 }
    }

    /// Whether it is a service on the network, which wants a key.
    pub fn is_hosted(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The usual base of its API.
    pub(crate) fn url(&self) -> Option<Url> {
        Url::parse(self.base_url?).ok()
    }

    /// What the query of an address must have on a wire format.
    pub(crate) fn query(&self, mode: ApiMode) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.query.iter().filter(move |(of, ..)| *of == mode).map(|(_, name, value)| (*name, *value))
    }

    /// Which headers carry a key on a wire format.
    pub(crate) fn key_header(&self, mode: ApiMode) -> Option<KeyHeader> {
        self.key_headers.iter().find(|(of, _)| *of == mode).map(|(_, header)| *header)
    }
}

/// Whether a route of chat completions understands cache marks: by the provider's name, or by the host where the provider
/// has another name.
pub(crate) fn takes_chat_marks(provider: &str, url: &Url) -> bool {
    let named = ProviderRow::by_name(provider).into_iter();
    named.chain(PROVIDERS.iter().filter(|row| row.serves(url))).any(|row| row.chat_marks)
}

/// Which ids of calls a route of chat completions takes: by the provider's name, or by the host where the provider has another
/// name.
pub(crate) fn call_ids(provider: &str, url: &Url) -> CallIds {
    let named = ProviderRow::by_name(provider).into_iter();
    let known = named.chain(PROVIDERS.iter().filter(|row| row.serves(url))).map(|row| row.call_ids);
    known.into_iter().find(|ids| *ids != CallIds::Any).unwrap_or_default()
}

/// How a route reads schemas of tools: by the provider's name, or by the host where the provider has another name.
pub(crate) fn schemas(provider: &str, url: &Url) -> SchemaDialect {
    let named = ProviderRow::by_name(provider).into_iter();
    let known = named.chain(PROVIDERS.iter().filter(|row| row.serves(url))).map(|row| row.schemas);
    known.into_iter().find(|schemas| *schemas != SchemaDialect::OpenAi).unwrap_or_default()
}

/// Whether a route's model takes definitions of tools that stay out of the context until a result names them: by the host's row, or by the
/// provider's name where the host is unknown. An unknown model does not: the common form works everywhere.
pub(crate) fn defers_tools(provider: &str, url: &Url, model: &str) -> bool {
    let row = ProviderRow::by_host(url).or_else(|| ProviderRow::by_name(provider));
    let name = model.to_ascii_lowercase().replace('.', "-");
    row.is_some_and(|row| row.deferred_tools.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests;
