//! Random kills and random changes, with a fixed seed. The number of steps is set by the environment.

pub(crate) mod random_kills;
mod unrest;
