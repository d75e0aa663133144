//! Sessions on their way to another store: a file of records, one JSON object a line. `docs/sessions.md` has the format.

mod export;
mod import;
mod numbers;
mod record;

pub use export::{Exported, Layout};
pub use import::Imported;
