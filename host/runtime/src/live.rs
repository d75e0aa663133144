//! A running instance: the functions of the contract, the same for components and native libraries.

use hermes_bindings::exported;
use hermes_bindings::exported::memory_prefetch::Prefetched;
use hermes_bindings::exported::tool_preview::CallPreview;
use hermes_bindings::imported::types::{Error, Header, MessageRange, Model, Session};
use hermes_conversation::MessageId;

use crate::component;
use crate::context::{Call, Context};
use crate::convert;
use crate::interfaces::interfaces;
use crate::native;
use crate::types::{
    Advice, AssistDraft, Ending, Event, Invocation, MemoryWrite, Outlook, Progress, Query, Quote, Recollection, Skill,
    SkillDocument, Start, Tool, Verdict,
};

/// A running instance.
pub(crate) struct Live {
    body: Body,
    /// The newest message that was passed to a context engine.
    observed: Option<MessageId>,
}

pub(crate) enum Body {
    Component(Box<component::Guest>),
    Native(Box<native::Guest>),
}

/// Only reached by a bug: the host reads a plugin's exports and never calls an interface that is missing.
fn missing(interface: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it does not export `{interface}`"))
}

macro_rules! functions {
    (required $($(#[$doc:meta])* $interface:ident $name:literal {
        $($function:ident $call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+
    })+) => {
        impl Live {
            $($(
                pub(crate) async fn $function(&mut self, $($argument: $type),*) -> wasmtime::Result<$answer> {
                    match &mut self.body {
                        Body::Component(guest) => {
                            let $interface = guest.exports.$interface.as_ref().ok_or_else(|| missing($name))?;
                            $interface.$call(&mut guest.store, $($argument),*).await
                        }
                        Body::Native(guest) => {
                            let function = guest.function($name, stringify!($call));
                            guest.call(function.ok_or_else(|| missing($name))?, &($($argument,)*)).await
                        }
                    }
                }
            )+)+
        }
    };
}

interfaces!(functions);

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

    /// Starts another call.
    pub(crate) fn begin(&mut self, call: Call) {
        self.context_mut().begin(call);
        if let Body::Component(guest) = &mut self.body {
            guest.store.set_epoch_deadline(1);
        }
    }

    /// Tells a context engine that a message and all later ones are gone.
    pub(crate) async fn take_back(&mut self, first: MessageId) -> wasmtime::Result<Result<(), Error>> {
        let answer = self.rewound(first.0).await?;
        // Messages stored from now on have higher ids, and have to be observed.
        self.observed = self.observed.map(|observed| observed.min(MessageId(first.0.saturating_sub(1))));
        Ok(answer)
    }

    /// Adds what the call used so far to the plugin's figures.
    pub(crate) fn account(&mut self) {
        self.context_mut().account();
    }

    /// Passes a context engine the headers of the messages that its instance has not seen.
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
