//! Attacks on the running program: what a hostile plugin, archive, import, model or file may try, and what must come of it.
//!
//! `cargo xtask attack` runs every test below a module named `attack`, in this crate and in others, with
//! `HERMES_ATTACK_ALL` set; a usual run of the tests leaves out inputs for which [`all`] is asked.
//! `docs/use/security.md` lists the boundaries.

mod approval;
mod archive;
mod budget;
mod catalog;
mod chat;
mod consent;
#[cfg(target_os = "linux")]
mod exhaustion;
mod file;
mod hooks;
mod import;
mod injection;
mod lock;
#[cfg(target_os = "linux")]
mod machine;
mod model;
mod origin;
#[cfg(target_os = "linux")]
mod processes;
mod program;
#[cfg(target_os = "linux")]
mod reload;
#[cfg(target_os = "linux")]
mod sandbox;
mod signature;
mod skills;
#[cfg(target_os = "linux")]
mod sql;
mod terminal;
#[cfg(target_os = "linux")]
mod ways_around;

/// True if this run has time for every input.
pub(crate) fn all() -> bool {
    std::env::var_os("HERMES_ATTACK_ALL").is_some()
}
