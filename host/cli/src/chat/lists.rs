//! The commands of a chat that show what there is.

use super::Chat;
use crate::console::Tone;
use crate::memory;
use crate::plugins::Inventory;
use crate::slash::GROUPS;
use crate::table::{Align, Table};

impl Chat {
    /// Shows all commands.
    pub(super) fn help(&mut self) {
        // One table, so that the columns of all groups are the same.
        let mut table = Table::new(&[Align::Left, Align::Left]);
        for (usage, about) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
            table.row([format!("  {usage}"), (*about).to_owned()].map(|cell| (Tone::Plain, cell)));
        }
        let mut rows = table.lines(self.console).into_iter();
        for (group, commands) in GROUPS {
            self.screen.line(Tone::Warning, group);
            let rows: String = rows.by_ref().take(commands.len()).collect();
            self.screen.line(Tone::Plain, rows.trim_end());
        }
        self.screen.line(Tone::Faint, "a backslash at the end of a line continues the message on the next line");
    }

    pub(super) async fn show_plugins(&mut self) {
        let console = self.console;
        let shown = self.with_launcher(move |_| Ok(Inventory::of(crate::launch::read()?)?.brief(console))).await;
        let Some(shown) = shown else { return };
        self.screen.line(Tone::Plain, shown.trim_end());
        self.screen.line(
            Tone::Faint,
            "`hermes plugins` switches them for new sessions; `hermes plugins info NAME` says what one may do",
        );
    }

    pub(super) async fn show_memory(&mut self) {
        let console = self.console;
        let shown = self.with_launcher(move |launcher| memory::status::text(launcher.setup(), console)).await;
        if let Some(shown) = shown {
            self.screen.line(Tone::Plain, shown.trim_end());
        }
    }
}
