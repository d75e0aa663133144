//! The parts of a message: text, pictures, files, reasoning, calls, results, refusals.
//!
//! A message that consists only of text, reasoning and calls, or of the text of one successful result, needs no list of
//! parts: its fields express it. Every other message has a list, and its text fields repeat the words of the parts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Media, ToolCall};

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Media),
    /// A document.
    File(Media),
    /// The model's reasoning.
    Reasoning {
        /// The visible text; empty if the provider hides it.
        text: String,
        /// The payload that the provider expects back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<ProviderPayload>,
    },
    /// A call that the model asks for.
    ToolCall(ToolCall),
    /// A tool's answer to a call.
    ToolResult(ToolResult),
    /// The model's refusal.
    Refusal {
        /// The model's words.
        text: String,
    },
    /// An item that only its provider understands.
    Provider(ProviderPayload),
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The picture or file.
    pub fn media(&self) -> Option<&Media> {
        match self {
            Self::Image(media) | Self::File(media) => Some(media),
            _ => None,
        }
    }

    /// The provider's payload.
    pub fn payload(&self) -> Option<&ProviderPayload> {
        match self {
            Self::Reasoning { payload, .. } => payload.as_ref(),
            Self::Provider(payload) => Some(payload),
            _ => None,
        }
    }

    /// The provider's payload, to be tagged.
    pub fn payload_mut(&mut self) -> Option<&mut ProviderPayload> {
        match self {
            Self::Reasoning { payload, .. } => payload.as_mut(),
            Self::Provider(payload) => Some(payload),
            _ => None,
        }
    }

    /// The picture or file, to be changed.
    pub fn media_mut(&mut self) -> Option<&mut Media> {
        match self {
            Self::Image(media) | Self::File(media) => Some(media),
            _ => None,
        }
    }

    /// A line that names a part without text: `[image: chart.png, image/png]`.
    pub fn mention(&self) -> Option<String> {
        match self {
            Self::Image(media) => Some(media.mention("image")),
            Self::File(media) => Some(media.mention("file")),
            Self::Provider(payload) => Some(format!("[an item of {}]", payload.provider)),
            _ => None,
        }
    }
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Text, images and files.
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
    /// The answer as JSON, if the tool returns it beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<String>,
    /// What the model still has to know when a view no longer shows the result; empty if nothing. `None` leaves the reminder of
    /// the tool's earlier results valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// JSON of a provider, kept byte for byte: a signature, a redacted block, an encrypted item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderPayload {
    /// The provider that wrote it.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// The wire format.
    pub api_mode: String,
    /// The JSON.
    pub data: String,
}

impl ProviderPayload {
    /// A payload without tags: the code that reads a reply knows neither the provider's name nor the model's.
    pub fn untagged(data: String) -> Self {
        Self { provider: String::new(), model: String::new(), api_mode: String::new(), data }
    }

    /// Whether this model can read it.
    pub fn is_for(&self, reader: &Reader<'_>) -> bool {
        self.provider == reader.provider && self.model == reader.model && self.api_mode == reader.api_mode
    }
}

/// The model that a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The wire format.
    pub api_mode: &'a str,
}

/// The number of provider payloads that a request contains, and of those that it leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Payloads {
    /// Sent back unchanged.
    pub replayed: u32,
    /// Left out: another model wrote them.
    pub dropped: u32,
}

impl Payloads {
    /// The sum of both.
    pub fn and(self, more: Self) -> Self {
        Self { replayed: self.replayed + more.replayed, dropped: self.dropped + more.dropped }
    }
}

/// The author of a message in a conversation with several people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Author {
    /// Unique among the people of the conversation.
    pub id: String,
    /// The name that others see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Removes payloads that this model cannot read, and reasoning without a payload, which no request contains.
pub(crate) fn keep_for(parts: &mut Vec<Part>, reader: &Reader<'_>) -> Payloads {
    let mut payloads = Payloads::default();
    parts.retain(|part| match (part.payload(), part) {
        (Some(payload), _) if payload.is_for(reader) => {
            payloads.replayed += 1;
            true
        }
        (Some(_), _) => {
            payloads.dropped += 1;
            false
        }
        (None, part) => !matches!(part, Part::Reasoning { .. }),
    });
    payloads
}

/// The bytes of a picture or file. `Debug` prints only their length.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine as _;
        let text = String::deserialize(deserializer)?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}
