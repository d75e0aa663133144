//! A context engine and a set of tools that misbehave on demand.
//!
//! The engine does what `mode` of its configuration says (see [`mode`]), by default in `propose`. With a mode it wants to propose at
//! every `assess`; without one it is a correct engine that folds from half of the window on. The tool `poke` does what its argument
//! `mode` says.

mod faults;
mod mode;
mod plans;

use hermes_plugin::context_engine::{Advice, Outcome, Plan, Pressure, Request, Timing};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{
    ContextEngine, Error, Header, MessageId, Model, Plugin, Progress, Session, Start, Tools, documents, files,
};
use serde_json::{Value, json};

use crate::mode::{Config, Fault, Function};

/// A document that counts the faults of all instances.
const COUNT: &str = "faults.txt";

/// The plugin.
pub struct Hostile {
    mode: Option<(Fault, Function)>,
    times: Option<u64>,
    headers: Vec<Header>,
}

impl Hostile {
    /// The fault to commit in this function, if any.
    fn fault(&self, here: Function) -> Result<Option<Fault>, Error> {
        let Some((fault, _)) = self.mode.filter(|(_, function)| *function == here) else { return Ok(None) };
        let Some(times) = self.times else { return Ok(Some(fault)) };
        let is_due = documents::update(COUNT, |count| {
            let count: u64 = count.trim().parse().unwrap_or(0);
            Ok::<_, Error>(if count < times { (Some((count + 1).to_string()), true) } else { (None, false) })
        })?;
        Ok(is_due.then_some(fault))
    }

    fn misbehave(&self, here: Function) -> Result<(), Error> {
        match self.fault(here)? {
            Some(fault) => faults::commit(fault),
            None => Ok(()),
        }
    }
}

impl Plugin for Hostile {
    fn configure(config: &str) -> Result<Self, Error> {
        let config: Config = serde_json::from_str(config)?;
        let mode = config.mode.as_deref().map(mode::parse).transpose()?;
        let plugin = Self { mode, times: config.times, headers: Vec::new() };
        plugin.misbehave(Function::Configure)?;
        Ok(plugin)
    }

    fn session_start(&mut self, _: &Session, _: &Start) -> Result<(), Error> {
        self.misbehave(Function::Start)
    }
}

impl ContextEngine for Hostile {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.headers.extend(headers);
        self.misbehave(Function::Observe)
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.headers.retain(|header| header.id < first);
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        if let Err(error) = self.misbehave(Function::Assess) {
            panic!("{error}");
        }
        let full = pressure.prompt_tokens > pressure.context_length / 2;
        let propose = if self.mode.is_some() || full { Timing::Now } else { Timing::NotNow };
        Advice::new(self.mode.is_some_and(|(_, function)| function == Function::Prepare), propose)
    }

    fn prepare(&mut self, _: &Request) -> Result<Progress, Error> {
        self.misbehave(Function::Prepare)?;
        Ok(Progress::Done)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        if let Some(fault) = self.fault(Function::Propose)? {
            faults::commit(fault)?;
            return Ok(plans::bad(fault, &self.headers));
        }
        let full = request.pressure.prompt_tokens > request.pressure.context_length / 2;
        Ok(if full { plans::good(&self.headers) } else { None })
    }

    fn settled(&mut self, _: &Outcome) -> Result<(), Error> {
        self.misbehave(Function::Settled)
    }
}

impl Tools for Hostile {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str, description: &str, arguments: Value| {
            let required: Vec<&String> =
                arguments.as_object().into_iter().flat_map(|arguments| arguments.keys()).collect();
            let parameters = json!({ "type": "object", "properties": &arguments, "required": required });
            Tool::new(name, description, parameters).toolset("hostile").parallel(true)
        };
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer", "minimum": 0 }));
        Ok(vec![
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
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let arguments: Value = invocation.parse()?;
        let text = |key: &str| arguments[key].as_str().ok_or_else(|| Error::invalid(format!("{key} must be a text")));
        let number =
            |key: &str| arguments[key].as_u64().ok_or_else(|| Error::invalid(format!("{key} must be a number")));
        let answer = match invocation.name.as_str() {
            "poke" => {
                faults::commit(mode::parse(text("mode")?)?.0)?;
                "ok".to_owned()
            }
            "spin" => faults::spin(),
            "eat" => faults::eat(),
            "crash" => panic!("{}", faults::LAST_WORDS),
            "echo" => text("text")?.to_owned(),
            "sleepy" => format!("slept {} ms", faults::sleep(number("ms")?)),
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
