//! The ledger's rows of requests beside the conversation.

use std::sync::Arc;

use hermes_conversation::{Model, SessionId, Usage, one_line_within};
use hermes_models::{Prices, Ttl};
use hermes_session_store::{AuxiliaryRecord, SessionStore};

use crate::clock::Clock;

/// A server can send a model's name of any length.
const LONGEST_NAME: usize = 200;

/// Records the requests of a session that its plugins make. A failure to record is only logged: it must not take a model away.
#[derive(Clone)]
pub(crate) struct AuxiliaryLedger {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) session: SessionId,
    pub(crate) clock: Clock,
    pub(crate) prices: Prices,
}

impl AuxiliaryLedger {
    /// Records a request that is about to be sent. A process that dies meanwhile leaves this row.
    pub(crate) async fn begin(&self, plugin: &str, task: &str, model: &Model) -> AuxiliaryRecord {
        let mut record = AuxiliaryRecord {
            plugin: plugin.to_owned(),
            task: task.to_owned(),
            sent_at: self.clock.now(),
            provider: model.provider.clone(),
            model: model.name.clone(),
            ..AuxiliaryRecord::default()
        };
        match self.store.record_auxiliary(&self.session, &record).await {
            Ok(number) => record.number = number,
            Err(error) => tracing::warn!(%error, "a request of a plugin was not recorded in the ledger"),
        }
        record
    }

    /// Completes the row of a request without cache marks. `answered` is the model that the reply names.
    pub(crate) async fn complete(&self, record: AuxiliaryRecord, usage: Option<Usage>, answered: &str) {
        self.complete_marked(record, usage, answered, Ttl::FiveMinutes).await;
    }

    /// Completes the row of a request whose marks have this lifetime, and returns it.
    pub(crate) async fn complete_marked(
        &self,
        mut record: AuxiliaryRecord,
        usage: Option<Usage>,
        answered: &str,
        ttl: Ttl,
    ) -> AuxiliaryRecord {
        let answered = Some(one_line_within(answered, LONGEST_NAME));
        record.answered_by = answered.filter(|name| !name.is_empty() && *name != record.model);
        let price = self.prices.of_reply(&record.provider, &record.model, record.answered_by.as_deref());
        record.cost = usage.zip(price).map(|(usage, price)| hermes_models::cost(&usage, &price, ttl));
        record.usage = usage;
        if let Err(error) = self.store.complete_auxiliary(&self.session, &record).await {
            tracing::warn!(%error, "a request of a plugin was not completed in the ledger");
        }
        record
    }

    /// Removes the row of a request that no provider took.
    pub(crate) async fn withdraw(&self, record: &AuxiliaryRecord) {
        if let Err(error) = self.store.withdraw_auxiliary(&self.session, record.number).await {
            tracing::warn!(%error, "a refused request of a plugin stays in the ledger");
        }
    }
}
