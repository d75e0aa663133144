//! References that a model can pass to the tools: a message, a part of it, or a stretch of messages.

use hermes_plugin::{Error, MessageId, MessageRange};

/// A parsed reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reference {
    /// A message's text.
    Text(MessageId),
    /// The arguments of one of its calls, counted from 1.
    Call(MessageId, usize),
    Reasoning(MessageId),
    Stretch(MessageRange),
}

impl Reference {
    /// Parses `#12`, `12`, `#12/1`, `#12/reasoning`, `#12-#80`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let unknown = || {
            Error::invalid(format!(
                "`{}` names no message: write #12 for a message, #12/1 for the arguments of its first call, \
                 #12/reasoning, or #12-#80 for a stretch",
                crate::clip::line(text, 60)
            ))
        };
        let id = |text: &str| -> Option<MessageId> { text.trim().trim_start_matches('#').parse().ok() };
        let plain = text.trim().trim_matches(['[', ']', '"', '`']);
        if let Some((message, part)) = plain.split_once('/') {
            let message = id(message).ok_or_else(unknown)?;
            return match part.trim() {
                "reasoning" => Ok(Self::Reasoning(message)),
                part => Ok(Self::Call(message, part.parse().ok().filter(|n| *n > 0).ok_or_else(unknown)?)),
            };
        }
        if let Some((first, last)) = plain.split_once('-') {
            let range = MessageRange::new(id(first).ok_or_else(unknown)?, id(last).ok_or_else(unknown)?);
            return if range.first <= range.last { Ok(Self::Stretch(range)) } else { Err(unknown()) };
        }
        id(plain).map(Self::Text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_accepted_as_models_write_them() {
        let table = [
            ("#12", Some(Reference::Text(12))),
            (" 12 ", Some(Reference::Text(12))),
            ("[#12]", Some(Reference::Text(12))),
            ("#12/2", Some(Reference::Call(12, 2))),
            ("#12/reasoning", Some(Reference::Reasoning(12))),
            ("#12-#80", Some(Reference::Stretch(MessageRange::new(12, 80)))),
            ("12-80", Some(Reference::Stretch(MessageRange::new(12, 80)))),
            ("#80-#12", None),
            ("#12/0", None),
            ("#12/x", None),
            ("", None),
            ("#", None),
            ("src/main.rs", None),
            ("#99999999999999999999999", None),
        ];
        for (text, expected) in table {
            assert_eq!(Reference::parse(text).ok(), expected, "{text}");
        }
    }
}
