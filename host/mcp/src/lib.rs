//! The Model Context Protocol (MCP), over the official SDK `rmcp`: a client of servers, and Hermes itself as a server.
//!
//! [`Server`] is one server in one session: it connects in the background, lists tools, calls them, and connects again after a
//! failure. [`Front`] is what a server may want of its session. This crate knows nothing of plugins, prompts or approvals: the
//! agent makes tools of what servers offer, and decides which of them run. [`serve`] answers other agents over two streams with
//! what an [`Offer`] has, and [`serve_web`] over HTTP.
//!
//! Everything that the other side sends is untrusted and bounded: see [`limits`].

#![forbid(unsafe_code)]

mod annotated;
mod bounded;
mod child;
mod confinement;
mod connection;
mod content;
mod definition;
mod error;
mod flow;
mod form;
mod front;
mod handler;
mod http;
mod input;
mod joined;
mod kept;
pub mod limits;
mod listing;
mod mended;
mod name;
mod open;
mod program;
mod said;
mod sampling;
mod serve;
mod server;
mod shared;
mod stream;
mod values;
mod web;

pub use confinement::{Confined, Confinement};
pub use connection::Request;
pub use content::Answer;
pub use definition::{Endpoint, Program, ServerDefinition, ToolChoice, WebAddress, standard_environment};
pub use error::{Cause, McpError, codes};
pub use front::Front;
pub use hermes_capabilities::process::SandboxMode;
pub use kept::KeptListings;
pub use listing::{Change, ListedTool, Listing};
pub use name::{is_server_name, login_name, tool_name};
pub use said::Said;
pub use sampling::{Author, Sampled, Sampling};
pub use serve::{Offer, OwnPrompt, OwnResource, OwnTool, PATH, ServeError, serve, serve_web};
pub use server::{Condition, Found, Server, try_once};
