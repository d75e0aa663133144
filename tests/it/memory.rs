//! The built-in memory, the commands of `hermes memory`, and what the host does about memory providers that fail.

mod breaker;
mod commands;
mod notes;
mod setup;
