//! The shelf of a session: chosen for a new prompt, or read from a stored one.

use std::collections::BTreeSet;
use std::path::Path;

use hermes_models::ToolNames;

use super::settings::{Room, ShelfSettings};
use super::{Owned, Shelf, usage};
use crate::host::Host;
use crate::owner::HOST;
use crate::toolbox::Toolbox;

/// The room that the models of a session leave.
pub(crate) fn room(host: &Host) -> Room {
    let providers = host.chain.all().iter().map(|served| served.model.provider.as_str());
    host.settings.shelf.room(host.model.context_length, providers)
}

/// The shelf of a new prompt.
pub(crate) async fn chosen(host: &Host, workspace: &Path, toolbox: &Toolbox) -> Option<Shelf> {
    let ShelfSettings { enabled, pinned, deferred, .. } = &host.settings.shelf;
    if !enabled {
        return None;
    }
    let bundled: BTreeSet<String> =
        host.plugins.identities().into_iter().filter(|plugin| plugin.is_bundled).map(|plugin| plugin.name).collect();
    let stays = |owner: &str, tool: &str| {
        owner == HOST || bundled.contains(owner) || pinned.iter().any(|pinned| pinned == owner || pinned == tool)
    };
    let used = usage::most_used(host.store.as_ref(), workspace).await;
    let schemas = toolbox.schemas();
    let mut shelf = Shelf::choose(&schemas, room(host), stays, &used)?;
    // The list has to be right for each model that may serve the session.
    let takes_deferred = host.chain.all().iter().all(|served| served.provider.style().defers);
    shelf.is_deferred = *deferred && takes_deferred && shelf.can_be_deferred(&schemas);
    Some(shelf)
}

/// The shelf beside a stored prompt, whose tools these are; `None` if it has none.
pub(crate) fn beside(host: &Host, tools: &str, schemas: &[Owned]) -> Option<Shelf> {
    Shelf::beside(&ToolNames::of(tools), schemas, room(host))
}
