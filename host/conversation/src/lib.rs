//! What is a valid conversation, view and plan, as plain data and pure functions.
//!
//! The log of a session is a list of [`Message`]s that only grows. What a model sees of it is a
//! [`View`]: messages, shorter renderings of some ([`Excerpt`]), and [`Summary`] texts that name the
//! messages they stand for. A context engine proposes a [`Plan`]; [`plan::verify`] alone decides
//! whether it becomes a view. Nothing here reads a clock, a file or the network.

#![forbid(unsafe_code)]

pub mod characters;
pub mod closing;
mod conversation;
mod covers;
mod delegation;
mod digest;
mod effort;
mod excerpt;
pub mod fence;
pub mod found;
mod id;
#[doc(hidden)]
pub mod invariants;
pub mod last_resort;
mod line;
pub mod media;
mod message;
mod model;
pub mod part;
pub mod payoff;
pub mod picture;
pub mod plan;
pub mod reminder;
pub mod render;
mod soundness;
pub mod tokens;
pub mod validity;
mod view;

pub use conversation::Conversation;
pub use delegation::DelegationState;
pub use digest::digest;
pub use effort::Effort;
pub use id::{MessageId, MessageRange, SessionId, ViewId};
pub use line::{one_line, one_line_within};
pub use media::{BlobId, Media};
pub use message::{Draft, Header, Message, Origin, Role, ToolCall, ToolSchema};
pub use model::{Model, Usage};
pub use part::{Author, Part, ProviderPayload, ToolResult};
pub use plan::{Plan, Refusal, Segment};
pub use render::Shown;
pub use soundness::PartError;
pub use view::{Excerpt, Item, Summary, View};
