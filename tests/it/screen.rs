//! Output for the user: error messages, tables, and the view of the context.

mod commands;
mod config;
mod context;
#[cfg(unix)]
mod drawn;
#[cfg(unix)]
mod input;
#[cfg(unix)]
mod interrupt;
#[cfg(unix)]
mod lists;
#[cfg(unix)]
mod models;
#[cfg(unix)]
mod outputs;
#[cfg(unix)]
mod questions;
mod settings;
mod tables;
mod usage;
#[cfg(unix)]
mod while_busy;
