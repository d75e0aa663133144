//! What an excerpt shows of its message.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::part::Part;
use crate::{Excerpt, Message, ToolCall};

/// The text of a shortened message: a line names each picture and file that does not stay.
pub(crate) fn excerpt_text<'a>(message: &'a Message, excerpt: &'a Excerpt) -> Cow<'a, str> {
    let text = excerpt.content.as_deref().unwrap_or(message.text_sent());
    let named: Vec<String> = if excerpt.keep_images {
        Vec::new()
    } else {
        message.inner_parts().filter(|part| part.media().is_some()).filter_map(Part::mention).collect()
    };
    if named.is_empty() {
        return text.into();
    }
    let text = (!text.is_empty()).then(|| text.to_owned());
    text.into_iter().chain(named).collect::<Vec<_>>().join("\n").into()
}

/// The calls of a message with the arguments that an excerpt shows in place of their own.
pub(crate) fn shortened_calls(message: &Message, excerpt: &Excerpt) -> Vec<ToolCall> {
    // Of two entries for one call, the first counts.
    let shown: HashMap<&str, &String> =
        excerpt.arguments.iter().rev().map(|(id, arguments)| (id.as_str(), arguments)).collect();
    let shortened = message.tool_calls.iter().map(|call| match shown.get(call.id.as_str()) {
        Some(arguments) => ToolCall { arguments: (*arguments).clone(), ..call.clone() },
        None => call.clone(),
    });
    shortened.collect()
}
