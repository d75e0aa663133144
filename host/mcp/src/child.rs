//! The program of a server while it runs, and its end.

use std::sync::Arc;
use std::time::Duration;

use hermes_capabilities::process::{End, OwnProgram};
use tokio::task::JoinHandle;

use crate::front::Front;
use crate::said::Said;

/// A program that has closed its output has this long to end.
const MOMENT: Duration = Duration::from_millis(500);

/// A server's program.
pub(crate) struct Child {
    pub(crate) program: OwnProgram,
    pub(crate) said: Said,
    /// Reads its standard error until it is closed.
    pub(crate) reading: Option<JoinHandle<()>>,
    pub(crate) server: String,
    pub(crate) front: Arc<dyn Front>,
}

impl Child {
    /// How the program ended after it has closed its output, with the reason that its standard error gives.
    pub(crate) async fn last_words(&mut self) -> String {
        let end = match tokio::time::timeout(MOMENT, self.program.ended()).await {
            Ok(Ok(End::Exited(code))) => format!("it ended with exit code {code}"),
            Ok(Ok(End::Killed(signal))) => format!("signal {signal} ended it"),
            Ok(_) => "it ended".to_owned(),
            Err(_) => "it closed its output".to_owned(),
        };
        // What it wrote may not be read yet. A program that it started may hold the pipe open.
        if let Some(reading) = self.reading.as_mut()
            && tokio::time::timeout(MOMENT, &mut *reading).await.is_ok()
        {
            self.reading = None;
        }
        match self.said.reason() {
            Some(line) => format!("{end}: {line}"),
            None => end,
        }
    }

    /// Ends the program and everything that it started. The user learns which files that start programs appeared meanwhile.
    pub(crate) async fn end(&mut self) {
        for line in self.program.end().await {
            self.front.notice(format!("while the MCP server `{}` ran: {line}", self.server));
        }
    }
}
