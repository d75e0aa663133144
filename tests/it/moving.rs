//! `hermes import peer`: moving in from Hermes Agent.

mod everything;
mod hostile;
mod sessions;
