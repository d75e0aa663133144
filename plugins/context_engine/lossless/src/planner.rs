//! What a plan is made from, and the results that are kept from one proposal to the next.

use std::collections::HashMap;
use std::rc::Rc;

use hermes_plugin::MessageRange;

use crate::budgets::Budgets;
use crate::config::Config;
use crate::current_view::CurrentView;
use crate::gist::Gist;
use crate::mentions::MentionIndex;
use crate::read_cache::ReadCache;
use crate::storage::Storage;

/// Tokens that the host adds around a summary.
pub(crate) const FRAME: u32 = 55;

/// Input for a plan.
pub(crate) struct Planner<'a, S, D> {
    pub(crate) current: &'a CurrentView<'a>,
    pub(crate) config: &'a Config,
    pub(crate) budgets: Budgets,
    pub(crate) read_cache: &'a ReadCache,
    pub(crate) storage: &'a mut Storage<D>,
    pub(crate) source: &'a S,
    /// The window is full, or the user asked: accept a small gain.
    pub(crate) needed: bool,
    /// The window is full: give up comfort for room. A request of the user alone does not justify that.
    pub(crate) presses: bool,
    /// What the user wants kept above all.
    pub(crate) focus: &'a str,
    /// What memory providers want kept.
    pub(crate) memory: &'a str,
    pub(crate) cache: &'a mut PlanCache,
}

/// Results kept from one proposal to the next.
#[derive(Default)]
pub(crate) struct PlanCache {
    /// Texts of segments in the view that this instance made, by key.
    pub(crate) texts: HashMap<String, String>,
    /// Gists of segments in the view that were needed so far, by key.
    pub(crate) gists: HashMap<String, Rc<Gist>>,
    /// The last merged segment and a hash of its inputs.
    pub(crate) merged: Option<(u64, NewSegment)>,
    pub(crate) mentions: MentionIndex,
}

impl PlanCache {
    /// Drops texts and gists of segments that are not in the view. Returns the keys of the dropped gists.
    pub(crate) fn retain(&mut self, in_view: impl Fn(&str) -> bool) -> Vec<String> {
        self.texts.retain(|key, _| in_view(key));
        self.gists.extract_if(|key, _| !in_view(key)).map(|(key, _)| key).collect()
    }
}

/// A new segment.
#[derive(Debug, Clone)]
pub(crate) struct NewSegment {
    pub(crate) content: String,
    pub(crate) covers: Vec<MessageRange>,
    pub(crate) gist: Rc<Gist>,
    pub(crate) tokens: u32,
    /// All facts were already cached or stored.
    pub(crate) ready: bool,
}
