//! Code that memory providers with a server share: errors of JSON APIs, sorted by whether a retry can help, texts that leave the
//! machine, and times.

mod answers;
mod texts;
mod times;

pub use answers::{checked, detail, for_turn};
pub use texts::{cut, pieces, without_fence};
pub use times::{from_http_date, to_rfc3339};
