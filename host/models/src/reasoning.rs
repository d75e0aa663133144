//! What reasoning means to each provider: which of it goes back with the next request.

mod echo;

pub use echo::Echo;
pub(crate) use echo::{CONTENT_KEY, DETAILS_KEY, TEXT_KEY};
