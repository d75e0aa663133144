//! A client of servers that speak the Model Context Protocol (MCP), over the official SDK `rmcp`.
//!
//! [`Server`] is one server in one session: it connects in the background, lists tools, calls them, and connects again after a
//! failure. [`Front`] is what a server may want of its session. This crate knows nothing of plugins, prompts or approvals: the
//! agent makes tools of what servers offer, and decides which of them run.
//!
//! Everything that a server sends is untrusted and bounded: see [`limits`].

#![forbid(unsafe_code)]

mod connection;
mod content;
mod definition;
mod error;
mod flow;
mod form;
mod front;
mod handler;
mod kept;
pub mod limits;
mod listing;
mod name;
mod program;
mod server;
mod web;

pub use connection::Request;
pub use content::Answer;
pub use definition::{Endpoint, Program, ServerDefinition, ToolChoice, WebAddress, standard_environment};
pub use error::{Cause, McpError, codes};
pub use front::Front;
pub use kept::KeptListings;
pub use listing::{Change, ListedTool, Listing};
pub use name::{is_server_name, tool_name};
pub use server::{Condition, Found, Server, try_once};
