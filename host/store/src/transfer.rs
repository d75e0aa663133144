//! Export and import of sessions: a file with one JSON record per line. `docs/use/sessions.md` describes the format.

mod export;
mod import;
mod numbers;
mod record;
mod seal;
