//! What goes out: the bytes that the requests of a session share, and the ledger of what a provider can hold of them.
//!
//! While view and prompt stay, bytes are only put behind those that are there. Another view or prompt makes new ones, and
//! what was sent before is kept to be compared with.

mod built;
mod recorded;

use std::collections::HashMap;
use std::time::Duration;

use hermes_conversation::part::Reader;
use hermes_conversation::render::Repairs;
use hermes_conversation::{MessageId, Model, Usage, ViewId};
use hermes_models::{Breakpoints, Prefix, Price, Rendered, Style, Ttl};
use hermes_plugin_host::CacheState;
use hermes_prompt::ledger::{self, Cause, Finding, Keeping, Sent, Suspects};
use hermes_session_store::{Frozen, RequestRecord, Session, SessionStore};

use self::built::{Built, ShownLog};
use self::recorded::{Recorded, last_request};
use crate::ephemeral::Ephemeral;
use crate::error::AgentError;
use crate::journal::Journal;

/// Everything about a request that is settled before its messages are.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) style: Style,
    pub(crate) model: Model,
    pub(crate) ephemeral: Ephemeral,
    /// How long a prefix is kept.
    pub(crate) ttl: Ttl,
}

impl Terms {
    /// Provider, model and wire format: what has a cache of its own.
    fn identity(&self) -> String {
        identity(&self.model.provider, &self.model.name, self.style.mode.as_str())
    }

    /// The model, as payloads name the one that can read them.
    fn reader(&self) -> Reader<'_> {
        Reader { provider: &self.model.provider, model: &self.model.name, api_mode: self.style.mode.as_str() }
    }

    fn lifetime(&self) -> Duration {
        self.ttl.duration()
    }
}

fn identity(provider: &str, model: &str, api_mode: &str) -> String {
    format!("{provider}/{model} ({api_mode})")
}

/// The request before, as the next one is compared with it.
struct Before {
    bytes: Bytes,
    tools: usize,
    system: usize,
    identity: String,
    view: ViewId,
    ephemeral: Option<String>,
    sent_at: u64,
    usage: Option<Usage>,
}

/// What the request before consisted of.
enum Bytes {
    /// The beginning of what is there now, and how many messages are in it.
    Here { length: usize, messages: usize },
    /// Those of another view or prompt.
    Elsewhere(Vec<u8>),
    /// They cannot be put together again.
    Gone,
}

/// A request that is on its way.
pub(crate) struct Departed {
    record: RequestRecord,
    elapsed: Duration,
}

/// What a session sends.
pub(crate) struct Outgoing {
    terms: Terms,
    built: Built,
    /// Messages as they stand in a request, made once for a session.
    rendered: HashMap<MessageId, Rendered>,
    before: Option<Before>,
    /// Whether the provider ever said that it reads or writes a cache.
    reports: bool,
    /// What the user has read of repairs in the log.
    repairs_told: Repairs,
}

impl Outgoing {
    /// Puts together what the session's next request begins with, and what its last one was.
    pub(crate) async fn begin(
        store: &dyn SessionStore,
        session: &Session,
        terms: Terms,
        frozen: &Frozen,
        journal: &Journal,
    ) -> Result<Self, AgentError> {
        let mut rendered = HashMap::new();
        let view = journal.stored_view();
        let shown = ShownLog::of(&journal.conversation(), &view.view);
        let built = Built::new(store, &terms, frozen, shown, view, &mut rendered).await?;
        let last = last_request(store, session).await?;
        let before = match &last {
            Some((owner, record)) => {
                let recorded = Recorded { owner, record, terms: &terms, built: &built, journal };
                Some(recorded.recall(store, &mut rendered).await?)
            }
            None => None,
        };
        let like = RequestRecord {
            provider: terms.model.provider.clone(),
            model: terms.model.name.clone(),
            api_mode: terms.style.mode.as_str().to_owned(),
            ..RequestRecord::default()
        };
        let mut reports = store.cache_was_reported(&session.id, &like).await?;
        if let Some((owner, _)) = &last {
            reports |= store.cache_was_reported(owner, &like).await?;
        }
        // With these repairs the request before has left already.
        let sent = before.as_ref().is_some_and(|before| matches!(before.bytes, Bytes::Here { .. }));
        let repairs_told = if sent { built.rendering.repairs() } else { Repairs::default() };
        Ok(Self { terms, built, rendered, before, reports, repairs_told })
    }

    /// Takes in what was appended since, or begins anew where the view or the prompt is another one.
    pub(crate) async fn catch_up(&mut self, frozen: &Frozen, journal: &Journal) -> Result<(), AgentError> {
        let store = journal.store();
        let view = journal.stored_view();
        if view.id != self.built.view || frozen.number != self.built.prompt {
            let shown = ShownLog::of(&journal.conversation(), &view.view);
            let anew = Built::new(store, &self.terms, frozen, shown, view, &mut self.rendered).await?;
            let old = std::mem::replace(&mut self.built, anew);
            if let Some(before) = &mut self.before
                && let Bytes::Here { length, .. } = before.bytes
            {
                before.bytes = Bytes::Elsewhere(old.prefix.bytes()[..length].to_vec());
            }
        }
        let new = {
            let conversation = journal.conversation();
            let new = self.built.rendering.follow(&conversation.messages()[self.built.taken..]);
            self.built.taken = conversation.messages().len();
            new
        };
        for message in new {
            let id = message.id;
            self.built.add(store, &self.terms, message, id, &mut self.rendered).await?;
        }
        Ok(())
    }

    /// What was repaired so that a provider accepts the request; none where the user knows already.
    pub(crate) fn take_repairs(&mut self) -> Option<Repairs> {
        let repairs = self.built.rendering.repairs();
        let told = std::mem::replace(&mut self.repairs_told, repairs);
        (repairs.any() && repairs != told).then_some(repairs)
    }

    /// Whether the next request shows another view than the last one did.
    pub(crate) fn is_stale(&self, journal: &Journal) -> bool {
        journal.stored_view().id != self.built.view
    }

    pub(crate) fn prefix(&self) -> &Prefix {
        &self.built.prefix
    }

    /// Where the provider is asked to keep what it has read.
    pub(crate) fn breakpoints(&self) -> Breakpoints {
        let previous = match &self.before {
            Some(Before { bytes: Bytes::Here { messages, .. }, .. }) => messages.checked_sub(1),
            _ => None,
        };
        Breakpoints { ttl: self.terms.ttl, summaries: self.built.summaries, previous }
    }

    /// Compares the request that is about to leave with the one before it.
    pub(crate) fn depart(&mut self, frozen: &Frozen, journal: &Journal, now: u64) -> Departed {
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
            Some(before @ Before { bytes: Bytes::Gone, .. }) if before.identity == identity => Finding {
                prefix: 0,
                cause: Some(Cause::Unknown),
                culprit: Some("the request before cannot be put together again".to_owned()),
            },
            Some(before) => {
                let bytes = match &before.bytes {
                    Bytes::Here { length, .. } => &self.built.prefix.bytes()[..*length],
                    Bytes::Elsewhere(bytes) => bytes,
                    Bytes::Gone => &[],
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
        let elapsed = self.before.as_ref().map_or(0, |before| now.saturating_sub(before.sent_at));
        let record = RequestRecord {
            sent_at: now,
            provider: self.terms.model.provider.clone(),
            model: self.terms.model.name.clone(),
            api_mode: self.terms.style.mode.as_str().to_owned(),
            prompt: self.built.prompt,
            view: self.built.view,
            through: self.built.ids.iter().rev().find_map(|id| *id),
            bytes: self.built.prefix.bytes().len() as u64,
            fingerprint,
            prefix_bytes: finding.prefix as u64,
            cause: finding.cause.map(|cause| cause.as_str().to_owned()),
            culprit: finding.culprit,
            ephemeral,
            payloads_replayed: self.built.payloads.replayed,
            payloads_dropped: self.built.payloads.dropped,
            ..RequestRecord::default()
        };
        Departed { record, elapsed: Duration::from_millis(elapsed) }
    }

    /// Closes the account of a request that reached the provider, with what it reported.
    pub(crate) fn arrived(&mut self, departed: Departed, usage: Option<Usage>) -> RequestRecord {
        let Departed { mut record, elapsed } = departed;
        let before = self.before.as_ref().and_then(|before| before.usage);
        let same = self.before.as_ref().is_some_and(|before| before.identity == self.terms.identity());
        if let Some(usage) = &usage {
            if let (None, Some(before)) = (&record.cause, &before) {
                let keeping = Keeping { ttl: self.terms.lifetime(), reports: self.reports };
                if let Some((cause, culprit)) = ledger::missed(before, usage, elapsed, keeping) {
                    record.cause = Some(cause.as_str().to_owned());
                    record.culprit = culprit;
                }
            }
            self.reports |= reports(usage);
            if let Some(price) = hermes_models::price(&self.terms.model.provider, &self.terms.model.name) {
                // In a cache that had gone cold nothing is lost by moving.
                let cold = elapsed > self.terms.lifetime() && !expired(&record);
                let broke = record.cause.is_some() && !cold;
                let lost = before.filter(|_| broke).map_or(0, |before| ledger::lost_tokens(&before, usage));
                self.bill(&mut record, usage, lost, &price);
            }
        }
        record.usage = usage;
        self.before = Some(Before {
            bytes: Bytes::Here { length: self.built.prefix.bytes().len(), messages: self.built.prefix.messages() },
            tools: self.built.prefix.tools_len(),
            system: self.built.prefix.ephemeral_start(),
            identity: self.terms.identity(),
            view: self.built.view,
            ephemeral: record.ephemeral.clone(),
            sent_at: record.sent_at,
            // Of a reply that was stopped nothing is reported; the one before it is the next best.
            usage: usage.or(before.filter(|_| same)),
        });
        record
    }

    fn bill(&self, record: &mut RequestRecord, usage: &Usage, lost: u32, price: &Price) {
        let ttl = self.terms.ttl;
        record.cost = Some(hermes_models::cost(usage, price, ttl));
        record.saved = Some(hermes_models::saved(usage, price, ttl));
        // What is not read is paid for in full, and dearer where it is written again.
        let again = lost.min(usage.cache_write);
        let paid = f64::from(again) * write_price(price, ttl) + f64::from(lost - again) * price.input;
        record.lost = Some((paid - f64::from(lost) * price.cache_read) / 1e6);
    }

    /// What the provider can hold of the next request, for engines that plan by it.
    pub(crate) fn cache_state(&self, frozen: &Frozen, journal: &Journal, now: u64) -> CacheState {
        let price = hermes_models::price(&self.terms.model.provider, &self.terms.model.name);
        // What most providers ask, where this one's price is not known.
        let (read_price, write_price) = price.filter(|price| price.input > 0.0).map_or((0.1, 1.25), |price| {
            (price.cache_read / price.input, write_price(&price, self.terms.ttl) / price.input)
        });
        let lifetime = u64::try_from(self.terms.lifetime().as_millis()).unwrap_or(u64::MAX);
        let kept = self.before.as_ref().map(|before| (before, before.sent_at.saturating_add(lifetime)));
        let warm = kept.filter(|(before, until)| *until > now && before.identity == self.terms.identity());
        let anew = frozen.number != self.built.prompt || journal.stored_view().id != self.built.view;
        CacheState {
            warm_tokens: warm.map_or(0, |(before, _)| before.tokens()),
            warm_until: warm.map(|(_, until)| until),
            read_price: read_price as f32,
            write_price: write_price as f32,
            breaking: anew || warm.is_some_and(|(before, _)| !matches!(before.bytes, Bytes::Here { .. })),
        }
    }
}

impl Before {
    /// As the provider counted, or by the usual size of a token.
    fn tokens(&self) -> u32 {
        const BYTES_PER_TOKEN: usize = 4;
        let bytes = match &self.bytes {
            Bytes::Here { length, .. } => *length,
            Bytes::Elsewhere(bytes) => bytes.len(),
            Bytes::Gone => 0,
        };
        let estimate = u32::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        self.usage.map(|usage| usage.input).filter(|input| *input > 0).unwrap_or(estimate)
    }
}

fn write_price(price: &Price, ttl: Ttl) -> f64 {
    match ttl {
        Ttl::FiveMinutes => price.cache_write,
        Ttl::OneHour => price.cache_write_1h,
    }
}

fn expired(record: &RequestRecord) -> bool {
    record.cause.as_deref() == Some(Cause::Expired.as_str())
}

fn reports(usage: &Usage) -> bool {
    usage.cache_read > 0 || usage.cache_write > 0
}
