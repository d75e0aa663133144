//! Asks for approval on the terminal: shows exactly what a plugin wants to do, and reads one key.
//!
//! Keys typed before the question do not answer it, and every answer but a clear yes is a no.

#[cfg(unix)]
mod keys;
pub(crate) mod listing;
mod wording;

use std::io::{self, IsTerminal, Write};

use hermes_agent::approval::{Decision, Question};

use crate::console::{Console, Tone};
use crate::signals::StopSwitch;

/// Asks the user at the terminal.
pub(crate) struct AtTerminal {
    console: Console,
    stop: StopSwitch,
}

/// None if a question cannot be shown or answered.
pub(crate) fn at_terminal(console: Console, stop: &StopSwitch) -> Option<AtTerminal> {
    let can_show = console.screen || io::stderr().is_terminal();
    let can_answer = cfg!(unix) && io::stdin().is_terminal();
    (can_show && can_answer).then(|| AtTerminal { console, stop: stop.clone() })
}

impl AtTerminal {
    fn write(&self, text: &str) {
        // If the terminal cannot be written, it cannot be read either, and the answer is a no.
        let _ = match self.console.screen {
            true => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
            false => io::stderr().write_all(text.as_bytes()),
        };
    }

    /// Shows the question and waits for a key. Dropping the future withdraws the question.
    #[cfg(unix)]
    pub(crate) async fn ask(&self, question: &Question) -> Decision {
        use keys::{Answer, Keys};

        let Ok(mut keys) = Keys::open() else { return Decision::Deny };
        let mut lines = wording::lines(question).into_iter();
        let title = lines.next().unwrap_or_default();
        // The terminal may have echoed typed keys, so the question starts on a new line.
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
        withdrawn.disarm();
        self.write(&format!("{}\n", self.console.paint(Tone::Faint, wording::decided(decision))));
        decision
    }

    #[cfg(not(unix))]
    pub(crate) async fn ask(&self, _: &Question) -> Decision {
        Decision::Deny
    }
}

/// Ends the line of a question that was withdrawn.
#[cfg(unix)]
struct Withdrawn<'a>(Option<&'a AtTerminal>);

#[cfg(unix)]
impl Withdrawn<'_> {
    fn disarm(mut self) {
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
