//! Which keys and models are left alone after they failed, in words.

use std::time::{Duration, Instant};

use hermes_diagnostic::{Fix, Notice};
use hermes_models::{Credential, Rest, RestId, Route};
use jiff::Zoned;

use crate::{ModelChoice, Setup};

impl Setup {
    /// The keys of a route that rest, if there are several, with the way to use them now.
    pub fn resting_keys(&self, route: &Route) -> Vec<Notice> {
        let keys = match &route.credential {
            Some(Credential::Key(keys)) => keys.parts(),
            _ => Vec::new(),
        };
        let (count, address) = (keys.len(), route.address());
        let provider = &route.model.provider;
        let resting = keys.iter().zip(1..).filter_map(|(key, number)| {
            let rest = self.rest(&RestId::key(key, &address))?;
            let text = format!("key {number} of {count} ({key}) for {provider} at {address} rests {rest}");
            Some(Notice::new(text, self.way_out("set the key again with `hermes config set`")))
        });
        // A single key is used whether it rests or not.
        if count > 1 { resting.collect() } else { Vec::new() }
    }

    /// The rest of a model, with the way to ask it now. Without fallbacks no model rests.
    pub fn resting_model(&self, route: &Route, choice: &ModelChoice) -> Option<Notice> {
        let session = self.route(choice).ok()?;
        if self.fallbacks(&session).is_ok_and(|fallbacks| fallbacks.routes.is_empty()) {
            return None;
        }
        let rest = self.rest(&RestId::model(route))?;
        let (name, provider) = (&route.model.name, &route.model.provider);
        let text = format!("`{name}` of {provider} rests {rest}");
        Some(Notice::new(text, self.way_out(&format!("run `hermes model use {name}`"))))
    }

    fn rest(&self, id: &RestId) -> Option<String> {
        let now = Instant::now();
        let rest = self.logins.rests().of(id, now)?;
        (!rest.left(now).is_zero()).then(|| described(&rest, now, &Zoned::now()))
    }

    fn way_out(&self, what: &str) -> Fix {
        Fix::words(format!("wait; or {what}, or remove {}, to use it now", self.logins.rests().file().display()))
    }
}

/// Until when and why.
fn described(rest: &Rest, now: Instant, clock: &Zoned) -> String {
    let left = rest.left(now);
    let until = clock.saturating_add(left);
    let format = if until.date() == clock.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    format!("until {} ({} more): {}", until.strftime(format), in_words(left), rest.cause())
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
    use hermes_models::Rests;

    use super::*;

    #[test]
    fn a_rest_is_told_with_its_end_and_its_cause() {
        let rests = Rests::new("/nonexistent/rests.json".into());
        let (id, now) = (RestId::model(&Route::offline()), Instant::now());
        let clock: Zoned = "2026-11-21T22:30:00[UTC]".parse().unwrap();
        for (seconds, told) in [
            (90, "until 22:31 (90 s more): no"),
            (3000, "until 23:20 (50 min more): no"),
            (7200, "until 2026-11-22 00:30 (2 h more): no"),
        ] {
            rests.begin(&id, Duration::from_secs(seconds), 1, "no", now);
            assert_eq!(described(&rests.of(&id, now).unwrap(), now, &clock), told);
        }
    }
}
