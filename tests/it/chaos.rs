//! Random kills, random changes and migrations that are cut off, with a fixed seed. The number of steps is set by the environment.

mod backends;
mod migration;
pub(crate) mod random_kills;
mod unrest;
