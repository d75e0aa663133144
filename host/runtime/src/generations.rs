//! The replies that a plugin's call reads piece by piece, while they are open.
//!
//! A generation runs only while its plugin waits for the next piece, so a plugin that reads slowly slows the provider down,
//! and nothing is left to stop when the generation is dropped.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::error::Fault;
use crate::services::{ModelReply, Piece, Pieces};

/// A request to a model, under way.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<ModelReply, Fault>> + Send>>;

/// The generations of the current call.
#[derive(Default)]
pub(crate) struct Generations {
    open: HashMap<u32, Generation>,
    /// Numbers are never used twice, so that a handle of an earlier call finds nothing.
    made: u32,
}

/// A reply that arrives piece by piece.
pub(crate) struct Generation {
    pieces: Pieces,
    /// None once the reply or an error was returned.
    running: Option<Running>,
    /// The result, until its last pieces were taken.
    result: Option<Result<ModelReply, Fault>>,
}

impl Generations {
    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    /// Adds a generation and returns its number.
    pub(crate) fn add(&mut self, pieces: Pieces, running: Running) -> u32 {
        self.made += 1;
        self.open.insert(self.made, Generation { pieces, running: Some(running), result: None });
        self.made
    }

    /// The generation with this number, if it is open.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Generation> {
        self.open.get_mut(&number)
    }

    /// Ends a generation.
    pub(crate) fn end(&mut self, number: u32) {
        self.open.remove(&number);
    }

    /// Ends all generations.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

impl Generation {
    /// The next piece, or the result.
    pub(crate) async fn next(&mut self) -> Option<Next> {
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

/// What a generation gives next.
pub(crate) enum Next {
    Piece(Piece),
    Result(Result<ModelReply, Fault>),
}
