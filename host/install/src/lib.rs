//! Fetches plugins, checks them, and puts them in their place in one step.
#![forbid(unsafe_code)]
pub mod archive;
mod error;
pub mod source;
pub use error::InstallError;
