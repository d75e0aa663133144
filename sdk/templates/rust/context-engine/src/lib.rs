//! A context engine that keeps the last turns in full and folds older messages into one line each.
//!
//! The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new
//! view over message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

mod digest;

use hermes_plugin::context_engine::{Advice, Item, Moment, Outcome, Plan, Pressure, Request, Segment, Summary, Timing};
use hermes_plugin::{ContextEngine, Error, Header, Instance, MessageId, MessageRange, Model, Setup, config, history};

/// The plugin's configuration section. A test compares it with plugin.yaml.
#[config]
struct Config {
    /// Number of turns that stay in full.
    #[schemars(range(min = 1))]
    #[serde(default = "keep_turns")]
    keep_turns: u32,
    /// Share of the window from which folding is worthwhile.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1))]
    #[serde(default = "full_at")]
    full_at: f64,
}

fn keep_turns() -> u32 {
    4
}

fn full_at() -> f64 {
    0.75
}

struct Engine {
    config: Config,
    /// Every message of the conversation, oldest first.
    headers: Vec<Header>,
    /// The key of the last proposal, and the key that the host refused last.
    proposed: Option<String>,
    refused: Option<String>,
}

impl Instance for Engine {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        if config.keep_turns == 0 || !(config.full_at > 0.0 && config.full_at <= 1.0) {
            return Err(Error::invalid("keep_turns must be at least 1, and full_at lie between 0 and 1"));
        }
        Ok(())
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config, headers: Vec::new(), proposed: None, refused: None })
    }
}

impl ContextEngine for Engine {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        // Nothing to store: every call brings the window's size.
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.headers.extend(headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|header| header.id < first);
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        let room = pressure.context_length.saturating_sub(pressure.reserve).max(1);
        let full = f64::from(pressure.prompt_tokens) / f64::from(room);
        let propose = match pressure.moment {
            Moment::Manual | Moment::Overflow => Timing::Now,
            _ if full >= 0.95 => Timing::Now,
            // The host weighs the gain against the cache, and adopts the plan when it pays.
            _ if full >= self.config.full_at => Timing::Boundary,
            _ => Timing::NotNow,
        };
        Advice::new(false, propose)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let keep = if request.pressure.moment == Moment::Overflow { 1 } else { self.config.keep_turns };
        let folded = digest::folded(&self.headers, keep);
        let (Some(first), Some(last_folded)) = (self.headers.first(), folded.checked_sub(1)) else { return Ok(None) };
        let covers = MessageRange::new(first.id, self.headers[last_folded].id);
        // Text and covers under a key must never change. Both depend only on the messages.
        let key = format!("{{name}}:{}-{}", covers.first, covers.last);
        let is_shown = request.view.iter().any(|item| matches!(item, Item::Summary(shown) if shown.key == key));
        if is_shown || self.refused.as_ref() == Some(&key) {
            return Ok(None);
        }
        let content = digest::text(&history::read_all(covers)?);
        let summary = Summary { key: key.clone(), content, covers: vec![covers] };
        let rest = MessageRange::new(self.headers[folded].id, self.headers[self.headers.len() - 1].id);
        self.proposed = Some(key);
        Ok(Some(Plan {
            segments: vec![Segment::Summary(summary), Segment::Restore(rest)],
            reason: format!("folded {folded} messages into one line each"),
            extra: Vec::new(),
        }))
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if let Outcome::Refused(_) = outcome {
            // The host would refuse the same plan again.
            self.refused = self.proposed.take();
        }
        Ok(())
    }

    fn status(&self) -> String {
        serde_json::json!({ "messages": self.headers.len(), "keep_turns": self.config.keep_turns }).to_string()
    }
}

hermes_plugin::export!(Engine: ContextEngine);

#[cfg(test)]
mod tests {
    use hermes_plugin::testing::{Host, check_manifest};
    use hermes_plugin::{Message, Role};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifest_describes_the_configuration() {
        // `HERMES_WRITE_CONFIG=1 cargo test` writes the section.
        check_manifest::<Engine>();
    }

    #[test]
    fn older_turns_are_folded_when_the_window_is_full() -> Result<(), Error> {
        let messages = (1..=6).map(|id| Message::new(id, Role::User, format!("message {id}")));
        let host = Host::new().messages(messages);
        let mut engine: Engine = host.start(json!({ "keep_turns": 2 }))?;
        engine.observe(host.headers())?;
        assert_eq!(engine.assess(&Pressure::new(100, 1000)), Advice::new(false, Timing::NotNow));
        assert_eq!(engine.assess(&Pressure::new(800, 1000)), Advice::new(false, Timing::Boundary));

        let view = [Item::Messages(MessageRange::new(1, 6))];
        let plan = engine.propose(&Request::new(Pressure::new(800, 1000), view))?;
        let segments = plan.map(|plan| plan.segments).unwrap_or_default();
        let [Segment::Summary(summary), Segment::Restore(rest)] = &segments[..] else { panic!("{segments:?}") };
        assert_eq!((&summary.covers[..], *rest), (&[MessageRange::new(1, 4)][..], MessageRange::new(5, 6)));
        assert!(summary.content.contains("#4 user: message 4"), "{}", summary.content);
        Ok(())
    }

    #[test]
    fn a_refused_plan_is_not_proposed_again() -> Result<(), Error> {
        let host = Host::new().messages((1..=6).map(|id| Message::new(id, Role::User, "tea")));
        let mut engine: Engine = host.start(json!({}))?;
        engine.observe(host.headers())?;
        let request = Request::new(Pressure::new(800, 1000), []);
        assert!(engine.propose(&request)?.is_some());
        engine.settled(&Outcome::Refused(Error::invalid("no")))?;
        assert_eq!(engine.propose(&request)?, None);
        Ok(())
    }
}
