//! Connections that several sessions of a process use, where the user says that the server keeps nothing between calls.
//!
//! Sessions in the same folder with the same definition share one: then roots and sandbox are the same, too. Such a server can
//! ask neither the user nor a model, because its requests do not name a session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use url::Url;

use crate::connection::Connection;
use crate::definition::ServerDefinition;
use crate::error::Cause;
use crate::front::Front;
use crate::listing::Listing;
use crate::sampling::{Sampled, Sampling};

/// A connection with the list that came with it.
type Opened = (Arc<Connection>, Arc<Listing>);

/// A server that sessions share.
struct Place {
    definition: Arc<ServerDefinition>,
    roots: Vec<PathBuf>,
    /// The connection, while a session has it. Locked while it is established, so that all wait for the same one.
    opened: Arc<tokio::sync::Mutex<(Weak<Connection>, Arc<Listing>)>>,
}

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// The connection of another session of this process, or a new one that `open` establishes.
pub(crate) async fn opened(
    definition: &Arc<ServerDefinition>,
    roots: Vec<PathBuf>,
    open: impl Future<Output = Result<Opened, Cause>>,
) -> Result<Opened, Cause> {
    let place = {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        // Forget connections that no session uses or opens any more.
        places.retain(|place| {
            Arc::strong_count(&place.opened) > 1
                || place.opened.try_lock().is_ok_and(|opened| opened.0.strong_count() > 0)
        });
        match places.iter().find(|place| place.definition == *definition && place.roots == roots) {
            Some(place) => Arc::clone(&place.opened),
            None => {
                let opened = Arc::default();
                places.push(Place { definition: Arc::clone(definition), roots, opened: Arc::clone(&opened) });
                opened
            }
        }
    };
    let mut known = place.lock().await;
    if let Some(connection) = known.0.upgrade().filter(|connection| !connection.is_closed()) {
        return Ok((connection, Arc::clone(&known.1)));
    }
    let (connection, listing) = open.await?;
    *known = (Arc::downgrade(&connection), Arc::clone(&listing));
    Ok((connection, listing))
}

/// The front of a shared server: what a session answers for all of them.
pub(crate) struct SharedFront(pub(crate) Arc<dyn Front>);

#[async_trait]
impl Front for SharedFront {
    fn notice(&self, text: String) {
        self.0.log(true, &text);
    }

    /// A shared server's progress does not say which session's call it belongs to.
    fn progress(&self, _: &str) {}

    fn log(&self, is_warning: bool, text: &str) {
        self.0.log(is_warning, text);
    }

    async fn ask(&self, _: String, _: Vec<String>, _: bool) -> Option<String> {
        None
    }

    fn is_attended(&self) -> bool {
        false
    }

    async fn sample(&self, _: Sampling) -> Result<Sampled, String> {
        Err("a server that sessions share asks no model".to_owned())
    }

    async fn token(&self, url: &Url, refused: Option<&str>) -> Result<Option<String>, String> {
        self.0.token(url, refused).await
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.0.roots()
    }
}
