//! The bytes of a session's requests, and the ledger entries about the provider's cache.
//!
//! As long as view and prompt stay the same, each request only appends bytes to the previous one. Another view or prompt
//! rebuilds all bytes; the previous bytes are kept for a comparison.

mod built;
mod pictures;
mod recorded;
mod warmth;

use std::time::Duration;

use hermes_conversation::part::Reader;
use hermes_conversation::render::Repairs;
use hermes_conversation::{Model, SessionId, Usage, ViewId, one_line_within};
use hermes_models::{Asked, Breakpoints, Lifetimes, Marks, Prefix, Price, Prices, Style, Ttl, TtlChoice};
use hermes_plugin_host::CacheState;
use hermes_prompt::ledger::{self, Cause, Finding, Keeping, Sent, Suspects};
use hermes_session_store::{Frozen, RequestRecord, Session, SessionStore};

use self::built::{Built, ShownLog};
use self::recorded::{Recorded, last_request};
use self::warmth::{DAY_MS, Warmth};
use crate::ephemeral::Ephemeral;
use crate::error::AgentError;
use crate::host::Host;
use crate::journal::Journal;
use crate::owner::HOST;
use crate::served::ServedModel;

/// Under which plugin and task the ledger has requests that only keep a prefix cached.
pub const WARMING: (&str, &str) = (HOST, "cache_warming");

/// Pauses of the last sixty days decide the lifetime of what is cached, of at most this many requests.
const HABITS_MS: u64 = 60 * 86_400_000;
const MOST_HABITS: u32 = 5_000;
/// The usual size of a token, where the provider has counted nothing.
const BYTES_PER_TOKEN: usize = 4;

/// The settings of a request that do not depend on its messages.
#[derive(Debug, Clone)]
pub(crate) struct RequestSettings {
    pub(crate) style: Style,
    pub(crate) model: Model,
    pub(crate) ephemeral: Ephemeral,
    /// Which lifetime of cached prefixes the user wants.
    pub(crate) choice: TtlChoice,
    /// The lifetime of the current request.
    pub(crate) ttl: Ttl,
    /// The model's window in tokens.
    pub(crate) window: u32,
    /// Unix time in milliseconds, from which on past requests tell the user's habits.
    pub(crate) since: u64,
    /// The list prices.
    pub(crate) prices: Prices,
    /// The most that warmings may cost within 24 hours, in US dollars.
    pub(crate) warming: f64,
}

impl RequestSettings {
    /// For the model that serves now.
    pub(crate) fn of(host: &Host) -> Self {
        let ServedModel { provider, model, .. } = host.chain.now();
        Self {
            style: provider.style(),
            model: model.clone(),
            ephemeral: host.settings.ephemeral.clone(),
            choice: host.settings.cache_ttl,
            ttl: match host.settings.cache_ttl {
                TtlChoice::Always(ttl) => ttl,
                TtlChoice::Auto => Ttl::FiveMinutes,
            },
            window: host.chain.window(),
            since: host.settings.clock.now().saturating_sub(HABITS_MS),
            prices: host.settings.prices.clone(),
            warming: host.settings.warming,
        }
    }

    /// The fields by which the ledger finds requests to the same cache.
    fn record(&self) -> RequestRecord {
        RequestRecord {
            provider: self.model.provider.clone(),
            model: self.model.name.clone(),
            api_mode: self.style.mode.as_str().to_owned(),
            ..RequestRecord::default()
        }
    }

    /// Provider, model and wire format. Each combination has its own cache.
    fn identity(&self) -> String {
        identity(&self.model.provider, &self.model.name, self.style.mode.as_str())
    }

    /// The model as the reader of payloads.
    fn reader(&self) -> Reader<'_> {
        Reader { provider: &self.model.provider, model: &self.model.name, api_mode: self.style.mode.as_str() }
    }

    fn lifetime(&self) -> Duration {
        self.ttl.duration()
    }

    /// Learns from the requests of all sessions to the same model: how long to cache, and whether warming pays. Each is `None` if there
    /// is nothing to choose: the route takes no marks, the user has decided, or the prices do not say what it would cost.
    async fn habits(&self, store: &dyn SessionStore) -> Result<(Option<Lifetimes>, Option<Warmth>), AgentError> {
        let price = self.prices.of(&self.model.provider, &self.model.name).filter(|_| self.style.marks != Marks::None);
        let is_dearer = price.is_some_and(|price| price.cache_write_1h > price.cache_write);
        let mut lifetimes = (self.choice == TtlChoice::Auto && is_dearer).then(|| Lifetimes::new(price, self.window));
        let mut warmth = price.filter(|_| self.warming > 0.0).map(|price| Warmth::new(price, self.warming));
        if lifetimes.is_none() && warmth.is_none() {
            return Ok((None, None));
        }
        for passed in store.requests_since(&self.record(), self.since, MOST_HABITS).await? {
            let estimate = passed.bytes as f64 / BYTES_PER_TOKEN as f64;
            let tokens = passed.input.filter(|input| *input > 0).map_or(estimate, f64::from);
            let asked = Asked { session: passed.session.as_str(), at_ms: passed.sent_at, tokens };
            if let Some(lifetimes) = &mut lifetimes {
                lifetimes.passed(&asked, known_ttl(passed.cache_ttl.as_deref()));
            }
            if let Some(warmth) = &mut warmth {
                warmth.sent(passed.session.as_str(), passed.sent_at);
            }
        }
        Ok((lifetimes, warmth))
    }
}

/// The lifetime that a row of the ledger names.
fn known_ttl(recorded: Option<&str>) -> Option<Ttl> {
    recorded?.parse().ok()
}

fn identity(provider: &str, model: &str, api_mode: &str) -> String {
    format!("{provider}/{model} ({api_mode})")
}

/// The previous request, for a comparison with the next one.
struct PreviousRequest {
    bytes: Bytes,
    tools: usize,
    system: usize,
    identity: String,
    view: ViewId,
    ephemeral: Option<String>,
    sent_at: u64,
    /// When the provider last read it from its cache: then, or at a warming.
    used_at: u64,
    /// The lifetime of what it wrote to the cache.
    ttl: Ttl,
    /// The model that answered, if the reply named another one than was asked.
    answered_by: Option<String>,
    usage: Option<Usage>,
}

/// The bytes of the previous request.
enum Bytes {
    /// A prefix of the current bytes, with its number of messages.
    Prefix { length: usize, messages: usize },
    /// The bytes of another view or prompt.
    Separate(Vec<u8>),
    /// The bytes cannot be rebuilt.
    Unavailable,
}

/// A request without its reply.
pub(crate) struct PendingRequest {
    /// Its row without a report.
    pub(crate) record: RequestRecord,
    /// The time since the previous request.
    pause: Duration,
    /// The time since the provider last used what it cached of the previous request.
    elapsed: Duration,
}

/// The requests of a session.
pub(crate) struct Outgoing {
    session: SessionId,
    terms: RequestSettings,
    /// Chooses the lifetime of each request, if there is a choice.
    lifetimes: Option<Lifetimes>,
    /// Decides about warmings, if there may be any.
    warmth: Option<Warmth>,
    /// What the warmings of the last pause cost and saved, until the user is told.
    kept_warm: Option<String>,
    built: Built,
    before: Option<PreviousRequest>,
    /// Whether the provider ever reported cache use.
    reports_cache: bool,
    /// The repairs that the user already knows.
    known_repairs: Repairs,
}

impl Outgoing {
    /// Builds the current bytes and restores the previous request.
    pub(crate) async fn begin(
        store: &dyn SessionStore,
        session: &Session,
        mut terms: RequestSettings,
        frozen: &Frozen,
        journal: &Journal,
    ) -> Result<Self, AgentError> {
        let (lifetimes, warmth) = terms.habits(store).await?;
        if let Some(last) = lifetimes.as_ref().and_then(|lifetimes| lifetimes.last(session.id.as_str())) {
            terms.ttl = last;
        }
        let view = journal.stored_view();
        let shown = ShownLog::of(&journal.conversation(), &view.view);
        let built = Built::new(store, &terms, frozen, shown, view).await?;
        let last = last_request(store, session).await?;
        let before = match &last {
            Some((owner, record)) => {
                let recorded = Recorded { owner, record, terms: &terms, built: &built, journal };
                Some(recorded.recall(store).await?)
            }
            None => None,
        };
        let like = terms.record();
        let mut reports_cache = store.cache_was_reported(&session.id, &like).await?;
        if let Some((owner, _)) = &last {
            reports_cache |= store.cache_was_reported(owner, &like).await?;
        }
        // The previous request already contained these repairs.
        let sent = before.as_ref().is_some_and(|before| matches!(before.bytes, Bytes::Prefix { .. }));
        let known_repairs = if sent { built.rendering.repairs() } else { Repairs::default() };
        let session = session.id.clone();
        let mut outgoing =
            Self { session, terms, lifetimes, warmth, kept_warm: None, built, before, reports_cache, known_repairs };
        outgoing.recall_warmings(store).await?;
        Ok(outgoing)
    }

    /// Counts the warmings that other processes sent.
    async fn recall_warmings(&mut self, store: &dyn SessionStore) -> Result<(), AgentError> {
        if self.lifetimes.is_some() || self.warmth.is_some() {
            let since = (self.terms.since + HABITS_MS).saturating_sub(DAY_MS);
            let rows = store.auxiliary_since(WARMING.0, WARMING.1, since).await?;
            self.restore_warmings(&rows);
        }
        Ok(())
    }

    /// Adds new messages, or rebuilds everything after a change of view or prompt.
    pub(crate) async fn catch_up(&mut self, frozen: &Frozen, journal: &Journal) -> Result<(), AgentError> {
        let store = journal.store();
        let view = journal.stored_view();
        if view.id != self.built.view || frozen.number != self.built.prompt {
            let shown = ShownLog::of(&journal.conversation(), &view.view);
            let anew = Built::new(store, &self.terms, frozen, shown, view).await?;
            self.replace(anew);
        }
        let new = {
            let conversation = journal.conversation();
            let new = self.built.rendering.follow(&conversation.messages()[self.built.taken..]);
            self.built.taken = conversation.messages().len();
            new
        };
        if self.built.album.outgrows(&self.terms, &new) {
            let shown = ShownLog::of(&journal.conversation(), &view.view);
            let anew = Built::new(store, &self.terms, frozen, shown, view).await?;
            self.replace(anew);
            return Ok(());
        }
        for message in new {
            self.built.add(store, &self.terms, message).await?;
        }
        Ok(())
    }

    /// Renders the conversation for another model, under the same prompt.
    pub(crate) async fn change_model(
        &mut self,
        terms: RequestSettings,
        session: &SessionId,
        frozen: &Frozen,
        journal: &Journal,
    ) -> Result<(), AgentError> {
        let store = journal.store();
        let reports_cache = store.cache_was_reported(session, &terms.record()).await?;
        let view = journal.stored_view();
        let shown = ShownLog::of(&journal.conversation(), &view.view);
        let anew = Built::new(store, &terms, frozen, shown, view).await?;
        (self.lifetimes, self.warmth) = terms.habits(store).await?;
        self.replace(anew);
        (self.terms, self.reports_cache) = (terms, reports_cache);
        self.recall_warmings(store).await
    }

    /// Replaces all bytes, and keeps those of the previous request.
    fn replace(&mut self, anew: Built) {
        let old = std::mem::replace(&mut self.built, anew);
        if let Some(before) = &mut self.before
            && let Bytes::Prefix { length, .. } = before.bytes
        {
            before.bytes = Bytes::Separate(old.prefix.bytes()[..length].to_vec());
        }
    }

    /// Repairs of the conversation that the user does not know yet.
    pub(crate) fn take_repairs(&mut self) -> Option<Repairs> {
        let repairs = self.built.rendering.repairs();
        let told = std::mem::replace(&mut self.known_repairs, repairs);
        (repairs.any() && repairs != told).then_some(repairs)
    }

    /// Whether the view has changed since the bytes were built.
    pub(crate) fn is_stale(&self, journal: &Journal) -> bool {
        journal.stored_view().id != self.built.view
    }

    pub(crate) fn prefix(&self) -> &Prefix {
        &self.built.prefix
    }

    /// The positions at which the provider should cache the prefix.
    pub(crate) fn breakpoints(&self) -> Breakpoints {
        let previous = match &self.before {
            Some(PreviousRequest { bytes: Bytes::Prefix { messages, .. }, .. }) => messages.checked_sub(1),
            _ => None,
        };
        Breakpoints { ttl: self.terms.ttl, summaries: self.built.summaries, previous }
    }

    /// Chooses how long the provider should keep what the next request writes to its cache.
    fn choose_lifetime(&mut self, now: u64) {
        // No provider counts a deferred tool before a result loads it.
        let hidden = self.built.prefix.hidden_len();
        let bytes = (self.built.prefix.bytes().len() - hidden) as f64;
        // By the provider's count of the previous request.
        let length = |before: &PreviousRequest| before.length().saturating_sub(hidden);
        let counted = self.before.as_ref().and_then(|before| Some((length(before), before.usage?.input)));
        let counted = counted.filter(|(length, input)| *length > 0 && *input > 0);
        let per_byte = counted.map_or(1.0 / BYTES_PER_TOKEN as f64, |(length, input)| f64::from(input) / length as f64);
        if let Some(lifetimes) = &mut self.lifetimes {
            let asked = Asked { session: self.session.as_str(), at_ms: now, tokens: bytes * per_byte };
            self.terms.ttl = lifetimes.choose(&asked);
        }
        if let Some(warmth) = &mut self.warmth {
            warmth.sent(self.session.as_str(), now);
        }
    }

    /// Compares the next request with the previous one, and begins its ledger entry.
    pub(crate) fn begin_request(&mut self, frozen: &Frozen, journal: &Journal, now: u64) -> PendingRequest {
        self.choose_lifetime(now);
        let fingerprint = self.built.fingerprint.of(self.built.prefix.bytes());
        let (identity, ephemeral) = (self.terms.identity(), self.terms.ephemeral.as_text());
        let sent = self.built.sent(self.built.prefix.bytes(), &identity, ephemeral.as_deref());
        let suspects = Suspects {
            view: &journal.stored_view().engine,
            prompt: &frozen.reason,
            ephemeral: "ephemeral_system_prompt or prefill",
        };
        let finding = match &self.before {
            None => ledger::compare(None, &sent, &suspects),
            Some(before @ PreviousRequest { bytes: Bytes::Unavailable, .. }) if before.identity == identity => {
                Finding {
                    prefix: 0,
                    cause: Some(Cause::Unknown),
                    culprit: Some("the previous request cannot be rebuilt".to_owned()),
                }
            }
            Some(before) => {
                let bytes = match &before.bytes {
                    Bytes::Prefix { length, .. } => &self.built.prefix.bytes()[..*length],
                    Bytes::Separate(bytes) => bytes,
                    Bytes::Unavailable => &[],
                };
                let before = Sent {
                    bytes,
                    tools: before.tools,
                    system: before.system,
                    model: &before.identity,
                    view: before.view,
                    ephemeral: before.ephemeral.as_deref(),
                };
                ledger::compare(Some(&before), &sent, &suspects)
            }
        };
        let since = |then: fn(&PreviousRequest) -> u64| {
            Duration::from_millis(self.before.as_ref().map_or(0, |before| now.saturating_sub(then(before))))
        };
        let (pause, elapsed) = (since(|before| before.sent_at), since(|before| before.used_at));
        let record = RequestRecord {
            sent_at: now,
            prompt: self.built.prompt,
            view: self.built.view,
            through: self.built.ids.iter().rev().find_map(|id| *id),
            bytes: self.built.prefix.bytes().len() as u64,
            fingerprint,
            prefix_bytes: finding.prefix as u64,
            cause: finding.cause.map(|cause| cause.as_str().to_owned()),
            culprit: finding.culprit,
            cache_ttl: (self.terms.style.marks != Marks::None).then(|| self.terms.ttl.as_str().to_owned()),
            ephemeral,
            payloads_replayed: self.built.payloads.replayed,
            payloads_dropped: self.built.payloads.dropped,
            ..self.terms.record()
        };
        PendingRequest { record, pause, elapsed }
    }

    /// Completes the ledger entry of a request with the provider's report. `answered` is the model that the reply names.
    pub(crate) fn finish_request(
        &mut self,
        pending: PendingRequest,
        usage: Option<Usage>,
        answered: Option<&str>,
    ) -> RequestRecord {
        /// A server can send a name of any length.
        const LONGEST_NAME: usize = 200;
        let PendingRequest { mut record, pause, elapsed } = pending;
        let answered = answered.map(|name| one_line_within(name, LONGEST_NAME));
        record.answered_by = answered.filter(|name| !name.is_empty() && *name != record.model);
        let before = self.before.as_ref().and_then(|before| before.usage);
        let kept = self.before.as_ref().map_or(self.terms.ttl, |before| before.ttl).duration();
        let same = self.before.as_ref().is_some_and(|before| before.identity == self.terms.identity());
        if let Some(usage) = &usage {
            if let (None, Some(before)) = (&record.cause, &before) {
                let keeping = Keeping { ttl: kept, reports: self.reports_cache };
                if let Some((cause, culprit)) = ledger::missed(before, usage, elapsed, keeping) {
                    record.cause = Some(cause.as_str().to_owned());
                    record.culprit = culprit;
                    if let (Cause::Unknown, Some(culprit)) = (cause, self.other_model(&record)) {
                        record.cause = Some(Cause::ModelChange.as_str().to_owned());
                        record.culprit = Some(culprit);
                    }
                }
            }
            self.reports_cache |= has_cache_use(usage);
            if let Some(price) = self.price(record.answered_by.as_deref()) {
                // A change of the prefix costs nothing after the cache has expired.
                let cold = elapsed > kept && !expired(&record);
                let broke = record.cause.is_some() && !cold;
                let lost = before.filter(|_| broke).map_or(0, |before| ledger::lost_tokens(&before, usage));
                self.bill(&mut record, usage, lost, &price);
            }
        }
        record.usage = usage;
        self.end_pause(pause > kept, usage.as_ref());
        self.before = Some(PreviousRequest {
            bytes: Bytes::Prefix { length: self.built.prefix.bytes().len(), messages: self.built.prefix.messages() },
            tools: self.built.prefix.tools_len(),
            system: self.built.prefix.ephemeral_start(),
            identity: self.terms.identity(),
            view: self.built.view,
            ephemeral: record.ephemeral.clone(),
            sent_at: record.sent_at,
            used_at: record.sent_at,
            ttl: self.terms.ttl,
            answered_by: record.answered_by.clone(),
            // A stopped reply reports no usage; the previous usage is the best estimate.
            usage: usage.or(before.filter(|_| same)),
        });
        record
    }

    /// The price of a request to this model that another one may have answered.
    fn price(&self, answered_by: Option<&str>) -> Option<Price> {
        self.terms.prices.of_reply(&self.terms.model.provider, &self.terms.model.name, answered_by)
    }

    /// Behind one alias, another model than before has no cache of the conversation.
    fn other_model(&self, record: &RequestRecord) -> Option<String> {
        let before = self.before.as_ref()?.answered_by.as_ref()?;
        let now = record.answered_by.as_ref().filter(|now| *now != before)?;
        Some(format!("{now} answered after {before}"))
    }

    fn bill(&self, record: &mut RequestRecord, usage: &Usage, lost: u32, price: &Price) {
        let ttl = self.terms.ttl;
        record.cost = Some(hermes_models::cost(usage, price, ttl));
        record.saved = Some(hermes_models::saved(usage, price, ttl));
        // Tokens that are not read from the cache cost the full price, or more if they are written to it again.
        let again = lost.min(usage.cache_write);
        let paid = f64::from(again) * price.write(ttl) + f64::from(lost - again) * price.input;
        record.lost = Some((paid - f64::from(lost) * price.cache_read) / 1e6);
    }

    /// The expected state of the provider's cache for the next request. Engines use it for planning.
    pub(crate) fn cache_state(&self, frozen: &Frozen, journal: &Journal, now: u64) -> CacheState {
        let price = self.price(self.before.as_ref().and_then(|before| before.answered_by.as_deref()));
        // The usual ratios of providers, if this model's prices are unknown.
        let (read_price, write_price) = price
            .filter(|price| price.input > 0.0)
            .map_or((0.1, 1.25), |price| (price.cache_read / price.input, price.write(self.terms.ttl) / price.input));
        let lifetime = u64::try_from(self.terms.lifetime().as_millis()).unwrap_or(u64::MAX);
        let kept = self.before.as_ref().map(|before| (before, before.used_at.saturating_add(lifetime)));
        let warm = kept.filter(|(before, until)| *until > now && before.identity == self.terms.identity());
        let anew = frozen.number != self.built.prompt || journal.stored_view().id != self.built.view;
        let is_other_model = self.before.as_ref().is_some_and(|before| before.identity != self.terms.identity());
        CacheState {
            warm_tokens: warm.map_or(0, |(before, _)| before.tokens()),
            warm_until: warm.map(|(_, until)| until),
            read_price: read_price as f32,
            write_price: write_price as f32,
            breaking: anew
                || is_other_model
                || warm.is_some_and(|(before, _)| !matches!(before.bytes, Bytes::Prefix { .. })),
        }
    }
}

impl PreviousRequest {
    /// The provider's count, or an estimate by the usual size of a token.
    fn tokens(&self) -> u32 {
        let estimate = u32::try_from(self.length() / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        self.usage.map(|usage| usage.input).filter(|input| *input > 0).unwrap_or(estimate)
    }

    /// Its bytes.
    fn length(&self) -> usize {
        match &self.bytes {
            Bytes::Prefix { length, .. } => *length,
            Bytes::Separate(bytes) => bytes.len(),
            Bytes::Unavailable => 0,
        }
    }
}

fn expired(record: &RequestRecord) -> bool {
    record.cause.as_deref() == Some(Cause::Expired.as_str())
}

fn has_cache_use(usage: &Usage) -> bool {
    usage.cache_read > 0 || usage.cache_write > 0
}
