//! The built-in memory and the commands of `hermes memory`.

mod commands;
mod notes;
