//! The question at the terminal: what a plugin wants to do, shown exactly, and one key for an answer.
//!
//! Nothing that was typed before the question counts as an answer to it, and anything but a clear yes is a no.

#[cfg(unix)]
mod keys;
pub(crate) mod listing;
mod wording;

use std::io::{self, IsTerminal, Write};

use hermes_agent::approval::{Decision, Question};

use crate::console::{Console, Tone};
use crate::signals::StopSwitch;

/// Asks the person at the terminal.
pub(crate) struct AtTerminal {
    console: Console,
    stop: StopSwitch,
}

/// None where nobody sees a question or can answer it.
pub(crate) fn at_terminal(console: Console, stop: &StopSwitch) -> Option<AtTerminal> {
    let seen = console.screen || io::stderr().is_terminal();
    let answered = cfg!(unix) && io::stdin().is_terminal();
    (seen && answered).then(|| AtTerminal { console, stop: stop.clone() })
}

impl AtTerminal {
    fn write(&self, text: &str) {
        // A terminal that cannot be written to cannot be read from either, and that is a no.
        let _ = match self.console.screen {
            true => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
            false => io::stderr().write_all(text.as_bytes()),
        };
    }

    /// Shows the question and waits for a key; anything but a clear yes is a no. Dropping the future withdraws the
    /// question from the screen.
    #[cfg(unix)]
    pub(crate) async fn ask(&self, question: &Question) -> Decision {
        use keys::{Answer, Keys};

        let Ok(mut keys) = Keys::open() else { return Decision::Deny };
        let mut lines = wording::lines(question).into_iter();
        let title = lines.next().unwrap_or_default();
        // What was typed meanwhile stands on the screen, and the question must not stand behind it.
        self.write(&format!("\n{}\n", self.console.paint(Tone::Warning, &title)));
        lines.for_each(|line| self.write(&format!("{line}\n")));
        let token = self.stop.token();
        let withdrawn = Withdrawn(Some(self));
        let stopped = || {
            self.stop.trigger();
            Decision::Deny
        };
        let decision = tokio::select! {
            biased;
            () = token.cancelled() => Decision::Deny,
            decision = async {
                if keys.settle().await == Answer::Stop {
                    return stopped();
                }
                self.write(wording::KEYS);
                match keys.answer().await {
                    Answer::Stop => stopped(),
                    Answer::Given(decision) => decision,
                }
            } => decision,
        };
        withdrawn.no_longer();
        self.write(&format!("{}\n", self.console.paint(Tone::Faint, wording::said(decision))));
        decision
    }

    #[cfg(not(unix))]
    pub(crate) async fn ask(&self, _: &Question) -> Decision {
        Decision::Deny
    }
}

/// Ends the line of a question that nobody waits for any more.
#[cfg(unix)]
struct Withdrawn<'a>(Option<&'a AtTerminal>);

#[cfg(unix)]
impl Withdrawn<'_> {
    fn no_longer(mut self) {
        self.0 = None;
    }
}

#[cfg(unix)]
impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        if let Some(terminal) = self.0 {
            terminal.write("not answered\n");
        }
    }
}
