//! Which keys and models are left alone after they failed, in words.

use std::time::{Duration, Instant};

use hermes_diagnostic::{Fix, Notice};
use hermes_models::{Cooldown, CooldownId, Credential, Route};
use jiff::Zoned;

use crate::{ModelChoice, Setup};

impl Setup {
    /// The keys of a route that are on cooldown, if there are several, with the way to use them now.
    pub fn resting_keys(&self, route: &Route) -> Vec<Notice> {
        let keys = match &route.credential {
            Some(Credential::Key(keys)) => keys.parts(),
            _ => Vec::new(),
        };
        let (count, address) = (keys.len(), route.address());
        let provider = &route.model.provider;
        let resting = keys.iter().zip(1..).filter_map(|(key, number)| {
            let cooldown = self.cooldown(&CooldownId::key(key, &address))?;
            let text = format!("key {number} of {count} ({key}) for {provider} at {address} is on cooldown {cooldown}");
            Some(Notice::new(text, self.way_out("set the key again with `hermes config set`")))
        });
        // A single key is used also on cooldown.
        if count > 1 { resting.collect() } else { Vec::new() }
    }

    /// The cooldown of a model, with the way to ask it now. Without fallbacks no model has one.
    pub fn resting_model(&self, route: &Route, choice: &ModelChoice) -> Option<Notice> {
        let session = self.route(choice).ok()?;
        if self.fallbacks(&session).is_ok_and(|fallbacks| fallbacks.routes.is_empty()) {
            return None;
        }
        let cooldown = self.cooldown(&CooldownId::model(route))?;
        let (name, provider) = (&route.model.name, &route.model.provider);
        let text = format!("`{name}` of {provider} is on cooldown {cooldown}");
        Some(Notice::new(text, self.way_out(&format!("run `hermes model use {name}`"))))
    }

    fn cooldown(&self, id: &CooldownId) -> Option<String> {
        let now = Instant::now();
        let cooldown = self.logins.cooldowns().of(id, now)?;
        (!cooldown.left(now).is_zero()).then(|| described(&cooldown, now, &Zoned::now()))
    }

    fn way_out(&self, what: &str) -> Fix {
        Fix::words(format!(
            "wait; or {what}, or remove {}, to use it now",
            self.logins.cooldowns().location().display()
        ))
    }
}

/// Until when and why.
fn described(cooldown: &Cooldown, now: Instant, clock: &Zoned) -> String {
    let left = cooldown.left(now);
    let until = clock.saturating_add(left);
    let format = if until.date() == clock.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    format!("until {} ({} more): {}", until.strftime(format), in_words(left), cooldown.cause())
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.max(1)),
        seconds @ ..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hermes_models::Cooldowns;

    use super::*;

    #[test]
    fn a_rest_is_told_with_its_end_and_its_cause() {
        let cooldowns = Cooldowns::new(hermes_private_files::FileDocuments::below("/nonexistent".as_ref()));
        let (id, now) = (CooldownId::model(&Route::offline()), Instant::now());
        let clock: Zoned = "2026-11-21T22:30:00[UTC]".parse().unwrap();
        for (seconds, told) in [
            (90, "until 22:31 (90 s more): no"),
            (3000, "until 23:20 (50 min more): no"),
            (7200, "until 2026-11-22 00:30 (2 h more): no"),
        ] {
            cooldowns.begin(&id, Duration::from_secs(seconds), 1, "no", now);
            assert_eq!(described(&cooldowns.of(&id, now).unwrap(), now, &clock), told);
        }
    }
}
