//! Context engines in real sessions: when a view is replaced, and what must survive it.

mod auxiliary;
mod breaker;
mod hygiene;
mod lab;
mod lab_recall;
mod long_conversation;
mod switching;
