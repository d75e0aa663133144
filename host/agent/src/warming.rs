//! Requests that only keep a session's prefix in the provider's cache, during pauses of the user and during long tools.
//!
//! They repeat the last request with a reply of one token. When they pay is up to [`hermes_models::Pauses`].

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hermes_models::{Persistence, Request, ToolChoice};
use hermes_session_store::Frozen;

use crate::auxiliary::AuxiliaryLedger;
use crate::host::Host;
use crate::live::log::SessionLog;
use crate::outgoing::{Outgoing, WARMING};
use crate::served::ServedModel;

/// A request that takes longer is given up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Keeps the prefix of a session cached while that pays. Dropping the future ends it, and a request on its way with it.
pub(crate) async fn keep_warm(host: &Host, log: &SessionLog, frozen: &Frozen, outgoing: &mut Outgoing) -> Infallible {
    let clock = log.clock;
    while let Some(at) = outgoing.warm_at(frozen, &log.journal, clock.now()) {
        tokio::time::sleep(Duration::from_millis(at.saturating_sub(clock.now()))).await;
        // The machine may have slept for longer.
        if outgoing.is_cold(clock.now()) || !warm(host, log, outgoing).await {
            break;
        }
    }
    pending().await
}

/// Sends one such request. Returns false if the model cannot be asked for so short a reply.
async fn warm(host: &Host, log: &SessionLog, outgoing: &mut Outgoing) -> bool {
    let ServedModel { provider, model, .. } = host.chain.now();
    let Some((prefix, breakpoints)) = outgoing.warming() else { return false };
    let request = Request {
        model: &model.name,
        prefix: &prefix,
        breakpoints,
        max_tokens: Some(1),
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: host.effort,
    };
    if !provider.can_cap(&request) {
        return false;
    }
    let ledger = AuxiliaryLedger {
        store: Arc::clone(&host.store),
        session: log.session.clone(),
        clock: log.clock,
        prices: host.settings.prices.clone(),
    };
    let row = ledger.begin(WARMING.0, WARMING.1, model).await;
    let at = row.sent_at;
    let answered =
        match tokio::time::timeout(TIMEOUT, provider.complete_with(Persistence::Once, &request, &mut |_| {})).await {
            Ok(Ok(reply)) => {
                let row = ledger.complete_marked(row, reply.usage, &reply.model, breakpoints.ttl).await;
                reply.usage.map(|usage| (usage, row.cost))
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the prefix is not kept in the provider's cache");
                if !error.is_charged() {
                    ledger.withdraw(&row).await;
                }
                None
            }
            // The provider may have read the request and charges for it, so the row stays.
            Err(_) => None,
        };
    drop(prefix);
    outgoing.warmed(at, answered);
    true
}
