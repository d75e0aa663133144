//! A context engine that keeps the last turns in full and folds older messages into one line each.
//!
//! The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new
//! view over message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

mod digest;

use hermes_plugin::context_engine::{
    Advice, Excerpt, Item, Moment, Outcome, Plan, Pressure, Request, Segment, Summary, Timing,
};
use hermes_plugin::{
    ContextEngine, Error, Header, Instance, MessageId, MessageRange, Model, Role, Setup, config, history, llm,
};

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
        let most = if request.pressure.moment == Moment::Overflow { 1 } else { self.config.keep_turns };
        let room = request.pressure.room();
        // The next turns need room, too: a new view costs more than the same one.
        let aim = room / 10 * 7;
        // Fewer turns stay in full where more would not fit.
        for keep in (1..=most).rev() {
            let folded = digest::folded(&self.headers, keep);
            let rest = &self.headers[folded..];
            let left = aim.saturating_sub(rest.iter().map(|header| header.tokens).sum());
            let Some(summary) = self.digest(folded, left)? else { continue };
            if self.is_new(&summary.key, request) {
                self.proposed = Some(summary.key.clone());
                let segments = vec![Segment::Summary(summary), Segment::Restore(range(rest))];
                return Ok(Some(plan(segments, format!("folded {folded} messages into one line each"))));
            }
        }
        self.shortened(room)
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

impl Engine {
    /// The digest of the first messages, with as many lines as fit into this many tokens.
    fn digest(&self, folded: usize, room: u32) -> Result<Option<Summary>, Error> {
        if folded == 0 {
            return Ok(None);
        }
        let covers = range(&self.headers[..folded]);
        let messages = history::read_all(covers)?;
        for lines in [200, 50, 10, 0] {
            // Text and covers under a key must never change. Both depend only on the messages and on the number of lines.
            let key = format!("{{name}}:{}-{}:{lines}", covers.first, covers.last);
            let summary = Summary { key, content: digest::text(&messages, lines), covers: vec![covers] };
            if summary.tokens() <= room {
                return Ok(Some(summary));
            }
        }
        Ok(None)
    }

    /// Shortens the long messages of the newest turn, for a turn that does not fit. The user's message stays as it was said.
    fn shortened(&mut self, room: u32) -> Result<Option<Plan>, Error> {
        let folded = digest::folded(&self.headers, 1);
        let rest = &self.headers[folded..];
        let Some(last) = rest.last() else { return Ok(None) };
        let key = format!("{{name}}:short:{}", last.id);
        let asked = rest.iter().rfind(|header| header.role == Role::User).map(|header| header.id);
        let (mut tokens, mut shown) = (0, Vec::new());
        for (header, message) in rest.iter().zip(history::read_all(range(rest))?) {
            tokens += header.tokens;
            match digest::beginning(&message.content).filter(|_| asked != Some(header.id)) {
                Some(content) => {
                    tokens = (tokens + llm::count_tokens(&content)).saturating_sub(llm::count_tokens(&message.content));
                    let (arguments, keep_images) = (Vec::new(), false);
                    shown.push(Segment::Excerpt(Excerpt { id: header.id, content: Some(content), arguments, keep_images }));
                }
                None => shown.push(Segment::Restore(range(std::slice::from_ref(header)))),
            }
        }
        let summary = self.digest(folded, room.saturating_sub(tokens))?;
        let is_short = shown.iter().any(|segment| matches!(segment, Segment::Excerpt(_)));
        let is_whole = folded == 0 || summary.is_some();
        if !is_short || !is_whole || tokens > room || self.refused.as_ref() == Some(&key) {
            // Nothing fits. The host folds by rule.
            return Ok(None);
        }
        self.proposed = Some(key);
        let segments = summary.map(Segment::Summary).into_iter().chain(shown).collect();
        Ok(Some(plan(segments, "shortened the long messages of the newest turn".to_owned())))
    }

    /// Whether a digest is neither shown already nor was refused.
    fn is_new(&self, key: &String, request: &Request) -> bool {
        let is_shown = request.view.iter().any(|item| matches!(item, Item::Summary(shown) if shown.key == *key));
        !is_shown && self.refused.as_ref() != Some(key)
    }
}

fn plan(segments: Vec<Segment>, reason: String) -> Plan {
    Plan { segments, reason, extra: Vec::new() }
}

/// The messages from the first to the last of these, which are not empty.
fn range(headers: &[Header]) -> MessageRange {
    MessageRange::new(headers[0].id, headers[headers.len() - 1].id)
}

hermes_plugin::export!(Engine: ContextEngine);

#[cfg(test)]
mod tests {
    use hermes_plugin::testing::{Host, check_manifest};
    use hermes_plugin::Message;
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
    fn a_plan_fits_however_small_the_room_is() -> Result<(), Error> {
        let text = "tea and cake ".repeat(40);
        let messages = (1..=8).map(|id| Message::new(id, if id == 7 { Role::User } else { Role::Assistant }, &text));
        let host = Host::new().messages(messages);
        for room in [50, 300, 700, 1_200, 3_000] {
            let mut engine: Engine = host.start(json!({}))?;
            engine.observe(host.headers())?;
            let pressure = Pressure { extra: vec![("room".into(), room.to_string())], ..Pressure::new(800, 1000) };
            let plan = engine.propose(&Request::new(pressure, []))?;
            let tokens = |segment: &Segment| match segment {
                Segment::Summary(summary) => summary.tokens(),
                Segment::Excerpt(excerpt) => llm::count_tokens(excerpt.content.as_deref().unwrap_or(&text)),
                Segment::Restore(range) => {
                    let is_in = |header: &&Header| (range.first..=range.last).contains(&header.id);
                    host.headers().iter().filter(is_in).map(|header| header.tokens).sum()
                }
                other => panic!("{other:?}"),
            };
            let taken: u32 = plan.iter().flat_map(|plan| &plan.segments).map(tokens).sum();
            assert!(taken <= room, "{taken} of {room}: {plan:?}");
            assert_eq!(plan.is_some(), room > 50, "{room}");
        }
        Ok(())
    }

    #[test]
    fn a_refused_plan_is_not_proposed_again() -> Result<(), Error> {
        let host = Host::new().messages((1..=6).map(|id| Message::new(id, Role::User, "tea")));
        let mut engine: Engine = host.start(json!({}))?;
        engine.observe(host.headers())?;
        let request = Request::new(Pressure::new(800, 1000), []);
        let refused = engine.propose(&request)?;
        engine.settled(&Outcome::Refused(Error::invalid("no")))?;
        let next = engine.propose(&request)?;
        assert!(refused.is_some() && next != refused, "{next:?}");
        Ok(())
    }
}
