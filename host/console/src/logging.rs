//! Logging to `$HERMES_HOME/logs/hermes.log`, and with `-v` to standard error.

use std::io::{self, Write};
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use hermes_app::Home;

use crate::text;

/// Starts logging. A file is written only for commands that work on a session.
///
/// # Errors
///
/// When the file cannot be opened. Logging to standard error works all the same.
pub fn start(verbose: u8, home: Option<&Home>) -> io::Result<()> {
    let level = match verbose {
        0 => None,
        1 => Some(LevelFilter::INFO),
        _ => Some(LevelFilter::DEBUG),
    };
    // Of other crates only warnings are logged: their details contain headers and bodies.
    let filter = |own: LevelFilter| Targets::new().with_default(LevelFilter::WARN).with_target("hermes", own);
    let (file, result) = match home.map(Home::open_log) {
        Some(Ok(file)) => (Some(file), Ok(())),
        Some(Err(error)) => (None, Err(error)),
        None => (None, Ok(())),
    };
    let file = file.map(|file| {
        fmt::layer()
            .with_ansi(false)
            .with_writer(Mutex::new(Cleaned(file)))
            .with_filter(filter(level.unwrap_or(LevelFilter::WARN)))
    });
    let stderr = level.map(|level| {
        fmt::layer()
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .with_writer(|| Cleaned(io::stderr()))
            .with_filter(filter(level))
    });
    // A second start, as in tests, changes nothing.
    let _ = tracing_subscriber::registry().with(file).with(stderr).try_init();
    result
}

/// Cleans log lines: an error may quote a plugin or a server, and the log is read on a terminal. Each event arrives in one
/// piece.
struct Cleaned<W>(W);

impl<W: Write> Write for Cleaned<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(text::lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
