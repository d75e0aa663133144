//! Which parts a message may have. The host makes no others; an import may bring any.

use crate::media::{MediaError, PICTURE_TYPES, Source};
use crate::part::{Part, ToolResult};
use crate::{Draft, Media, Role};

/// Why a message cannot have its parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// A tool message is one result; no other message has any.
    #[error("a message of a tool consists of one result, and no other message contains a result")]
    Result,
    /// A result contains something else than text, pictures and files.
    #[error("a result contains something else than text, pictures and files")]
    InResult,
    /// Only the model calls tools.
    #[error("only a message of the model can contain calls, reasoning, refusals and items of a provider")]
    NotTheModels,
    /// A picture or file cannot be sent.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The bytes of a picture are of another type than it says.
    #[error("a picture is declared as `{declared}`, and its bytes are of another type")]
    Type {
        /// The declared type.
        declared: String,
    },
    /// The text, reasoning, calls or result of the message differ from its parts.
    #[error("the text, reasoning, calls or result of the message differ from its parts")]
    Differs,
}

impl Draft {
    /// Checks the parts of a message by the rules that the host follows when it makes one.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check_parts(&self) -> Result<(), PartError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        match (self.role, self.parts.as_slice()) {
            (Role::Tool, [Part::ToolResult(result)]) => check_result(result)?,
            (Role::Tool, _) => return Err(PartError::Result),
            (role, parts) => parts.iter().try_for_each(|part| check_part(role, part))?,
        }
        let again = self.clone().with_parts(self.parts.clone());
        if again == *self { Ok(()) } else { Err(PartError::Differs) }
    }
}

fn check_part(role: Role, part: &Part) -> Result<(), PartError> {
    match part {
        Part::Text { .. } => Ok(()),
        Part::Image(media) => check_picture(media),
        Part::File(media) => check_address(media),
        Part::ToolResult(_) => Err(PartError::Result),
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::Refusal { .. } | Part::Provider(_) => {
            if role == Role::Assistant { Ok(()) } else { Err(PartError::NotTheModels) }
        }
    }
}

fn check_result(result: &ToolResult) -> Result<(), PartError> {
    result.parts.iter().try_for_each(|part| match part {
        Part::Text { .. } => Ok(()),
        Part::Image(media) => check_picture(media),
        Part::File(media) => check_address(media),
        _ => Err(PartError::InResult),
    })
}

fn check_picture(media: &Media) -> Result<(), PartError> {
    check_address(media)?;
    if media.blob().is_none() {
        return Ok(());
    }
    let known = PICTURE_TYPES.contains(&media.media_type.as_str());
    if !known || media.bytes().is_some_and(|bytes| crate::media::picture_type(bytes) != Some(&media.media_type)) {
        return Err(PartError::Type { declared: media.media_type.chars().take(100).collect() });
    }
    Ok(())
}

fn check_address(media: &Media) -> Result<(), PartError> {
    match &media.source {
        Source::Url(url) => Ok(Media::image_at(url).map(drop)?),
        Source::Blob(_) => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{ProviderPayload, ToolCall};

    fn gif() -> Media {
        Media::image(b"GIF89a\x01\0\x01\0".to_vec(), None).unwrap()
    }

    fn result(parts: Vec<Part>) -> Part {
        let call_id = "c".to_owned();
        Part::ToolResult(ToolResult {
            call_id,
            tool_name: None,
            parts,
            failed: false,
            structured: None,
            reminder: None,
        })
    }

    fn check(role: Role, parts: Vec<Part>) -> Result<(), PartError> {
        Draft::of_parts(role, parts, 1).check_parts()
    }

    #[test]
    fn messages_as_the_host_makes_them_are_accepted() {
        let call = Part::ToolCall(ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() });
        let payload = ProviderPayload::untagged("{}".into());
        let reasoning = Part::Reasoning { text: "hm".into(), payload: Some(payload.clone()) };
        let at = Part::Image(Media::image_at("https://example.com/a.png").unwrap());
        for (role, parts) in [
            (Role::User, vec![Part::text(""), Part::Image(gif()), at]),
            (Role::User, vec![Part::File(Media::file(b"x".to_vec(), "text/plain", None).unwrap())]),
            (Role::Assistant, vec![reasoning, Part::text("so"), call, Part::Provider(payload)]),
            (Role::Assistant, vec![Part::Refusal { text: "no".into() }]),
            (Role::Tool, vec![result(vec![Part::text("a"), Part::Image(gif())])]),
        ] {
            assert_eq!(check(role, parts), Ok(()));
        }
        assert_eq!(Draft::user("only text", 1).check_parts(), Ok(()));
    }

    #[test]
    fn parts_that_the_host_never_makes_are_refused() {
        let call = Part::ToolCall(ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() });
        let from = |url: &str| Media { source: Source::Url(url.to_owned()), ..gif() };
        let declared = |media_type: &str| Media { media_type: media_type.to_owned(), ..gif() };
        let nested = result(vec![result(vec![Part::Image(gif())])]);
        for (role, parts, error) in [
            (Role::User, vec![call.clone(), Part::Image(gif())], PartError::NotTheModels),
            (Role::User, vec![result(vec![Part::Image(gif())])], PartError::Result),
            (Role::Tool, vec![Part::Image(gif())], PartError::Result),
            (Role::Tool, vec![result(vec![Part::Image(gif())]), result(Vec::new())], PartError::Result),
            (Role::Tool, vec![nested], PartError::InResult),
            (Role::Tool, vec![result(vec![call])], PartError::InResult),
            (
                Role::User,
                vec![Part::Image(from("file:///etc/passwd"))],
                MediaError::Address("file:///etc/passwd".into()).into(),
            ),
            (
                Role::User,
                vec![Part::File(from("http://example.com"))],
                MediaError::Address("http://example.com".into()).into(),
            ),
            (Role::User, vec![Part::Image(declared("image/png"))], PartError::Type { declared: "image/png".into() }),
            (Role::User, vec![Part::Image(declared("text/html"))], PartError::Type { declared: "text/html".into() }),
        ] {
            assert_eq!(check(role, parts), Err(error));
        }
        let other = Draft { content: "harmless".into(), ..Draft::of_parts(Role::User, vec![Part::Image(gif())], 1) };
        assert_eq!(other.check_parts(), Err(PartError::Differs));
    }
}
