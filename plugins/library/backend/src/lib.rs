//! What memory providers with a server share: errors of JSON APIs sorted by what a retry can do about them, texts that leave the
//! machine, and times.

mod answers;
mod texts;
mod times;

pub use answers::{checked, detail, for_turn};
pub use texts::{cut, pieces, without_fence};
pub use times::{from_http_date, to_rfc3339};
