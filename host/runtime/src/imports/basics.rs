//! The imports `info`, `log`, `task`, `clock` and `random`, which need no permission.

use hermes_bindings::imported;
use imported::log::Level as Wit;

use crate::context::{Context, Logged};
use crate::limits::Limit;
use crate::services::Level;

/// The most bytes of a line that shows progress.
pub(super) const PROGRESS: usize = 200;
/// The most bytes of a log line.
const LINE: usize = 16 << 10;
/// The most bytes that one call of `random.bytes` returns.
const RANDOM: usize = 64 << 10;

impl imported::info::Host for Context {
    async fn version(&mut self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    async fn has(&mut self, feature: String) -> bool {
        let (interface, function) = feature.split_once('#').unwrap_or((&feature, ""));
        super::serves(interface, function) && self.services.grant(interface)
    }
}

impl imported::log::Host for Context {
    async fn write(&mut self, level: Wit, text: String) {
        let level = match level {
            Wit::Trace => Level::Trace,
            Wit::Debug => Level::Debug,
            Wit::Info => Level::Info,
            Wit::Warn => Level::Warn,
            Wit::Error => Level::Error,
        };
        self.log(level, &text);
    }
}

impl imported::task::Host for Context {
    async fn cancelled(&mut self) -> bool {
        self.call.is_cancelled()
    }

    async fn time_left(&mut self) -> u32 {
        u32::try_from(self.call.time_left().as_millis()).unwrap_or(u32::MAX)
    }

    async fn progress(&mut self, text: String) {
        let line = beginning(text.lines().next().unwrap_or_default(), PROGRESS);
        if self.call.log(line.len()) == Logged::Kept {
            self.services.reporter.progress(line);
        }
    }
}

impl imported::clock::Host for Context {
    async fn now(&mut self) -> u64 {
        self.services.clock.now()
    }

    async fn utc_offset(&mut self) -> i32 {
        self.services.clock.utc_offset()
    }
}

impl imported::random::Host for Context {
    async fn bytes(&mut self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; (count as usize).min(RANDOM)];
        self.services.random.fill(&mut bytes);
        bytes
    }
}

impl Context {
    /// Adds a line to the plugin's log, within the limits of the call.
    pub(crate) fn log(&mut self, level: Level, text: &str) {
        let line = beginning(text, LINE);
        match self.call.log(line.len()) {
            Logged::Kept => self.services.reporter.log(level, line),
            Logged::LimitReached => self.services.reporter.log(Level::Warn, &self.log_limit_notice()),
            Logged::Dropped => {}
        }
    }

    fn log_limit_notice(&self) -> String {
        let limits = self.meter.limits();
        let shown = |limit: Limit| format!("`{}` ({})", limit.name(), limit.show(limits.get(limit)));
        let (lines, bytes) = (shown(Limit::LogLines), shown(Limit::LogBytes));
        format!("further lines of this call are dropped: it logs more than its limits {lines} and {bytes} allow")
    }
}

/// The beginning of a text, at most this many bytes.
pub(super) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
