//! A component that misbehaves on demand: a context engine and a set of tools.
//!
//! As an engine it does what `mode` of its configuration says (see [`mode`]), by default in `propose`; with a mode it
//! wants to propose at every `assess`. Without one it is a good engine that folds from half of the window on. The
//! tool `poke` does what its argument `mode` says.

mod misdeeds;
mod mode;
mod plans;

use hermes_plugin::context_engine::{Advice, Outcome, Plan, Pressure, Request, Timing};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{
    ContextEngine, Error, Header, MessageId, Model, Plugin, Progress, Session, Start, Tools, documents, files,
};
use serde_json::{Value, json};

use crate::mode::{Config, Misdeed, Place};

/// How often it has misbehaved, over all instances.
const COUNT: &str = "misdeeds.txt";

/// The plugin.
pub struct Hostile {
    mode: Option<(Misdeed, Place)>,
    times: Option<u64>,
    headers: Vec<Header>,
}

impl Hostile {
    /// What to do wrong here and now.
    fn misdeed(&self, here: Place) -> Result<Option<Misdeed>, Error> {
        let Some((misdeed, _)) = self.mode.filter(|(_, place)| *place == here) else { return Ok(None) };
        let Some(times) = self.times else { return Ok(Some(misdeed)) };
        let is_due = documents::update(COUNT, |count| {
            let count: u64 = count.trim().parse().unwrap_or(0);
            Ok::<_, Error>(if count < times { (Some((count + 1).to_string()), true) } else { (None, false) })
        })?;
        Ok(is_due.then_some(misdeed))
    }

    fn misbehave(&self, here: Place) -> Result<(), Error> {
        match self.misdeed(here)? {
            Some(misdeed) => misdeeds::commit(misdeed),
            None => Ok(()),
        }
    }
}

impl Plugin for Hostile {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Config = serde_json::from_str(config)?;
        let mode = config.mode.as_deref().map(mode::parse).transpose()?;
        let plugin = Self { mode, times: config.times, headers: Vec::new() };
        plugin.misbehave(Place::Configure)?;
        Ok(plugin)
    }

    fn session_start(&mut self, _: &Session, _: &Start) -> Result<(), Error> {
        self.misbehave(Place::Start)
    }
}

impl ContextEngine for Hostile {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.headers.extend(headers);
        self.misbehave(Place::Observe)
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|header| header.id < first);
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        if let Err(error) = self.misbehave(Place::Assess) {
            panic!("{error}");
        }
        let full = pressure.prompt_tokens > pressure.context_length / 2;
        let propose = if self.mode.is_some() || full { Timing::Now } else { Timing::NotNow };
        Advice { prepare: self.mode.is_some_and(|(_, place)| place == Place::Prepare), propose }
    }

    fn prepare(&mut self, _: &Request) -> Result<Progress, Error> {
        self.misbehave(Place::Prepare)?;
        Ok(Progress::Done)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        if let Some(misdeed) = self.misdeed(Place::Propose)? {
            misdeeds::commit(misdeed)?;
            return Ok(plans::bad(misdeed, &self.headers));
        }
        let full = request.pressure.prompt_tokens > request.pressure.context_length / 2;
        Ok(if full { plans::good(&self.headers) } else { None })
    }

    fn settled(&mut self, _: &Outcome) -> Result<(), Error> {
        self.misbehave(Place::Settled)
    }
}

impl Tools for Hostile {
    fn catalog(&self) -> Vec<Tool> {
        let tool = |name: &str, description: &str, arguments: Value| {
            let required: Vec<&String> =
                arguments.as_object().into_iter().flat_map(|arguments| arguments.keys()).collect();
            let parameters = json!({ "type": "object", "properties": &arguments, "required": required });
            Tool::new(name, description, parameters).toolset("hostile").parallel(true)
        };
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
        vec![
            tool(
                "poke",
                "Misbehaves as the mode says: ok, loop, alloc, panic, recurse, error.",
                json!({ "mode": text }),
            ),
            tool("spin", "Computes without end.", json!({})),
            tool("eat", "Takes memory without end.", json!({})),
            tool("crash", "Panics.", json!({})),
            tool("echo", "Answers the text.", json!({ "text": text })).effect(Effect::Reads),
            tool("sleepy", "Waits for so many milliseconds.", json!({ "ms": number })).effect(Effect::Reads),
            tool("big", "Answers so many bytes.", json!({ "bytes": number })).effect(Effect::Reads),
            tool("peek", "Reads a file of the workspace, or tries to leave it.", json!({ "path": text }))
                .effect(Effect::Reads),
        ]
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let text = |key: &str| arguments[key].as_str().ok_or_else(|| Error::invalid(format!("{key} must be a text")));
        let number =
            |key: &str| arguments[key].as_u64().ok_or_else(|| Error::invalid(format!("{key} must be a number")));
        let answer = match invocation.name.as_str() {
            "poke" => {
                misdeeds::commit(mode::parse(text("mode")?)?.0)?;
                "ok".to_owned()
            }
            "spin" => misdeeds::spin(),
            "eat" => misdeeds::eat(),
            "crash" => panic!("{}", misdeeds::LAST_WORDS),
            "echo" => text("text")?.to_owned(),
            "sleepy" => format!("slept {} ms", misdeeds::sleep(number("ms")?)),
            "big" => "x".repeat(usize::try_from(number("bytes")?).unwrap_or(usize::MAX)),
            "peek" => {
                let bytes = files::read_all("workspace", text("path")?, 1 << 20)?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => return Err(invocation.unknown()),
        };
        Ok(Output::text(answer))
    }
}

hermes_plugin::export!(Hostile: ContextEngine, Tools);
