//! The commands of a chat that show what there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_app::servers::Condition;
use hermes_app::{Consent, Offer};

use super::Chat;
use crate::console::Tone;
use crate::live::Live;
use crate::plugins::Inventory;
use crate::plugins::choice::{self, Choosable};
use crate::slash::GROUPS;
use crate::table::{Align, Table};
use crate::{context, memory, text};

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
        self.screen.line(Tone::Faint, "ctrl-r searches what you sent before");
        self.screen.line(Tone::Faint, "!COMMAND runs a command of yours; @PATH sends a file with the message");
    }

    /// What the model can work with. Without it, the user sees why.
    async fn offer(&mut self) -> Option<Offer> {
        match self.front.session().offer().await {
            Ok(offer) => Some(offer),
            Err(problem) => {
                self.fail(&problem.into());
                None
            }
        }
    }

    pub(super) async fn show_tools(&mut self) {
        let Some(offer) = self.offer().await else { return };
        let mut table = Table::new(&[Align::Left, Align::Left, Align::Left]);
        table.head(["tool", "of", "a call"]);
        for tool in offer.tools.iter().filter(|tool| !tool.is_on_shelf) {
            let (tone, consent) = match &tool.consent {
                Consent::Reads => (Tone::Plain, "reads".to_owned()),
                Consent::Changes => (Tone::Plain, "changes".to_owned()),
                Consent::Delegates => (Tone::Plain, "starts subagents".to_owned()),
                Consent::Asks => (Tone::Warning, "asks you".to_owned()),
                Consent::Refused { why } => (Tone::Bad, format!("is refused: {}", text::line(why))),
            };
            table.row([(Tone::Plain, text::line(&tool.name)), (Tone::Faint, text::line(&tool.owner)), (tone, consent)]);
        }
        let shown = table.text(self.console);
        self.screen.line(Tone::Plain, shown.trim_end());
        self.show_shelf(&offer);
        let mode = self.mode_now().await;
        self.screen.line(Tone::Faint, &format!("mode {mode}: {}", mode.meaning()));
    }

    /// The tools that have no room in the prompt, by their servers and plugins.
    fn show_shelf(&mut self, offer: &Offer) {
        let mut owners: BTreeMap<&str, (usize, u32)> = BTreeMap::new();
        for tool in offer.tools.iter().filter(|tool| tool.is_on_shelf) {
            let (tools, tokens) = owners.entry(&tool.owner).or_default();
            (*tools, *tokens) = (*tools + 1, *tokens + tool.tokens);
        }
        if owners.is_empty() {
            return;
        }
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
        table.head(["on the shelf", "tools", "tokens"]);
        for (owner, (tools, tokens)) in &owners {
            let cells = [text::line(owner), tools.to_string(), text::grouped((*tokens).into())];
            table.row(cells.map(|cell| (Tone::Plain, cell)));
        }
        let shown = table.text(self.console);
        self.screen.line(Tone::Plain, shown.trim_end());
        let prompt: u32 = offer.tools.iter().filter(|tool| !tool.is_on_shelf).map(|tool| tool.tokens).sum();
        let words = format!(
            "each request has about {} tokens of tools; the model finds those on the shelf with `tool_search`; \
             `tool_search.pinned` keeps some in the prompt of new sessions",
            text::grouped(prompt.into())
        );
        self.screen.line(Tone::Faint, &words);
    }

    pub(super) async fn show_skills(&mut self) {
        let Some(offer) = self.offer().await else { return };
        let mut table = Table::new(&[Align::Left, Align::Left, Align::Left]);
        for skill in &offer.skills {
            table.row([
                (Tone::Good, text::line(&skill.name)),
                (Tone::Faint, text::line(&skill.plugin)),
                (Tone::Plain, text::line(&skill.description)),
            ]);
        }
        let shown = table.text(self.console);
        if !offer.skills.is_empty() {
            self.screen.line(Tone::Plain, shown.trim_end());
        }
        for skill in &offer.inapplicable {
            let line = format!("{} does not apply here: {}", skill.name, skill.why);
            self.screen.line(Tone::Faint, &text::line(&line));
        }
        offer.failed.iter().for_each(|why| self.console.warning(why));
        if offer.skills.is_empty() && offer.inapplicable.is_empty() && offer.failed.is_empty() {
            self.screen.line(Tone::Faint, "there is no skill; `hermes doctor` says if one is broken");
        }
    }

    pub(super) async fn show_servers(&mut self) {
        let Some(offer) = self.offer().await else { return };
        let desk = Arc::clone(&self.desk);
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Left]);
        table.head(["server", "tools", "tokens", "state"]);
        let configured = &desk.setup().config.settings().mcp_servers;
        for (name, section) in configured.iter().filter_map(|(name, section)| Some((name, section.as_ref()?))) {
            let found = offer.servers.iter().find(|server| server.name == *name);
            let state = match found.map(|server| &server.condition) {
                Some(Condition::Ready(_)) => (Tone::Good, "connected".to_owned()),
                Some(Condition::Idle(_)) => (Tone::Plain, "starts at its first call".to_owned()),
                Some(Condition::Connecting) => (Tone::Warning, "connecting".to_owned()),
                Some(Condition::Closed) => (Tone::Faint, "ended".to_owned()),
                Some(Condition::Failed(error)) => (Tone::Bad, text::line(&format!("failed: {error}"))),
                None if section.enabled => (Tone::Bad, "left out: a plugin has the same name".to_owned()),
                None => (Tone::Faint, "off".to_owned()),
            };
            let tools = found.and_then(|server| server.tools).map_or_else(|| "-".to_owned(), |tools| tools.to_string());
            let own = || offer.tools.iter().filter(|tool| tool.owner == *name);
            let prompt: u32 = own().filter(|tool| !tool.is_on_shelf).map(|tool| tool.tokens).sum();
            let tokens = match own().filter(|tool| tool.is_on_shelf).count() {
                0 if found.is_none_or(|server| server.tools.is_none()) => "-".to_owned(),
                0 => text::grouped(prompt.into()),
                shelved => format!("{}, and {shelved} on the shelf", text::grouped(prompt.into())),
            };
            table.row([(Tone::Plain, text::line(name)), (Tone::Plain, tools), (Tone::Plain, tokens), state]);
        }
        if configured.is_empty() {
            self.screen
                .line(Tone::Faint, "there is no MCP server; `hermes mcp add NAME -- PROGRAM ARGUMENTS` adds one");
            return;
        }
        let shown = table.text(self.console);
        self.screen.line(Tone::Plain, shown.trim_end());
    }

    /// Shows what the summaries say that stand for earlier messages.
    pub(super) async fn show_summaries(&mut self, number: Option<usize>) {
        match self.front.session().context().await {
            Ok(Some(found)) => match context::summaries(&found, number, self.console) {
                Ok(shown) => self.screen.line(Tone::Plain, shown.trim_end()),
                Err(failure) => self.fail(&failure),
            },
            Ok(None) => self.screen.line(Tone::Faint, "the conversation is empty, so there is no summary"),
            Err(problem) => self.fail(&problem.into()),
        }
    }

    /// Lets the user look at plugins and switch them for new sessions. A terminal that is not drawn has a table.
    pub(super) async fn show_plugins(&mut self) {
        let Some(live) = self.live.clone() else { return self.list_plugins().await };
        let mut last: Option<String> = None;
        loop {
            self.screen.does("reading the plugins");
            let all = self.blocking(choice::all).await;
            self.screen.end_turn();
            let Some(mut all) = all else { return };
            let picked = live.pick(choice::list(&all, last.as_deref())).await;
            let Some(at) = picked.filter(|at| *at < all.len()) else { return };
            let plugin = all.swap_remove(at);
            if !self.offer_switch(&live, &plugin).await {
                return;
            }
            last = Some(plugin.name);
        }
    }

    /// Shows what a plugin is, and switches it if the user wants that. Returns whether the user wants the list again.
    async fn offer_switch(&mut self, live: &Live, plugin: &Choosable) -> bool {
        let Some(chosen) = live.pick(plugin.actions()).await else { return false };
        let Some(switch) = plugin.switch.filter(|_| chosen == 0) else { return true };
        let (name, console) = (plugin.name.clone(), self.console);
        let Some(lines) = self.blocking(move || choice::carry_out(&name, switch, console)).await else {
            return true;
        };
        lines.iter().for_each(|line| self.screen.line(Tone::Plain, &text::line(line)));
        let when = match lines.is_empty() {
            true => "nothing changed: config.yaml already has this selection",
            false => "this applies to new sessions from the next start of `hermes`; this chat keeps its plugins",
        };
        self.screen.line(Tone::Faint, when);
        true
    }

    async fn list_plugins(&mut self) {
        let console = self.console;
        let shown = self.blocking(move || Ok(Inventory::of(crate::launch::read()?)?.brief(console))).await;
        let Some(shown) = shown else { return };
        self.screen.line(Tone::Plain, shown.trim_end());
        self.screen.line(
            Tone::Faint,
            "`hermes plugins` switches them for new sessions; `hermes plugins info NAME` says what one may do",
        );
    }

    pub(super) async fn show_memory(&mut self) {
        let console = self.console;
        let shown = memory::status::text(self.desk.setup(), console).await;
        if let Some(shown) = self.done(shown) {
            self.screen.line(Tone::Plain, shown.trim_end());
        }
    }
}
