//! Reads the events of a reply without a server, for tests of what is done with replies.

use serde_json::Value;

use crate::assembly::{Assemble, chat, messages, responses};
use crate::{ApiMode, Echo, Reply};

/// The reply that these events form in a wire format; none if they form none.
pub fn read(mode: ApiMode, echo: Echo, events: &[Value]) -> Option<Reply> {
    let mut assembly: Box<dyn Assemble> = match mode {
        ApiMode::ChatCompletions => Box::new(chat::Assembly::new(echo)),
        ApiMode::AnthropicMessages => Box::new(messages::Assembly::new(false).echoing(echo)),
        ApiMode::Responses => Box::new(responses::Assembly::default()),
    };
    for event in events {
        assembly.take(event, &mut |_| {}).ok()?;
    }
    assembly.done();
    let mut made = 0;
    let mut new_id = || {
        made += 1;
        format!("call_{made:020x}")
    };
    assembly.finish("asked", &mut new_id).ok()
}
