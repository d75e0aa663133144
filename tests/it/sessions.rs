//! Turns, crashes, resuming and branching.

mod branches;
mod crash;
mod damaged;
mod turns;
