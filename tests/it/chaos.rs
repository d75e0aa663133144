//! Random kills, random changes and migrations that are cut off, with a fixed seed. The number of steps is set by the environment.

mod backends;
mod installs;
mod migration;
pub(crate) mod random_kills;
mod unrest;
