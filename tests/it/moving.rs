//! `hermes import peer`: moving in from Hermes Agent.

mod agents;
mod everything;
mod hostile;
mod rights;
mod sessions;
