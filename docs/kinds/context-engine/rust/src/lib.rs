//! Keeps the last turns in full, and folds each older message into its first line.

use hermes_plugin::context_engine::{Advice, Item, Outcome, Plan, Pressure, Request, Segment, Summary, Timing};
use hermes_plugin::{
    ContextEngine, Error, Header, Instance, Message, MessageId, MessageRange, Model, Setup, config, history,
};

/// The section `config` in plugin.yaml describes the same key and default.
#[config]
struct Config {
    /// The number of turns that stay in full.
    #[schemars(range(min = 1))]
    #[serde(default = "three")]
    keep_turns: u32,
}

fn three() -> u32 {
    3
}

struct Outline {
    config: Config,
    /// Every message of the conversation, oldest first. A new instance gets all of them again.
    headers: Vec<Header>,
    /// The key of the last plan, and that of the last refused one.
    proposed: String,
    refused: String,
}

fn line(message: &Message) -> String {
    let first = message.content.lines().next().unwrap_or_default();
    let calls = message.tool_calls.iter().map(|call| format!(" [calls {}]", call.name)).collect::<String>();
    format!("#{} {}{calls}", message.id, first.chars().take(100).collect::<String>())
}

impl Instance for Outline {
    type Config = Config;

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        Ok(Self { config: setup.config, headers: Vec::new(), proposed: String::new(), refused: String::new() })
    }
}

impl ContextEngine for Outline {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
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
        let room = pressure.context_length.saturating_sub(pressure.reserve);
        let propose = match pressure.prompt_tokens {
            tokens if tokens > room / 100 * 95 => Timing::Now,
            // The host adopts the plan when it saves more than the changed prefix costs.
            tokens if tokens > room / 100 * 70 => Timing::Boundary,
            _ => Timing::NotNow,
        };
        Advice::new(false, propose)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let Some(newest) = self.headers.last() else { return Ok(None) };
        // Whole turns are folded, so that no call loses its result.
        let is_old = |header: &Header| header.turn + self.config.keep_turns <= newest.turn;
        let (old, rest) = self.headers.split_at(self.headers.partition_point(is_old));
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(None) };
        let covers = MessageRange::new(first.id, last.id);
        // The text under a key must never change. It depends only on the messages.
        let key = format!("outline:{}-{}", covers.first, covers.last);
        let is_shown = request.view.iter().any(|item| matches!(item, Item::Summary(shown) if shown.key == key));
        if is_shown || key == self.refused {
            return Ok(None);
        }
        let lines: Vec<String> = history::read_all(covers)?.iter().map(line).collect();
        let content = lines[lines.len().saturating_sub(200)..].join("\n");
        self.proposed.clone_from(&key);
        Ok(Some(Plan {
            segments: vec![
                Segment::Summary(Summary { key, content, covers: vec![covers] }),
                Segment::Restore(MessageRange::new(rest[0].id, newest.id)),
            ],
            reason: format!("folded {} messages into their first lines", old.len()),
            extra: Vec::new(),
        }))
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if matches!(outcome, Outcome::Refused(_)) {
            self.refused.clone_from(&self.proposed);
        }
        Ok(())
    }
}

hermes_plugin::export!(Outline: ContextEngine);
