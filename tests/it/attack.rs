//! Attacks on the running program: what a hostile plugin, archive, import, model or file may try, and what must come of it.
//!
//! `cargo xtask attack` runs every test below a module named `attack`, in this crate and in others, with
//! `HERMES_ATTACK_ALL` set; a usual run of the tests leaves out inputs for which [`all`] is asked.
//! `docs/security.md` lists the boundaries.

<<<<<<< HEAD
mod archive;
mod consent;
mod file;
mod signature;
=======
#[cfg(target_os = "linux")]
mod exhaustion;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod sql;
>>>>>>> cc31b20 (Attack the SQL, documents and processor time of plugins; fuzz statements)

/// True if this run has time for every input.
#[expect(dead_code, reason = "the first inputs all fit into a usual run")]
pub(crate) fn all() -> bool {
    std::env::var_os("HERMES_ATTACK_ALL").is_some()
}
