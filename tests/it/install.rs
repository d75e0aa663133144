//! Installing, updating, removing, checking and writing plugins.

mod authors;
mod consent;
mod doctor;
mod examples;
mod fixtures;
mod lifecycle;
mod publishing;
