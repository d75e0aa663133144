//! The bytes of one view under one prompt, built message by message.

use hermes_conversation::part::Payloads;
use hermes_conversation::render::Rendering;
use hermes_conversation::{Conversation, MessageId, Shown, View, ViewId};
use hermes_models::{ModelError, Prefix, Rendered, System};
use hermes_prompt::ledger::{Fingerprint, Sent};
use hermes_session_store::{Frozen, PromptNumber, SessionStore, StoreError, StoredView};

use super::RequestSettings;
use super::pictures::Album;
use crate::error::AgentError;
use crate::opening;

/// The bytes of one view under one prompt.
pub(super) struct Built {
    pub(super) prefix: Prefix,
    pub(super) fingerprint: Fingerprint,
    pub(super) prompt: PromptNumber,
    pub(super) view: ViewId,
    /// For each message in the prefix, the message of the log that it shows.
    pub(super) ids: Vec<Option<MessageId>>,
    pub(super) rendering: Rendering,
    /// The number of messages of the log that the bytes contain or summarise.
    pub(super) taken: usize,
    /// The index of the last summary at the beginning.
    pub(super) summaries: Option<usize>,
    /// Provider payloads that are included or left out.
    pub(super) payloads: Payloads,
    /// The pictures so far.
    pub(super) album: Album,
}

/// A log as a view shows it, before it is rendered.
pub(super) struct ShownLog {
    rendering: Rendering,
    shown: Vec<Shown>,
    /// The number of messages of the log.
    taken: usize,
}

impl ShownLog {
    pub(super) fn of(conversation: &Conversation, view: &View) -> Self {
        let (rendering, shown) = Rendering::of(conversation, view);
        Self { rendering, shown, taken: conversation.messages().len() }
    }
}

impl Built {
    pub(super) async fn new(
        store: &dyn SessionStore,
        terms: &RequestSettings,
        frozen: &Frozen,
        shown: ShownLog,
        stored: &StoredView,
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
            album: Album::of(terms, &shown),
        };
        for message in terms.ephemeral.shown() {
            built.push(&message, &terms.style.render(&message));
        }
        let summaries = shown.iter().take_while(|shown| shown.id.is_none()).count();
        for message in shown {
            built.add(store, terms, message).await?;
        }
        built.summaries = (summaries > 0).then(|| terms.ephemeral.prefill.len() + summaries - 1);
        Ok(built)
    }

    /// Renders a message and adds it.
    pub(super) async fn add(
        &mut self,
        store: &dyn SessionStore,
        terms: &RequestSettings,
        mut message: Shown,
    ) -> Result<(), StoreError> {
        if !terms.style.takes(&message) {
            return Ok(());
        }
        if !message.parts.is_empty() {
            self.payloads = self.payloads.and(message.keep_payloads_for(&terms.reader()));
        }
        // A model without image input gets the names of pictures.
        let sees_images = hermes_models::sees_images(&terms.model.provider, &terms.model.name) != Some(false);
        if !sees_images && !message.without_images() {
            return Ok(());
        }
        self.album.look_at(terms, &mut message);
        fill(store, &mut message).await?;
        let bytes = terms.style.render(&message);
        self.push(&message, &bytes);
        Ok(())
    }

    fn push(&mut self, message: &Shown, bytes: &Rendered) {
        self.prefix.push(bytes);
        self.ids.push(message.id);
    }

    pub(super) fn sent<'a>(&'a self, bytes: &'a [u8], identity: &'a str, ephemeral: Option<&'a str>) -> Sent<'a> {
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

/// Loads the bytes of pictures and files into a message before it is rendered.
async fn fill(store: &dyn SessionStore, message: &mut Shown) -> Result<(), StoreError> {
    for media in message.media_mut() {
        if let Some(hash) = media.blob().map(|blob| blob.hash.clone()) {
            media.set_bytes(store.blob(&hash).await?);
        }
    }
    Ok(())
}
