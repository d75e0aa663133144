//! A context engine that keeps contexts small and every message reachable.
//!
//! Messages that leave the view are folded into frozen segments: lists made by rule, each line with the number of its
//! message. A working set repeats text in use. The newest messages stay in full. Three tools search, expand and outline
//! the log. The rules are plain functions over headers and texts; only this file and [`source`] call the host.

mod action;
mod assist;
mod budgets;
mod clip;
mod config;
mod current_view;
mod cut;
mod engine;
mod expand;
mod fact;
mod files;
mod gist;
mod layout;
mod mentions;
mod note;
mod outline;
mod plan;
mod planner;
mod policy;
mod read_cache;
mod recall;
mod reference;
mod segment;
mod source;
mod storage;
#[cfg(test)]
mod testing;
mod texts;
mod timing;
mod work;
mod working;

use hermes_plugin::context_assist::{Draft, Quote};
use hermes_plugin::context_engine::{Advice, Outcome, Plan, Pressure, Request};
use hermes_plugin::tools::{Effect, Invocation, Output, Tool};
use hermes_plugin::{
    ContextAssist, ContextEngine, Error, Header, MessageId, Model, Plugin, Progress, Session, Start, Tools,
};

use crate::config::Config;
use crate::engine::Engine;
use crate::source::Host;

/// The plugin: the engine connected to the host.
pub struct Lossless(Engine<Host, Host>);

impl Plugin for Lossless {
    fn configure(config: &str) -> Result<Self, Error> {
        Ok(Self(Engine::new(Config::parse(config)?, Host, Host)))
    }

    fn session_start(&mut self, session: &Session, _: &Start) -> Result<(), Error> {
        self.0.begin(&session.id);
        Ok(())
    }
}

impl ContextEngine for Lossless {
    fn model_changed(&mut self, _: Model) -> Result<(), Error> {
        self.0.model_changed();
        Ok(())
    }

    fn observe(&mut self, headers: Vec<Header>) -> Result<(), Error> {
        self.0.observe(&headers);
        Ok(())
    }

    fn rewound(&mut self, first: MessageId) -> Result<(), Error> {
        self.0.rewound(first);
        Ok(())
    }

    fn assess(&mut self, pressure: &Pressure) -> Advice {
        self.0.assess(pressure)
    }

    fn prepare(&mut self, request: &Request) -> Result<Progress, Error> {
        self.0.prepare(request, &Host)
    }

    fn propose(&mut self, request: &Request) -> Result<Option<Plan>, Error> {
        self.0.propose(request)
    }

    fn settled(&mut self, outcome: &Outcome) -> Result<(), Error> {
        self.0.settled(outcome);
        Ok(())
    }

    fn status(&self) -> String {
        self.0.status()
    }
}

impl ContextAssist for Lossless {
    fn assist(&mut self, draft: &Draft, budget: u32) -> Result<Vec<Quote>, Error> {
        if !self.0.config.assist {
            return Ok(Vec::new());
        }
        let folded = self.0.state().folded;
        assist::quotes(draft, budget, &self.0.rows, folded, &Host)
    }
}

impl Tools for Lossless {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        let tool = |name: &str, description: &str, parameters: serde_json::Value| {
            Tool::new(name, description, parameters).toolset("context").effect(Effect::Reads).parallel(true)
        };
        Ok(vec![
            tool("recall", recall::DESCRIPTION, recall::parameters()),
            tool("expand", expand::DESCRIPTION, expand::parameters()),
            tool("outline", outline::DESCRIPTION, outline::parameters()),
        ])
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        let answer = match invocation.name.as_str() {
            "recall" => recall::run(&invocation.parse()?, self.0.state().folded, &Host),
            "expand" => expand::run(&invocation.parse()?, &Host),
            "outline" => outline::run(&invocation.parse()?, self.0.state().folded, &Host),
            _ => Err(invocation.unknown()),
        };
        answer.map(Output::text)
    }
}

hermes_plugin::export!(Lossless: ContextEngine, ContextAssist, Tools);
