//! The system prompt: built once, frozen, and rebuilt on request.

mod ephemeral;
mod frozen;
mod layers;
mod rebuilds;
