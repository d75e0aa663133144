//! The connection between an open session and its front ends.

use std::sync::Arc;

use hermes_capabilities::files::Seen;

use crate::approval::SessionRights;
use crate::checkpoints::Checkpoints;
use crate::feed::{Feed, FeedLimits};
use crate::questions::Questions;
use crate::steering::Steering;

/// The events, the open questions, the waiting messages, the granted rights, the contents that were read, and the recorder of changes. They stay while an idle session drops its plugin instances.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) feed: Feed,
    pub(crate) questions: Questions,
    pub(crate) steering: Steering,
    pub(crate) rights: SessionRights,
    pub(crate) seen: Arc<Seen>,
    pub(crate) checkpoints: Checkpoints,
}

impl Front {
    pub(crate) fn new(limits: FeedLimits) -> Self {
        let feed = Feed::new(limits);
        Self {
            questions: Questions::new(feed.clone()),
            feed,
            steering: Steering::default(),
            rights: SessionRights::default(),
            seen: Arc::default(),
            checkpoints: Checkpoints::default(),
        }
    }
}
