//! Long-term memory by mem0: its platform, a server that the user runs, or the same pipeline in the plugin's own database.
//!
//! `service` speaks the two HTTP interfaces, `delivery` stores each turn once, `local` needs no server, and `tools` are the same in
//! all three modes.

mod config;
mod delivery;
mod local;
mod memory;
mod outbound;
mod service;
mod tools;

use hermes_plugin::memory_provider::{Query, Recollection, Turn};
use hermes_plugin::tools::{Invocation, Output, Tool};
use hermes_plugin::{
    Error, Instance, MemoryProvider, MemoryRewind, MemoryUpkeep, MessageId, Progress, Setup, Tools, llm,
};

use config::{Config, Place};
use local::Local;
use memory::Store;
use service::{Dialect, Service};

/// How long a recall may take: a late answer serves the next turn.
const RECALL: u32 = 15_000;

struct Mem0 {
    backend: Backend,
    session: String,
    top_k: u32,
    rerank: bool,
}

enum Backend {
    Service(Service),
    Local(Local),
}

impl Mem0 {
    fn store(&self) -> &dyn Store {
        match &self.backend {
            Backend::Service(service) => service,
            Backend::Local(local) => local,
        }
    }
}

impl Instance for Mem0 {
    type Config = Config;

    fn check(config: &Config) -> Result<(), Error> {
        config.check()
    }

    fn new(setup: Setup<Config>) -> Result<Self, Error> {
        let (config, session) = (setup.config, setup.session);
        let (user, agent, platform) = (config.user(&session), config.agent_id.clone(), session.platform);
        let service = |dialect, base| Backend::Service(Service { dialect, base, user: user.clone(), agent, platform });
        let backend = match config.place()? {
            Place::Platform(base) => service(Dialect::Platform, base),
            Place::Server(base) => service(Dialect::Server, base),
            Place::Local => Backend::Local(Local::open(user)?),
        };
        Ok(Self { backend, session: session.id, top_k: config.top_k, rerank: config.rerank })
    }
}

impl MemoryProvider for Mem0 {
    fn system_prompt(&mut self) -> Result<String, Error> {
        Ok("# Memory (mem0)\n\
            You remember this user from earlier conversations. What fits a message is recalled beside it. Before you answer what may \
            depend on earlier conversations (preferences, people, projects, decisions), call mem0_search, more than once if the \
            question has several parts. mem0_add stores a fact, mem0_update and mem0_delete correct what is stored."
            .to_owned())
    }

    fn recall(&mut self, query: &Query) -> Result<Vec<Recollection>, Error> {
        if query.text.trim().is_empty() || query.budget == 0 {
            return Ok(Vec::new());
        }
        let mut left = query.budget;
        let mut recalled = Vec::new();
        for memory in self.store().search(&query.text, self.top_k, false, RECALL)? {
            // The conversation shows its own turns already.
            if memory.session.as_deref() == Some(self.session.as_str()) {
                continue;
            }
            let tokens = llm::count_tokens(&memory.text);
            if tokens <= left {
                left -= tokens;
                recalled.push(Recollection::new(memory.id, memory.text));
            }
        }
        Ok(recalled)
    }

    fn sync_turn(&mut self, turn: &Turn) -> Result<(), Error> {
        match &self.backend {
            Backend::Service(service) => delivery::deliver(service, turn),
            Backend::Local(local) => local.learn(turn),
        }
    }
}

impl MemoryRewind for Mem0 {
    fn rewound(&mut self, session: &str, first: MessageId) -> Result<(), Error> {
        match &self.backend {
            // mem0 merges what it extracts, so its memories do not belong to one turn alone.
            Backend::Service(_) => Ok(()),
            Backend::Local(local) => local.forget_turns(session, first),
        }
    }
}

impl MemoryUpkeep for Mem0 {
    fn upkeep(&mut self) -> Result<Progress, Error> {
        match &self.backend {
            Backend::Service(service) => {
                if service.dialect == Dialect::Platform {
                    outbound::prepare()?;
                    delivery::follow(service);
                }
                Ok(Progress::Done)
            }
            Backend::Local(local) => local.index(),
        }
    }
}

impl Tools for Mem0 {
    fn catalog(&self) -> Result<Vec<Tool>, Error> {
        Ok(tools::toolbox().catalog())
    }

    fn call(&mut self, invocation: &Invocation) -> Result<Output, Error> {
        tools::toolbox().call(self, invocation)
    }
}

hermes_plugin::export!(Mem0: MemoryProvider, MemoryRewind, MemoryUpkeep, Tools);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
