//! What goes out: the bytes that the requests of a session share, and the ledger of what a provider can hold of them.
//!
//! While view and prompt stay, bytes are only put behind those that are there. Another view or prompt makes new ones, and
//! what was sent before is kept to be compared with.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hermes_conversation::part::{Payloads, Reader};
use hermes_conversation::render::{Rendering, Repairs};
use hermes_conversation::{Conversation, Item, MessageId, Model, SessionId, Shown, Usage, View, ViewId};
use hermes_models::{ApiMode, Breakpoints, Marks, ModelError, Prefix, Price, Rendered, Style, System, Ttl};
use hermes_plugin_host::CacheState;
use hermes_prompt::ledger::{self, Cause, Finding, Fingerprint, Keeping, Sent, Suspects};
use hermes_session_store::{Frozen, PromptNumber, RequestRecord, Session, SessionStore, StoreError, StoredView};

use crate::ephemeral::Ephemeral;
use crate::error::AgentError;
use crate::journal::Journal;
use crate::opening;

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

/// The bytes of one view under one prompt.
struct Built {
    prefix: Prefix,
    fingerprint: Fingerprint,
    prompt: PromptNumber,
    view: ViewId,
    /// Of each message in the prefix, the one of the log that it shows.
    ids: Vec<Option<MessageId>>,
    rendering: Rendering,
    /// Messages of the conversation that are in it or stood for.
    taken: usize,
    /// The last of the summaries that the conversation begins with.
    summaries: Option<usize>,
    /// Payloads of providers that are in it, and those that were left out.
    payloads: Payloads,
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

/// A log as a view shows it, before it is rendered.
struct ShownLog {
    rendering: Rendering,
    shown: Vec<Shown>,
    /// Messages of the log that it takes into account.
    taken: usize,
}

impl ShownLog {
    fn of(conversation: &Conversation, view: &View) -> Self {
        let (rendering, shown) = Rendering::of(conversation, view);
        Self { rendering, shown, taken: conversation.messages().len() }
    }
}

impl Built {
    async fn new(
        store: &dyn SessionStore,
        terms: &Terms,
        frozen: &Frozen,
        shown: ShownLog,
        stored: &StoredView,
        rendered: &mut HashMap<MessageId, Rendered>,
    ) -> Result<Self, AgentError> {
        let ShownLog { rendering, shown, taken } = shown;
        let system = System {
            text: &frozen.system_prompt,
            stable: opening::stable_len(frozen),
            ephemeral: &terms.ephemeral.system,
        };
        let mut built = Self {
            prefix: Prefix::new(terms.style, &frozen.tools, system).map_err(ModelError::from)?,
            fingerprint: Fingerprint::default(),
            prompt: frozen.number,
            view: stored.id,
            ids: Vec::new(),
            rendering,
            taken,
            summaries: None,
            payloads: Payloads::default(),
        };
        for message in terms.ephemeral.shown() {
            built.push(&message, terms.style.render(&message));
        }
        let excerpts: HashSet<MessageId> = stored
            .view
            .items
            .iter()
            .filter_map(|item| if let Item::Excerpt(excerpt) = item { Some(excerpt.id) } else { None })
            .collect();
        let summaries = shown.iter().take_while(|shown| shown.id.is_none()).count();
        for message in shown {
            let id = message.id.filter(|id| !excerpts.contains(id));
            built.add(store, terms, message, id, rendered).await?;
        }
        built.summaries = (summaries > 0).then(|| terms.ephemeral.prefill.len() + summaries - 1);
        Ok(built)
    }

    /// Renders a message, or takes the bytes that were rendered before under this id, and adds it.
    async fn add(
        &mut self,
        store: &dyn SessionStore,
        terms: &Terms,
        mut message: Shown,
        id: Option<MessageId>,
        rendered: &mut HashMap<MessageId, Rendered>,
    ) -> Result<(), StoreError> {
        if !terms.style.takes(&message) {
            return Ok(());
        }
        if !message.parts.is_empty() {
            self.payloads = self.payloads.and(message.keep_payloads_for(&terms.reader()));
        }
        let bytes = match id.and_then(|id| rendered.get(&id)) {
            Some(bytes) => bytes.clone(),
            None => {
                fill(store, terms, &mut message).await?;
                let bytes = terms.style.render(&message);
                if let Some(id) = id {
                    rendered.insert(id, bytes.clone());
                }
                bytes
            }
        };
        self.push(&message, bytes);
        Ok(())
    }

    fn push(&mut self, message: &Shown, bytes: Rendered) {
        self.prefix.push(&bytes);
        self.ids.push(message.id);
    }

    fn sent<'a>(&'a self, bytes: &'a [u8], identity: &'a str, ephemeral: Option<&'a str>) -> Sent<'a> {
        Sent {
            bytes,
            tools: self.prefix.tools_len(),
            system: self.prefix.ephemeral_start(),
            model: identity,
            view: self.view,
            ephemeral,
        }
    }
}

/// Puts the bytes of pictures and files into a message, for as long as it is rendered. A model that reads no pictures gets
/// their names.
async fn fill(store: &dyn SessionStore, terms: &Terms, message: &mut Shown) -> Result<(), StoreError> {
    if hermes_models::sees_images(&terms.model.provider, &terms.model.name) == Some(false) {
        message.without_images();
    }
    for media in message.media_mut() {
        if let Some(hash) = media.blob().map(|blob| blob.hash.clone()) {
            media.set_bytes(store.blob(&hash).await?);
        }
    }
    Ok(())
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

/// The newest request of a session; of a branch that has made none, the newest of those that it goes on from and that shows
/// no more than they have in common.
async fn last_request(
    store: &dyn SessionStore,
    session: &Session,
) -> Result<Option<(SessionId, RequestRecord)>, StoreError> {
    if let Some(record) = store.last_request(&session.id, None).await? {
        return Ok(Some((session.id.clone(), record)));
    }
    let mut parent = session.parent.clone();
    let mut most = MessageId(u64::MAX);
    while let Some((id, through)) = parent.and_then(|parent| Some((parent.id, parent.through?))) {
        most = most.min(through);
        if let Some(record) = store.last_request(&id, Some(most)).await? {
            return Ok(Some((id, record)));
        }
        parent = store.session(&id).await?.parent;
    }
    Ok(None)
}

/// An earlier request as the ledger has it, and what it may be rebuilt from.
struct Recorded<'a> {
    /// The session that sent it.
    owner: &'a SessionId,
    record: &'a RequestRecord,
    terms: &'a Terms,
    built: &'a Built,
    journal: &'a Journal,
}

impl Recorded<'_> {
    /// Rebuilds the request from the log and from what is stored with it.
    async fn recall(
        &self,
        store: &dyn SessionStore,
        rendered: &mut HashMap<MessageId, Rendered>,
    ) -> Result<Before, AgentError> {
        let Self { owner, record, built, .. } = *self;
        let mut before = Before {
            bytes: Bytes::Gone,
            tools: built.prefix.tools_len(),
            system: built.prefix.ephemeral_start(),
            identity: identity(&record.provider, &record.model, &record.api_mode),
            view: record.view,
            ephemeral: record.ephemeral.clone(),
            sent_at: record.sent_at,
            // A stopped reply reports no usage; the usage before it is the next best.
            usage: match record.usage {
                Some(usage) => Some(usage),
                None => store.last_usage(owner, record).await?,
            },
        };
        let length = usize::try_from(record.bytes).unwrap_or(usize::MAX);
        let here = built.prefix.bytes().get(..length);
        if here.is_some_and(|bytes| Fingerprint::default().of(bytes) == record.fingerprint) {
            let in_it = |index: &usize| built.prefix.message_end(*index).is_some_and(|end| end <= length);
            let messages = (0..built.prefix.messages()).take_while(in_it).count();
            before.bytes = Bytes::Here { length, messages };
            return Ok(before);
        }
        let (frozen, view) = (store.frozen(owner, record.prompt).await?, store.view(record.view).await?);
        if let (Some(frozen), Some(view)) = (frozen, view) {
            let view = StoredView { id: record.view, engine: String::new(), view };
            if let Some(old) = self.rebuild(store, &frozen, &view, rendered).await? {
                (before.tools, before.system) = (old.prefix.tools_len(), old.prefix.ephemeral_start());
                before.bytes = Bytes::Elsewhere(old.prefix.bytes().to_vec());
            }
        }
        Ok(before)
    }

    /// The bytes that were sent, under the prompt and view of that time; `None` if they cannot be had any more.
    async fn rebuild(
        &self,
        store: &dyn SessionStore,
        frozen: &Frozen,
        view: &StoredView,
        rendered: &mut HashMap<MessageId, Rendered>,
    ) -> Result<Option<Built>, AgentError> {
        let Self { record, terms, journal, .. } = *self;
        let ephemeral = match record.ephemeral.as_deref().map(serde_json::from_str) {
            None => Ephemeral::default(),
            Some(Ok(ephemeral)) => ephemeral,
            Some(Err(_)) => return Ok(None),
        };
        let Some(mode) = ApiMode::parse(&record.api_mode) else { return Ok(None) };
        let seen = {
            let conversation = journal.conversation();
            let seen = conversation.messages().iter().take_while(|message| Some(message.id) <= record.through);
            Conversation::new(seen.cloned())
        };
        // The ledger does not record whether its route took marks, and only one of these gives the bytes that were sent.
        for marks in [terms.style.marks, Marks::None, Marks::Envelope, Marks::Native] {
            let model = Model { provider: record.provider.clone(), name: record.model.clone(), ..terms.model.clone() };
            let same_model = model == terms.model;
            let then = Terms { style: Style { mode, marks }, model, ephemeral: ephemeral.clone(), ttl: terms.ttl };
            // Messages rendered in another style are useless to this one; those of this style are as good as new.
            let mut others = HashMap::new();
            let known = if same_model && then.style == terms.style { &mut *rendered } else { &mut others };
            let shown = ShownLog::of(&seen, &view.view);
            let old = Built::new(store, &then, frozen, shown, view, known).await?;
            if Fingerprint::default().of(old.prefix.bytes()) == record.fingerprint {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }
}
