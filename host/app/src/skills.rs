//! Skills of the user: what the scan finds in them, and which ones the configured sources offer.

mod review;
mod sources;

pub use review::{Review, Suspicion, review};
pub use sources::{Hit, SearchReport, search};
