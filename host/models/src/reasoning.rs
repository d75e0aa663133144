//! What reasoning means to each provider: how much of it is requested, and which of it goes back with the next request.

pub(crate) mod dial;
mod echo;
pub(crate) mod switch;
mod thinking;

pub use echo::Echo;
pub(crate) use echo::{CALLS_KEY, CONTENT_KEY, DETAILS_KEY, TEXT_KEY};
pub use hermes_conversation::Effort;
pub use thinking::Thinking;
