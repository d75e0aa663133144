//! An instance at work: the functions of the contract, whatever the plugin's code is made of.

use hermes_bindings::exports::hermes::plugin as exported;
use hermes_bindings::hermes::plugin::types::{Error, Header, MessageRange, Model, Session};
use hermes_conversation::MessageId;

use crate::component;
use crate::context::{Call, Context};
use crate::convert;
use crate::native;
use crate::types::{
    Advice, AssistDraft, Ending, Event, Invocation, Output, Progress, Query, Quote, Recollection, Skill, SkillDocument,
    Start, Tool, Verdict,
};

/// An instance, and how far it is.
pub(crate) struct Live {
    body: Body,
    /// The newest message that a context engine was told of.
    observed: Option<MessageId>,
}

pub(crate) enum Body {
    Component(Box<component::Guest>),
    Native(Box<native::Guest>),
}

/// A plugin that lacks the interface is not asked: that was read off its exports.
fn missing(interface: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it does not export `{interface}`"))
}

/// Each function by its own name, by that of the component's binding, and by its interface.
macro_rules! functions {
    ($($interface:ident $name:literal {
        $($function:ident $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+
    })+) => {
        impl Live {
            $($(
                pub(crate) async fn $function(&mut self, $($argument: $type),*) -> wasmtime::Result<$answer> {
                    match &mut self.body {
                        Body::Component(guest) => {
                            let $interface = guest.$interface.as_ref().ok_or_else(|| missing($name))?;
                            $interface.$call(&mut guest.store, $($argument),*).await
                        }
                        Body::Native(guest) => {
                            let $interface = guest.tables().$interface.ok_or_else(|| missing($name))?;
                            guest.call($interface.$function(), &($($argument,)*)).await
                        }
                    }
                }
            )+)+
        }
    };
}

functions! {
    lifecycle "lifecycle" {
        configure call_configure(config: &str) -> Result<(), Error>;
        session_start call_session_start(session: &Session, how: &Start) -> Result<(), Error>;
        session_end call_session_end(how: Ending) -> Result<(), Error>;
    }
    context_engine "context-engine" {
        model_changed call_model_changed(model: &Model) -> Result<(), Error>;
        observe call_observe(headers: &[Header]) -> Result<(), Error>;
        assess call_assess(pressure: &exported::context_engine::Pressure) -> Advice;
        prepare call_prepare(request: &exported::context_engine::Request) -> Result<Progress, Error>;
        propose call_propose(
            request: &exported::context_engine::Request
        ) -> Result<Option<exported::context_engine::Plan>, Error>;
        settled call_settled(outcome: &exported::context_engine::Outcome) -> Result<(), Error>;
        status call_status() -> String;
    }
    context_assist "context-assist" {
        assist call_assist(draft: &AssistDraft, budget: u32) -> Result<Vec<Quote>, Error>;
    }
    memory_provider "memory-provider" {
        system_prompt call_system_prompt() -> Result<String, Error>;
        recall call_recall(query: &Query) -> Result<Vec<Recollection>, Error>;
        sync_turn call_sync_turn(turn: &exported::memory_provider::Turn) -> Result<(), Error>;
    }
    memory_events "memory-events" {
        before_compact call_before_compact(messages: MessageRange) -> Result<String, Error>;
    }
    tools "tools" {
        catalog call_catalog() -> Vec<Tool>;
        call call_call(invocation: &Invocation) -> Result<Output, Error>;
    }
    skills "skills" {
        index call_index() -> Result<Vec<Skill>, Error>;
        view call_view(name: &str, path: Option<&str>) -> Result<SkillDocument, Error>;
    }
    hooks "hooks" {
        interests call_interests() -> Vec<String>;
        on_event call_on_event(event: &Event) -> Verdict;
    }
}

impl Live {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, observed: None }
    }

    pub(crate) fn context(&self) -> &Context {
        match &self.body {
            Body::Component(guest) => guest.store.data(),
            Body::Native(guest) => &guest.context,
        }
    }

    fn context_mut(&mut self) -> &mut Context {
        match &mut self.body {
            Body::Component(guest) => guest.store.data_mut(),
            Body::Native(guest) => &mut guest.context,
        }
    }

    /// It goes on to another call.
    pub(crate) fn begin(&mut self, call: Call) {
        self.context_mut().begin(call);
        if let Body::Component(guest) = &mut self.body {
            guest.store.set_epoch_deadline(1);
        }
    }

    /// Adds what the call used so far to the plugin's figures.
    pub(crate) fn account(&mut self) {
        self.context_mut().account();
    }

    /// Tells a context engine of the messages that its instance has not heard of.
    pub(crate) async fn catch_up(&mut self) -> wasmtime::Result<Result<(), Error>> {
        let headers = self.context().services.history.headers_after(self.observed);
        let Some(last) = headers.last().map(|header| header.id) else { return Ok(Ok(())) };
        let headers: Vec<_> = headers.iter().map(convert::header).collect();
        let answer = self.observe(&headers).await?;
        if answer.is_ok() {
            self.observed = Some(last);
        }
        Ok(answer)
    }
}
