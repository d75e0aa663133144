//! Installing, updating, removing, checking and writing plugins.

mod authors;
mod consent;
mod doctor;
mod fixtures;
mod kept;
mod languages;
mod lifecycle;
mod mending;
mod mistakes;
pub(crate) mod own_skills;
mod ports;
mod publishing;
mod screens;
mod skills;
mod toolchains;
mod versions;
