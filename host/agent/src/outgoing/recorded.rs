//! Finds an earlier request in the ledger and rebuilds its bytes, for the comparison with the next request.

use hermes_conversation::{Conversation, MessageId, Model, SessionId};
use hermes_models::ApiMode;
use hermes_prompt::ledger::Fingerprint;
use hermes_session_store::{Frozen, RequestRecord, Session, SessionStore, StoreError, StoredView};

use super::built::{Built, ShownLog};
use super::{Bytes, PreviousRequest, RequestSettings, identity, known_ttl};
use crate::ephemeral::Ephemeral;
use crate::error::AgentError;
use crate::journal::Journal;

/// The newest request of a session. For a branch without requests, the newest request of an ancestor that contains only
/// shared messages.
pub(super) async fn last_request(
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

/// An earlier request of the ledger, with the data to rebuild it.
pub(super) struct Recorded<'a> {
    /// The session that sent it.
    pub(super) owner: &'a SessionId,
    pub(super) record: &'a RequestRecord,
    pub(super) terms: &'a RequestSettings,
    pub(super) built: &'a Built,
    pub(super) journal: &'a Journal,
}

impl Recorded<'_> {
    /// Rebuilds the request from the log and its ledger entry.
    pub(super) async fn recall(&self, store: &dyn SessionStore) -> Result<PreviousRequest, AgentError> {
        let Self { owner, record, built, .. } = *self;
        let mut before = PreviousRequest {
            bytes: Bytes::Unavailable,
            tools: built.prefix.tools_len(),
            system: built.prefix.ephemeral_start(),
            identity: identity(&record.provider, &record.model, &record.api_mode),
            view: record.view,
            ephemeral: record.ephemeral.clone(),
            sent_at: record.sent_at,
            used_at: record.sent_at,
            ttl: known_ttl(record.cache_ttl.as_deref()).unwrap_or(self.terms.ttl),
            answered_by: record.answered_by.clone(),
            // A stopped reply reports no usage; the previous usage is the best estimate.
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
            before.bytes = Bytes::Prefix { length, messages };
            return Ok(before);
        }
        let (frozen, view) = (store.frozen(owner, record.prompt).await?, store.view(record.view).await?);
        if let (Some(frozen), Some(view)) = (frozen, view) {
            let view = StoredView { id: record.view, engine: String::new(), view };
            if let Some(old) = self.rebuild(store, &frozen, &view).await? {
                (before.tools, before.system) = (old.prefix.tools_len(), old.prefix.ephemeral_start());
                before.bytes = Bytes::Separate(old.prefix.bytes().to_vec());
            }
        }
        Ok(before)
    }

    /// The bytes of the request, with its prompt and view; `None` if they cannot be rebuilt.
    async fn rebuild(
        &self,
        store: &dyn SessionStore,
        frozen: &Frozen,
        view: &StoredView,
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
        // The ledger does not record where marks went and which reasoning. At most one style gives the recorded fingerprint.
        for style in terms.style.candidates(mode) {
            let model = Model { provider: record.provider.clone(), name: record.model.clone(), ..terms.model.clone() };
            let then = RequestSettings { style, model, ephemeral: ephemeral.clone(), ..(*terms).clone() };
            let shown = ShownLog::of(&seen, &view.view);
            let old = Built::new(store, &then, frozen, shown, view).await?;
            if Fingerprint::default().of(old.prefix.bytes()) == record.fingerprint {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }
}
