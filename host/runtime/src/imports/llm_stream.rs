//! The import `llm-stream`: replies that arrive piece by piece.
//!
//! A generation runs only while its plugin waits in `next`, so a plugin that reads slowly slows the provider down, and nothing is
//! left to stop when the generation is dropped.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use hermes_bindings::imported;
use imported::llm_stream as wit;
use imported::types::Error;
use wasmtime::component::Resource;

use super::llm::reply;
use crate::context::Context;
use crate::convert::fault;
use crate::error::{Fault, FaultKind};
use crate::services::{ModelReply, Piece, Pieces};

/// The most generations that a call of a plugin has open at a time.
const MOST_OPEN: usize = 8;

type Running = Pin<Box<dyn Future<Output = Result<ModelReply, Fault>> + Send>>;

/// The generations of the current call.
#[derive(Default)]
pub(crate) struct Generations {
    open: HashMap<u32, Generation>,
    /// Numbers are never used twice, so that a handle of an earlier call finds nothing.
    made: u32,
}

struct Generation {
    pieces: Pieces,
    /// None once the reply or an error was returned.
    running: Option<Running>,
    /// The result, until its last pieces were taken.
    result: Option<Result<ModelReply, Fault>>,
}

impl Generations {
    /// Ends all generations.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

impl Generation {
    /// The next piece, or the result.
    async fn next(&mut self) -> Option<Next> {
        poll_fn(|context| {
            if let Some(piece) = self.pieces.take() {
                return Poll::Ready(Some(Next::Piece(piece)));
            }
            if let Some(running) = &mut self.running
                && let Poll::Ready(result) = running.as_mut().poll(context)
            {
                self.running = None;
                self.result = Some(result);
            }
            match (self.pieces.take(), &self.running) {
                (Some(piece), _) => Poll::Ready(Some(Next::Piece(piece))),
                (None, Some(_)) => Poll::Pending,
                (None, None) => Poll::Ready(self.result.take().map(Next::Result)),
            }
        })
        .await
    }
}

enum Next {
    Piece(Piece),
    Result(Result<ModelReply, Fault>),
}

impl Context {
    /// Prepares a generation and returns its number.
    pub(crate) async fn start_generation(&mut self, request: wit::Request) -> Result<u32, Error> {
        let request = self.model_request(request).await?;
        if self.generations.open.len() >= MOST_OPEN {
            let why = format!("{MOST_OPEN} generations are open already: finish or drop one first");
            return Err(fault(Fault::new(FaultKind::Exhausted, "generations", why)));
        }
        let (models, pieces) = (self.services.models.clone(), Pieces::kept());
        let running = {
            let pieces = pieces.clone();
            Box::pin(async move { models.stream(request, &pieces).await })
        };
        self.generations.made += 1;
        let number = self.generations.made;
        self.generations.open.insert(number, Generation { pieces, running: Some(running), result: None });
        Ok(number)
    }

    /// The next delta of a generation.
    pub(crate) async fn next_delta(&mut self, number: u32) -> Result<Option<wit::Delta>, Error> {
        let Some(generation) = self.generations.open.get_mut(&number) else {
            let why = "the call that started this generation is over, and the generation ended with it";
            return Err(fault(Fault::new(FaultKind::InvalidInput, "ended", why)));
        };
        let next = self.call.bounded(async { Ok(generation.next().await) }).await;
        match next.map_err(fault)? {
            None => Ok(None),
            Some(Next::Piece(Piece::Text(text))) => Ok(Some(wit::Delta::Text(text))),
            Some(Next::Piece(Piece::Reasoning(text))) => Ok(Some(wit::Delta::Reasoning(text))),
            Some(Next::Result(result)) => {
                let result = result.map_err(fault)?;
                self.tally.model_called(result.usage.input.into(), result.usage.output.into());
                Ok(Some(wit::Delta::Done(reply(result))))
            }
        }
    }

    /// Ends a generation.
    pub(crate) fn drop_generation(&mut self, number: u32) {
        self.generations.open.remove(&number);
    }
}

impl wit::Host for Context {
    async fn start(&mut self, request: wit::Request) -> Result<Resource<wit::Generation>, Error> {
        self.start_generation(request).await.map(Resource::new_own)
    }
}

impl wit::HostGeneration for Context {
    async fn next(&mut self, generation: Resource<wit::Generation>) -> Result<Option<wit::Delta>, Error> {
        self.next_delta(generation.rep()).await
    }

    async fn drop(&mut self, generation: Resource<wit::Generation>) -> wasmtime::Result<()> {
        self.drop_generation(generation.rep());
        Ok(())
    }
}
