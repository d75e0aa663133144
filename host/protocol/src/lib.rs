//! What front ends and sessions say to each other: commands, events, questions and problems.
//!
//! A front end sends a [`Command`] to a session, and reads [`Event`]s. An [`EventKind::Asked`] is a question that a command
//! answers; [`Snapshot`] is the state of a session for a front end that missed events. Every type can be serialised, so that a
//! front end may be another process or another language: [`command_schema`] and [`event_schema`] describe the JSON, and
//! `docs/schema/` has both. The crate knows neither the loop nor the runtime of plugins.
//!
//! ```
//! use hermes_protocol::{Command, UserMessage};
//!
//! let say = Command::Say(UserMessage::from("hello"));
//! assert_eq!(serde_json::to_string(&say).unwrap(), r#"{"command":"say","text":"hello"}"#);
//! ```

#![forbid(unsafe_code)]

mod command;
mod compression;
mod event;
mod fold;
mod id;
mod mode;
mod problem;
mod query;
mod question;
mod schema;
mod snapshot;
mod status;
mod task;
mod undo;

pub use command::{Accepted, Command, CommandError, UserMessage, codes};
pub use compression::{Compression, CompressionPreview};
pub use event::{CompressionEnd, Event, EventKind, FileDiff, RefusedBy, TurnEnd};
/// What messages consist of, and what a front end must know of a text before it shows it.
pub use hermes_conversation::{
    Author, DelegationState, Draft, Effort, Media, Message, MessageId, MessageRange, Model, Origin, Part, Role,
    SessionId, ToolCall, Usage, characters, media, one_line, one_line_within,
};
pub use hermes_diagnostic::{Category, Fix};
pub use id::{CallId, Epoch, Position, QuestionId, TurnNumber};
pub use mode::{Mode, NoMode};
pub use problem::Problem;
pub use query::{Query, QuestionEnd};
pub use question::{
    Decision, FileChange, FileDeed, Objection, ProgramRun, Question, SAMPLING, SERVER_VERSION, SamplingRequest, Subject,
};
pub use schema::{command_schema, event_schema};
pub use snapshot::{CountedReply, OpenQuestion, RunningCall, Snapshot};
pub use status::Status;
pub use task::TaskStatus;
pub use undo::{Head, OnConflict, Turns, Undo, Unrestored};

/// The version of the protocol. The second number grows with a new command, event or member, the first one when something
/// that existed changes or goes. A program ignores events and members that it does not know.
pub const VERSION: &str = "1.1";
