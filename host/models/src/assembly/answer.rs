//! Answers in one piece that are no replies of a model: vectors, lists of models.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::{Assemble, Broken, Progress, Unread};
use crate::failure::{
    Stated,
    complaint::{Place, complaint},
};
use crate::{Finish, OnDelta, Reply};

/// Reads what is wanted from an answer.
pub(crate) type Read<T> = fn(&Value) -> Result<T, Unread>;

/// Where the last answer is found once the request has succeeded.
pub(crate) struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Slot<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Takes the answer out.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// An assembly that fills this slot.
    pub(crate) fn assembly(&self, read: Read<T>) -> Box<dyn Assemble>
    where
        T: Send + 'static,
    {
        Box::new(Answer { slot: Self(Arc::clone(&self.0)), read })
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn keep(&self, answer: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

struct Answer<T> {
    slot: Slot<T>,
    read: Read<T>,
}

impl<T: Send> Assemble for Answer<T> {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Stated> {
        // No endpoint streams such answers, but some send the one answer as an event.
        match self.take_whole(event, on_delta) {
            Err(Unread::Stated(stated)) => Err(stated),
            Ok(()) | Err(Unread::Lacks(_)) => Ok(()),
        }
    }

    fn take_whole(&mut self, answer: &Value, _: OnDelta<'_>) -> Result<(), Unread> {
        if let Some(stated) = complaint(answer, Place::Part) {
            return Err(stated.into());
        }
        self.slot.keep((self.read)(answer)?);
        Ok(())
    }

    fn done(&mut self) {}

    fn progress(&self) -> Progress {
        Progress::Open
    }

    fn calls(&self) -> usize {
        0
    }

    fn into_text(self: Box<Self>) -> String {
        String::new()
    }

    fn finish(self: Box<Self>, asked: &str, _: &mut dyn FnMut() -> String) -> Result<Reply, Broken> {
        if self.slot.is_empty() {
            return Err(Broken::Cut { partial: String::new() });
        }
        Ok(Reply {
            text: String::new(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: None,
            model: asked.to_owned(),
            parts: Vec::new(),
        })
    }
}
