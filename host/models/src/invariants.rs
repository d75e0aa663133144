//! Rules that hold for the reply of any model server. The property tests of this crate and the targets in `fuzz/` call the
//! same functions, which panic if a rule is broken.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};

use crate::assembly::{Assemble, Broken, LONGEST_NAME, MOST_CALLS, Progress, chat, messages, responses};
use crate::endpoint::{Event, events};
use crate::{Echo, Reply, json};

/// Longer replies are parsed on a thread of their own, which the callers of these functions do not have.
const LONGEST: usize = 32 << 10;

/// Reads bytes as the reply of a server, as a stream and as a whole, in each wire format.
pub fn reply(bytes: &[u8]) {
    if bytes.len() > LONGEST {
        return;
    }
    for format in [Format::Chat, Format::Responses, Format::Messages, Format::Formed] {
        streamed(bytes, format.assembly());
        if let Ok(value) = json::parse(bytes) {
            let mut assembly = format.assembly();
            if assembly.take_whole(&value, &mut |_| {}).is_ok() {
                finish(assembly);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Format {
    Chat,
    Responses,
    Messages,
    /// Messages with a tool that gives the reply its form.
    Formed,
}

impl Format {
    fn assembly(self) -> Box<dyn Assemble> {
        match self {
            Self::Chat => Box::new(chat::Assembly::new(Echo::RETURNED)),
            Self::Responses => Box::new(responses::Assembly::default()),
            Self::Messages => Box::new(messages::Assembly::new(false)),
            Self::Formed => Box::new(messages::Assembly::new(true)),
        }
    }
}

fn streamed(bytes: &[u8], mut assembly: Box<dyn Assemble>) {
    let mut events = events(stream::iter([Ok::<_, std::io::Error>(Bytes::copy_from_slice(bytes))]));
    let mut shown = 0;
    while let Some(Some(Ok(event))) = events.next().now_or_never() {
        let value = match event {
            Event::Json(value) => value,
            Event::Done => {
                assembly.done();
                break;
            }
            Event::Error(..) | Event::Broken(_) => return,
        };
        let taken = assembly.take(&value, &mut |_| shown += 1);
        if taken.is_err() || assembly.calls() > MOST_CALLS || assembly.progress() == Progress::Over {
            break;
        }
    }
    assembly.close(&mut |_| shown += 1);
    assert!(shown <= 2 * bytes.len() + 2, "{shown} pieces are shown of {} bytes", bytes.len());
    finish(assembly);
}

fn finish(assembly: Box<dyn Assemble>) {
    let (calls, whole) = (assembly.calls(), assembly.progress() != Progress::Open);
    let mut made = 0;
    let reply = assembly.finish("asked", &mut || {
        made += 1;
        format!("made_{made}")
    });
    match reply {
        Ok(reply) => {
            assert!(whole, "a reply that broke off is accepted");
            check(&reply);
        }
        Err(Broken::Cut { .. }) => assert!(!whole, "a whole reply counts as cut"),
        Err(Broken::TooManyCalls) => assert!(calls > MOST_CALLS),
    }
}

/// At most so many calls, each with a name and an id of its own, and the parts tell the same.
fn check(reply: &Reply) {
    assert!(reply.tool_calls.len() <= MOST_CALLS);
    let ids: HashSet<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), reply.tool_calls.len(), "two calls have one id");
    for call in &reply.tool_calls {
        assert!(!call.id.is_empty() && !call.name.is_empty() && call.name.len() <= LONGEST_NAME, "{call:?}");
    }
    if !reply.parts.is_empty() {
        let told: Vec<_> = reply
            .parts
            .iter()
            .filter_map(|part| match part {
                hermes_conversation::Part::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect();
        assert_eq!(told, reply.tool_calls.iter().collect::<Vec<_>>(), "the parts tell of other calls");
    }
}

pub mod replies;
#[cfg(test)]
mod tests;
