//! The import `llm-stream`: replies that arrive piece by piece. [`Generations`](crate::generations::Generations) keeps those
//! that are open.

use hermes_bindings::imported;
use imported::llm_stream as wit;
use imported::types::Error;
use wasmtime::component::Resource;

use super::llm::reply;
use crate::context::Context;
use crate::convert::fault;
use crate::error::{Fault, FaultKind};
use crate::generations::Next;
use crate::services::{Piece, Pieces};

/// The most generations that a call of a plugin has open at a time.
const MOST_OPEN: usize = 8;

impl Context {
    /// Prepares a generation and returns its number.
    pub(crate) async fn start_generation(&mut self, request: wit::Request) -> Result<u32, Error> {
        let request = self.model_request(request).await?;
        if self.generations.open() >= MOST_OPEN {
            let why = format!("{MOST_OPEN} generations are open already: finish or drop one first");
            return Err(fault(Fault::new(FaultKind::Exhausted, "generations", why)));
        }
        let (models, pieces) = (self.services.models.clone(), Pieces::kept());
        let running = {
            let pieces = pieces.clone();
            Box::pin(async move { models.stream(request, &pieces).await })
        };
        Ok(self.generations.add(pieces, running))
    }

    /// The next delta of a generation.
    pub(crate) async fn next_delta(&mut self, number: u32) -> Result<Option<wit::Delta>, Error> {
        let Some(generation) = self.generations.get_mut(number) else {
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
        self.generations.end(number);
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
