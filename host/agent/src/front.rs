//! The connection between an open session and its front ends.

use std::sync::{Arc, PoisonError};

use hermes_capabilities::files::Seen;
use hermes_protocol::{EventKind, Mode};

use crate::approval::{SessionMode, SessionRights};
use crate::checkpoints::Checkpoints;
use crate::delegation::limits::ToolLimits;
use crate::delegation::tasks::Tasks;
use crate::feed::{Feed, FeedLimits};
use crate::project_files::ProjectFiles;
use crate::questions::Questions;
use crate::steering::Steering;

/// The events, the open questions, the waiting messages, the granted rights, the contents that were read, the recorder of changes, the mode and
/// the delegated tasks. They stay while an idle session drops its plugin instances.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) feed: Feed,
    pub(crate) questions: Questions,
    pub(crate) steering: Steering,
    pub(crate) rights: SessionRights,
    pub(crate) seen: Arc<Seen>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) mode: SessionMode,
    pub(crate) tasks: Arc<Tasks>,
    /// The tools that the session may have.
    pub(crate) limits: ToolLimits,
    /// What the project's files said before programs of others were started.
    pub(crate) project: ProjectFiles,
}

impl Front {
    pub(crate) fn new(limits: FeedLimits, mode: SessionMode) -> Self {
        let feed = Feed::new(limits);
        Self {
            questions: Questions::new(feed.clone()),
            feed,
            steering: Steering::default(),
            rights: SessionRights::default(),
            seen: Arc::default(),
            checkpoints: Checkpoints::default(),
            mode,
            tasks: Arc::default(),
            limits: ToolLimits::default(),
            project: ProjectFiles::default(),
        }
    }

    /// Switches the mode. What the user allowed for this session ends with the mode in which it was allowed.
    pub(crate) fn choose_mode(&self, mode: Mode) {
        let before = self.mode.get();
        self.mode.set(mode);
        self.feed.publish(EventKind::ModeChosen { mode });
        if before != mode {
            let ended = std::mem::take(&mut *self.rights.lock().unwrap_or_else(PoisonError::into_inner)).len();
            match ended {
                0 => {}
                1 => self.feed.notice(format!("what you allowed for this session in the mode {before} has ended")),
                many => self.feed.notice(format!(
                    "the {many} actions that you allowed for this session in the mode {before} have ended"
                )),
            }
        }
        self.tell_shortfall();
    }

    /// Says why the mode does less than its name says.
    pub(crate) fn tell_shortfall(&self) {
        if let Some(why) = self.mode.shortfall() {
            self.feed.notice(why);
        }
    }

    /// For a session whose agent works on a task of this one's. The user answers its questions, grants rights to both, switches
    /// the mode of both, and undoes what both changed.
    pub(crate) fn for_delegate(&self, name: &str, limits: ToolLimits) -> Self {
        let front = Self::new(FeedLimits::SHARED, self.mode.clone());
        Self {
            questions: self.questions.on_behalf_of(name),
            rights: self.rights.clone(),
            checkpoints: self.checkpoints.for_delegate(),
            // The programs of this session's servers run already.
            project: self.project.clone(),
            limits,
            ..front
        }
    }
}
