//! Memory providers: whether they answer, and the turns that they have not stored.

use std::collections::BTreeSet;

use hermes_agent::OpenBreaker;
use hermes_plugin_host::record::{Record, Suspension};
use hermes_session_store::{Ledger, QueuedTurn};

use crate::{AppError, ModelChoice, Setup};

/// The selected memory provider, or one that is not used any more and for which turns wait.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Whether it is the selected one.
    pub is_selected: bool,
    /// Whether the plugin is installed.
    pub is_installed: bool,
    /// Its breaker, if it is open.
    pub breaker: Option<OpenBreaker>,
    /// The crashes that disabled it in its last session.
    pub suspension: Option<Suspension>,
    /// The turns that it has not stored, ordered by session and message.
    pub turns: Vec<QueuedTurn>,
}

/// What a retry changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retried {
    /// How many turns are sent again.
    pub turns: usize,
    /// The providers of these turns.
    pub of: BTreeSet<String>,
    /// The providers whose breaker was open: the next session asks them again.
    pub asked_again: Vec<String>,
}

/// The memory providers of a home, by their names.
///
/// # Errors
///
/// When the store cannot be read.
pub async fn providers(setup: &Setup) -> Result<Vec<Provider>, AppError> {
    let selected = setup.selection(&ModelChoice::default()).memory;
    let store = setup.store_to_read()?;
    let outbox = match &store {
        Some(store) => store.outbox().await?,
        None => Vec::new(),
    };
    let catalog = setup.catalog();
    let names: BTreeSet<&str> = outbox.iter().map(|turn| turn.provider.as_str()).chain(selected.as_deref()).collect();
    let mut providers = Vec::new();
    for name in names {
        let breaker = match &store {
            Some(store) => breaker(&**store, name).await?,
            None => None,
        };
        providers.push(Provider {
            name: name.to_owned(),
            is_selected: selected.as_deref() == Some(name),
            is_installed: catalog.get(name).is_some(),
            breaker,
            suspension: Record::read(setup.home.path(), name).unwrap_or_default().suspended,
            turns: outbox.iter().filter(|turn| turn.provider == name).cloned().collect(),
        });
    }
    Ok(providers)
}

/// Makes turns due now that memory providers have not stored, also those that were set aside, and lets open breakers ask again.
/// Without a name, all providers are meant.
///
/// # Errors
///
/// When the store cannot be read or written.
pub async fn retry(setup: &Setup, provider: Option<&str>) -> Result<Retried, AppError> {
    let store = setup.store()?;
    let is_meant = |name: &str| provider.is_none_or(|wanted| wanted == name);
    let of = store.outbox().await?.into_iter().map(|turn| turn.provider).filter(|name| is_meant(name));
    let of: BTreeSet<String> = of.collect();
    let turns = store.retry_turns(provider).await?;
    // A provider that only failed to recall has no turns that wait.
    let selected = setup.selection(&ModelChoice::default()).memory.filter(|name| is_meant(name));
    let mut asked_again = Vec::new();
    for name in of.iter().chain(&selected).collect::<BTreeSet<_>>() {
        if let Some(open) = breaker(&*store, name).await? {
            let note = serde_json::to_string(&open.asking_again()).unwrap_or_default();
            store.set_note(&OpenBreaker::note(name), Some(&note)).await?;
            asked_again.push(name.clone());
        }
    }
    Ok(Retried { turns, of, asked_again })
}

/// The breaker of a provider, if it is open.
async fn breaker(store: &dyn Ledger, provider: &str) -> Result<Option<OpenBreaker>, AppError> {
    let note = store.note(&OpenBreaker::note(provider)).await?;
    Ok(note.as_deref().and_then(OpenBreaker::read))
}
