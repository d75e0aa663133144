//! The models that may serve a session, in the order in which they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use hermes_models::WindowSource;

use crate::cooldowns::ModelCooldowns;
use crate::served::ServedModel;

/// The chosen model of a session, its fallbacks, and which of them serves now.
pub struct ModelChain {
    /// The chosen model first.
    all: Vec<ServedModel>,
    /// The windows that the providers named in this session; 0 for none.
    named: Vec<AtomicU32>,
    serving: AtomicUsize,
    cooldowns: Arc<ModelCooldowns>,
}

impl ModelChain {
    /// The chosen model, then its fallbacks in order. Sessions that share `cooldowns` do not repeat each other's failures.
    pub fn new(chosen: ServedModel, fallbacks: Vec<ServedModel>, cooldowns: Arc<ModelCooldowns>) -> Self {
        let all: Vec<ServedModel> = std::iter::once(chosen).chain(fallbacks).collect();
        let named = all.iter().map(|_| AtomicU32::new(0)).collect();
        Self { all, named, serving: AtomicUsize::new(0), cooldowns }
    }

    pub(crate) fn all(&self) -> &[ServedModel] {
        &self.all
    }

    pub(crate) fn is_single(&self) -> bool {
        self.all.len() == 1
    }

    pub(crate) fn cooldowns(&self) -> &ModelCooldowns {
        &self.cooldowns
    }

    /// The place of the model that serves now.
    pub(crate) fn serving(&self) -> usize {
        self.serving.load(Ordering::Relaxed)
    }

    /// The model that serves now.
    pub(crate) fn now(&self) -> &ServedModel {
        &self.all[self.serving()]
    }

    /// The window of the model that serves now, in tokens.
    pub(crate) fn window(&self) -> u32 {
        self.named().unwrap_or(self.now().model.context_length)
    }

    /// Where the size of that window comes from.
    pub(crate) fn window_source(&self) -> WindowSource {
        if self.named().is_some() { WindowSource::Learned } else { self.now().window_source }
    }

    fn named(&self) -> Option<u32> {
        Some(self.named[self.serving()].load(Ordering::Relaxed)).filter(|named| *named > 0)
    }

    /// Keeps to a window that the provider of the model that serves now has named.
    pub(crate) fn keep_to(&self, window: u32) {
        self.named[self.serving()].store(window, Ordering::Relaxed);
    }

    pub(crate) fn serve(&self, model: usize) {
        debug_assert!(model < self.all.len(), "there is no such model");
        self.serving.store(model, Ordering::Relaxed);
    }

    /// The first model that is not on cooldown; none if all are.
    pub(crate) fn first_ready(&self, now: Instant) -> Option<usize> {
        (0..self.all.len()).find(|model| self.is_ready(*model, now))
    }

    /// The first model that is not in `tried`, preferably one that is not on cooldown.
    pub(crate) fn next_but(&self, tried: &[usize], now: Instant) -> Option<usize> {
        let others = || (0..self.all.len()).filter(|model| !tried.contains(model));
        others().find(|model| self.is_ready(*model, now)).or_else(|| others().next())
    }

    fn is_ready(&self, model: usize, now: Instant) -> bool {
        self.cooldowns.of(&self.all[model], now).is_none_or(|cooldown| cooldown.left(now).is_zero())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use hermes_models::{Logins, ModelError, connect};

    use hermes_conversation::Model;
    use hermes_models::{CooldownId, Route};

    use super::*;
    use crate::serving::Attempts;

    fn nowhere() -> Arc<dyn hermes_private_files::Documents> {
        hermes_private_files::FileDocuments::below("/nonexistent".as_ref())
    }

    const REST: Duration = Duration::from_secs(60);

    fn chain(names: &[&str]) -> ModelChain {
        let mut models: Vec<ServedModel> = names.iter().map(|name| served(name)).collect();
        let chosen = models.remove(0);
        let cooldowns = hermes_models::Cooldowns::new(nowhere());
        ModelChain::new(chosen, models, Arc::new(ModelCooldowns::new(REST, cooldowns)))
    }

    fn served(name: &str) -> ServedModel {
        let provider = connect(&Route::offline(), &Logins::new("/nonexistent/auth.json".into(), nowhere())).unwrap();
        let model = Model { provider: "p".to_owned(), name: name.to_owned(), context_length: 8_000 };
        let (address, window_source) = (String::new(), WindowSource::Offline);
        let cooldown = CooldownId::model(&Route { model: model.clone(), ..Route::offline() });
        ServedModel { provider, model, address, window_source, overridden: None, cooldown }
    }

    fn busy() -> ModelError {
        ModelError::Server { host: "h".into(), status: 503, message: "busy".into() }
    }

    #[test]
    fn the_next_model_is_one_that_has_not_failed_before() {
        let chain = chain(&["a", "b", "c"]);
        let now = Instant::now();
        assert_eq!(chain.next_but(&[0], now), Some(1));
        chain.cooldowns().failed(&chain.all()[1], &busy(), now);
        assert_eq!(chain.next_but(&[0], now), Some(2), "b rests");
        assert_eq!(chain.next_but(&[0, 2], now), Some(1), "better one at rest than none");
        assert_eq!(chain.next_but(&[0, 2, 1], now), None);
        assert_eq!(chain.next_but(&[0], now + REST), Some(1));
    }

    #[test]
    fn the_first_model_is_ready_after_its_rest_or_an_answer() {
        let chain = chain(&["a", "b"]);
        let now = Instant::now();
        chain.cooldowns().failed(&chain.all()[0], &busy(), now);
        assert_eq!(chain.first_ready(now), Some(1));
        assert_eq!(chain.first_ready(now + REST), Some(0));
        // It fails again.
        chain.cooldowns().failed(&chain.all()[0], &busy(), now + REST);
        assert_eq!(chain.first_ready(now + REST + REST), Some(1));
        chain.cooldowns().answered(&chain.all()[0]);
        assert_eq!(chain.first_ready(now), Some(0));
        chain.cooldowns().failed(&chain.all()[0], &busy(), now);
        chain.cooldowns().failed(&chain.all()[1], &busy(), now);
        assert_eq!(chain.first_ready(now), None);
    }

    #[test]
    fn a_named_window_is_that_of_the_model_which_serves() {
        let chain = chain(&["a", "b"]);
        chain.serve(1);
        chain.keep_to(4_000);
        assert_eq!((chain.window(), chain.window_source()), (4_000, WindowSource::Learned));
        chain.serve(0);
        assert_eq!((chain.window(), chain.window_source()), (8_000, WindowSource::Offline));
    }

    #[test]
    fn a_model_is_asked_with_patience_if_no_other_follows() {
        assert!(!Attempts::default().has_another(&chain(&["a"])));
        let chain = chain(&["a", "b"]);
        assert!(Attempts::default().has_another(&chain));
        chain.serve(1);
        assert!(Attempts::default().has_another(&chain), "the chosen model may have recovered");
    }
}
