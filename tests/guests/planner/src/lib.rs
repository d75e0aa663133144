//! A context engine that does what its configuration says (see [`config`]).
//!
//! Its plans fold whole turns into one summary, which says what memory providers want kept and repeats the summaries of other
//! engines. It stores the input of `prepare` in its document `prepared.txt`.

mod config;

use hermes_plugin::context_assist::{Draft, Place, Quote};
use hermes_plugin::context_engine::{Advice, Item, Moment, Outcome, Plan, Pressure, Request, Segment, Summary, Timing};
use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{
    ContextAssist, ContextEngine, Error, Header, MessageId, MessageRange, Model, Plugin, Progress, Role, Tools, clock,
    documents, history, task,
};
use serde_json::json;

use crate::config::Config;

const BAD: &str = "bad.txt";
const SLOW: &str = "slow.txt";
const PREPARED: &str = "prepared.txt";
const OUTCOMES: &str = "outcomes.txt";

/// The plugin.
pub struct Planner {
    config: Config,
    headers: Vec<Header>,
}

/// Counts this call over all instances. Returns whether the count is still below `times`.
fn is_due(count: &str, times: u64) -> Result<bool, Error> {
    documents::update(count, |before| {
        let before: u64 = before.trim().parse().unwrap_or(0);
        Ok::<_, Error>(if before < times { (Some((before + 1).to_string()), true) } else { (None, false) })
    })
}

fn wait(milliseconds: u64) {
    let begin = clock::now();
    while clock::now().saturating_sub(begin) < milliseconds && !task::cancelled() {
        // Calling the clock all the time would exceed another limit first.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

impl Plugin for Planner {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self { config: serde_json::from_str(config)?, headers: Vec::new() })
    }
}

impl ContextEngine for Planner {
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
        let propose = match self.config.timing.as_str() {
            "now" => Timing::Now,
            // The host decides whether it pays.
            "boundary" => Timing::Boundary,
            _ => Timing::NotNow,
        };
        Advice::new(self.config.prepare && pressure.moment != Moment::Idle, propose)
    }

    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        documents::update(PREPARED, |_| Ok::<_, Error>((Some(request.memory_context.clone()), ())))?;
        Ok(Progress::Done)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        let Some(folded) = self.folded() else { return Ok(None) };
        if self.config.slow_ms > 0 && is_due(SLOW, self.config.slow)? {
            wait(self.config.slow_ms);
        }
        let last = self.headers[self.headers.len() - 1].id;
        let rest = Segment::Restore(MessageRange::new(self.headers[folded].id, last));
        if self.config.bad > 0 && is_due(BAD, self.config.bad)? {
            return Ok(Some(plan(vec![rest])));
        }
        let covers = MessageRange::new(self.headers[0].id, self.headers[folded - 1].id);
        let key = format!("{}:{}", self.config.name, covers.last);
        if request.view.iter().any(|item| matches!(item, Item::Summary(summary) if summary.key == key)) {
            return Ok(None);
        }
        let mut content = format!("{} folded the messages up to {}.", self.config.name, covers.last);
        if let Some(prepared) = documents::read(PREPARED)?.filter(|prepared| !prepared.content.is_empty()) {
            content.push_str(&format!("\nkept: {}", prepared.content));
        }
        for item in &request.view {
            if let Item::Summary(summary) = item
                && !summary.key.starts_with(&format!("{}:", self.config.name))
            {
                content.push_str(&format!("\nfrom {}: {}", summary.key, history::summary(&summary.key)?));
            }
        }
        Ok(Some(plan(vec![Segment::Summary(Summary { key, content, covers: vec![covers] }), rest])))
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let word = match outcome {
            Outcome::Adopted => "adopted",
            Outcome::Refused(_) => "refused",
            Outcome::Stale => "stale",
            Outcome::Deferred => "deferred",
            Outcome::Other(_) => "other",
        };
        documents::update(OUTCOMES, |before| Ok::<_, Error>((Some(format!("{before}{word}\n")), ())))
    }

    fn status(&self) -> String {
        json!({ "timing": self.config.timing, "messages": self.headers.len() }).to_string()
    }
}

impl Planner {
    /// The number of messages that a plan folds. `None` if there is nothing to fold.
    fn folded(&self) -> Option<usize> {
        let newest = self.headers.last()?.turn;
        let first = self.headers.first()?.turn;
        let end = (newest + 1).saturating_sub(self.config.keep_turns);
        let end = self.config.fold_turns.map_or(end, |turns| end.min(first + turns));
        let folded = self.headers.iter().take_while(|header| header.turn < end).count();
        (folded > 0 && folded < self.headers.len()).then_some(folded)
    }
}

fn plan(segments: Vec<Segment>) -> Plan {
    Plan { segments, reason: "as it was configured".to_owned(), extra: Vec::new() }
}

impl ContextAssist for Planner {
    fn assist(&mut self, draft: &Draft, _: u32) -> Result<Vec<Quote>, Error> {
        let said = match draft {
            Draft::User(text) => text,
            Draft::Tool(result) => &result.content,
            Draft::Other(_) => return Ok(Vec::new()),
        };
        let Some(marker) = self.config.marker.as_deref().filter(|_| said.contains("recall")) else {
            return Ok(Vec::new());
        };
        wait(self.config.assist_ms);
        if self.config.assist_fails {
            return Err(Error::failed("no passages today"));
        }
        let Some(whole) = history::whole()? else { return Ok(Vec::new()) };
        let mut quotes = Vec::new();
        for message in history::read_all(whole)?.iter().filter(|message| message.role == Role::User) {
            let mut start = 0;
            for line in message.content.split_inclusive('\n') {
                if line.contains(marker) {
                    let length = line.trim_end_matches('\n').len();
                    quotes.push(Quote {
                        id: message.id,
                        place: Place::Text,
                        start: u32::try_from(start).unwrap_or(u32::MAX),
                        length: u32::try_from(length).unwrap_or(u32::MAX),
                    });
                }
                start += line.len();
            }
        }
        Ok(quotes)
    }
}

impl Tools for Planner {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &String| Tool::new(name, "Says its name.", json!({ "type": "object", "properties": {} }));
        Ok(self.config.tool.iter().map(tool).collect())
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        Ok(Output::text(invocation.name.clone()))
    }
}

hermes_plugin::export!(Planner: ContextEngine, ContextAssist, Tools);
