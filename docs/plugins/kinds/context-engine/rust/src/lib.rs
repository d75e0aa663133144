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

/// The first lines of the newest of these messages, as many as fit into so many tokens.
fn outline(covers: MessageRange, room: u32) -> Result<Option<Summary>, Error> {
    let lines: Vec<String> = history::read_all(covers)?.iter().map(line).collect();
    for most in [200, 50, 10, 1] {
        let content = lines[lines.len().saturating_sub(most)..].join("\n");
        // The text under a key must never change. It depends on the messages and on the number of lines.
        let key = format!("outline:{}-{}:{most}", covers.first, covers.last);
        let summary = Summary { key, content, covers: vec![covers] };
        if summary.tokens() <= room {
            return Ok(Some(summary));
        }
    }
    Ok(None)
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
        let room = request.pressure.room();
        // Fewer turns stay where more would not fit.
        for keep in (1..=self.config.keep_turns).rev() {
            // Whole turns are folded, so that no call loses its result.
            let newest = self.headers.last().map_or(0, |header| header.turn);
            let (old, rest) =
                self.headers.split_at(self.headers.partition_point(|header| header.turn + keep <= newest));
            let (Some(first), Some(last)) = (old.first(), old.last()) else { continue };
            let covers = MessageRange::new(first.id, last.id);
            let kept: u32 = rest.iter().map(|header| header.tokens).sum();
            let Some(summary) = outline(covers, room.saturating_sub(kept))? else { continue };
            let is_shown = |item: &Item| matches!(item, Item::Summary(shown) if shown.key == summary.key);
            if summary.key == self.refused || request.view.iter().any(is_shown) {
                continue;
            }
            self.proposed.clone_from(&summary.key);
            let rest = MessageRange::new(rest[0].id, rest[rest.len() - 1].id);
            return Ok(Some(Plan {
                segments: vec![Segment::Summary(summary), Segment::Restore(rest)],
                reason: format!("folded {} messages into their first lines", old.len()),
                extra: Vec::new(),
            }));
        }
        // Nothing fits: the host folds by its own rule.
        Ok(None)
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        if matches!(outcome, Outcome::Refused(_)) {
            self.refused.clone_from(&self.proposed);
        }
        Ok(())
    }
}

hermes_plugin::export!(Outline: ContextEngine);
