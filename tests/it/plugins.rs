//! Plugins in a session: permissions, deadlines, failures, reloading, compiled code.

#[cfg(target_os = "linux")]
mod approval;
mod backends;
#[cfg(target_os = "linux")]
mod background;
mod chronicle;
#[cfg(target_os = "linux")]
mod clarify;
mod code_cache;
mod deadlines;
mod deferred;
mod development;
mod encodings;
mod files;
mod honcho;
mod hooks;
mod http;
#[cfg(target_os = "linux")]
mod mcp;
mod mcp_login;
mod mcp_serve;
mod mem0;
mod memory;
mod memory_services;
mod models;
#[cfg(target_os = "linux")]
mod modes;
mod native;
mod outbox;
mod reload;
#[cfg(target_os = "linux")]
#[cfg(target_os = "linux")]
mod shelf;
mod shell_hooks;
mod skills;
#[cfg(target_os = "linux")]
mod terminal;
mod todo;
mod wasi;
mod web;
mod zoo;
