//! `hermes import peer`: moving in from Hermes Agent.

mod hostile;
mod sessions;
