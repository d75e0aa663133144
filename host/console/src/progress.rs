//! Progress on standard error: notices, downloads, and plugins that are being compiled.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_app::Reporter;
use hermes_diagnostic::Notice;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Console;
use crate::text;
use crate::wording;

/// Shows progress: on a terminal as one line that is cleared at the end, elsewhere as plain lines.
pub struct Terminal {
    console: Console,
    shown: Mutex<Shown>,
}

/// The line on the screen.
#[derive(Default)]
struct Shown {
    bar: Option<ProgressBar>,
    /// The plugin of the last note about compilation.
    plugin: Option<String>,
}

impl Terminal {
    /// Shows progress on this console.
    pub fn new(console: Console) -> Self {
        Self { console, shown: Mutex::default() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the line from the screen.
    fn clear(&self) {
        if let Some(bar) = self.shown().bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr()).with_style(style)
}

impl Reporter for Terminal {
    fn note(&self, text: &str) {
        self.clear();
        self.console.note(text);
    }

    fn warning(&self, notice: &Notice) {
        self.clear();
        self.console.warning(&wording::notice(notice));
    }

    fn compiling(&self, plugin: &str, elapsed: Duration) -> ControlFlow<()> {
        let plugin = &text::line(plugin);
        let mut shown = self.shown();
        let is_new = shown.plugin.replace(plugin.to_owned()).as_deref() != Some(plugin);
        if self.console.can_overwrite_stderr() {
            let bar = shown.bar.get_or_insert_with(|| bar(None, "{spinner} {msg}"));
            bar.set_message(format!("compiling the plugin `{plugin}` for its first use, {} s", elapsed.as_secs()));
            bar.tick();
        } else if is_new {
            self.console.note(&format!("compiling the plugin `{plugin}` for its first use"));
        }
        ControlFlow::Continue(())
    }

    fn compiled(&self) {
        self.clear();
        self.shown().plugin = None;
    }

    fn bytes(&self, done: u64, all: Option<u64>) {
        if !io::stderr().is_terminal() {
            return;
        }
        let mut shown = self.shown();
        match all {
            Some(all) if all > 0 => {
                let bar =
                    shown.bar.get_or_insert_with(|| bar(Some(all), "{bar:24} {binary_bytes} of {binary_total_bytes}"));
                bar.set_length(all);
                bar.set_position(done);
            }
            _ => {
                let bar = shown.bar.get_or_insert_with(|| bar(None, "{spinner} {msg}"));
                bar.set_message(text::bytes(done));
                bar.tick();
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear();
    }
}
