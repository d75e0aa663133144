//! The connection between an open session and its front ends.

use std::sync::Arc;

use hermes_capabilities::files::Seen;

use crate::approval::SessionRights;
use crate::feed::{Feed, FeedLimits};
use crate::questions::Questions;
use crate::steering::Steering;

/// The events, the open questions, the waiting messages, the granted rights and the contents that were read. They stay while an idle session drops its plugin instances.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) feed: Feed,
    pub(crate) questions: Questions,
    pub(crate) steering: Steering,
    pub(crate) rights: SessionRights,
    pub(crate) seen: Arc<Seen>,
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
        }
    }
}
