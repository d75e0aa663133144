//! The user's own commands behind `!`, and the files behind `@`.

use std::path::PathBuf;

use hermes_protocol::Part;

use super::Chat;
use crate::console::Tone;
use crate::{attached, shell};

impl Chat {
    /// The folder of the session.
    pub(super) async fn folder(&self) -> PathBuf {
        let of_new = || self.request.workspace.clone();
        let Some(session) = self.front.session().session() else { return of_new() };
        let Ok(store) = self.desk.store(None) else { return of_new() };
        store.session(&session).await.map_or_else(|_| of_new(), |session| session.workspace)
    }

    /// Runs a command of the user's own.
    pub(super) async fn run_own(&mut self, command: &str) {
        /// The most commands that one message tells of.
        const MOST: usize = 10;
        if command.is_empty() {
            return self.console.warning("`!` runs a command in the session's folder, such as `!git status`");
        }
        let folder = self.folder().await;
        let _during = self.ctrl_c.stops_the_turn();
        if let Some(live) = &self.live {
            live.ui().set_busy(true);
        }
        let stop = self.ctrl_c.switch().token();
        let ran = shell::run(command, &folder, &mut self.screen, self.live.as_ref(), &stop).await;
        if let Some(live) = &self.live {
            live.ui().set_busy(false);
        }
        match ran {
            Ok(ran) => {
                self.ran.push(ran);
                let beyond = self.ran.len().saturating_sub(MOST);
                self.ran.drain(..beyond);
            }
            Err(error) => self.console.warning(&format!("the command cannot be started: {error}")),
        }
    }

    /// What goes with a message: the user's commands since the last one, and the files that the message names.
    pub(super) async fn attached(&mut self, text: &str) -> Vec<Part> {
        let mut parts: Vec<Part> = std::mem::take(&mut self.ran).into_iter().map(Part::text).collect();
        if !self.at_terminal || !text.contains('@') {
            return parts;
        }
        let (folder, home) = (self.folder().await, self.desk.setup().home.path().to_owned());
        let text = text.to_owned();
        let read = tokio::task::spawn_blocking(move || attached::read(&text, &folder, &home)).await;
        let attached = read.unwrap_or_default();
        for line in attached.lines {
            self.screen.line(Tone::Faint, &format!("· {line}"));
        }
        parts.extend(attached.parts);
        parts
    }
}
