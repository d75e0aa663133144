//! Turns, crashes, resuming, branching, and the sessions of older versions.

mod branches;
mod crash;
mod damaged;
mod released;
mod turns;
