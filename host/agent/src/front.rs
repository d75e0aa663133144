//! What connects a session with its front ends for as long as it is open.

use crate::approval::SessionRights;
use crate::feed::{Feed, FeedLimits};
use crate::questions::Questions;

/// The events, the questions and the answers that last. It outlives the plugins' instances of an idle session.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) feed: Feed,
    pub(crate) questions: Questions,
    pub(crate) rights: SessionRights,
}

impl Front {
    pub(crate) fn new(limits: FeedLimits) -> Self {
        let feed = Feed::new(limits);
        Self { questions: Questions::new(feed.clone()), feed, rights: SessionRights::default() }
    }
}
