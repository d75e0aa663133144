//! Asks for approval on the terminal: shows exactly what a plugin wants to do, and reads one key.
//!
//! Keys typed before the question do not answer it, every answer but a clear yes is a no, and a yes counts only after the user
//! was shown everything.

#[cfg(unix)]
mod keys;
pub(crate) mod listing;
#[cfg(unix)]
mod pager;
mod wording;

use std::io::{self, IsTerminal, Write};

use hermes_agent::approval::{Decision, Question};

#[cfg(unix)]
use self::keys::{Key, Keys};
#[cfg(unix)]
use self::pager::Size;
#[cfg(unix)]
use self::wording::Extent;
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

    /// Shows the question and waits for a key. A yes counts only after the user was shown all of it. Dropping the future
    /// withdraws the question.
    #[cfg(unix)]
    pub(crate) async fn ask(&self, question: &Question) -> Decision {
        let Ok(mut keys) = Keys::open() else { return Decision::Deny };
        let size = Size::of_terminal(self.console.screen);
        let brief = wording::lines(question, Extent::Brief);
        let whole = wording::lines(question, Extent::Whole);
        let is_hidden = brief != whole || !size.holds(&brief);
        let mut lines = brief.into_iter();
        let title = lines.next().unwrap_or_default();
        // The terminal may have echoed typed keys, so the question starts on a new line.
        self.write(&format!("\n{}\n", self.console.paint(Tone::Warning, &title)));
        lines.for_each(|line| self.write(&format!("{line}\n")));
        let token = self.stop.token();
        let withdrawn = Withdrawn(Some(self));
        let decision = tokio::select! {
            biased;
            () = token.cancelled() => Decision::Deny,
            decision = self.decision(&mut keys, is_hidden, size.pages(&whole)) => decision.unwrap_or_else(|| {
                self.stop.trigger();
                Decision::Deny
            }),
        };
        withdrawn.disarm();
        self.write(&format!("{}\n", self.console.paint(Tone::Faint, wording::decided(decision))));
        decision
    }

    /// The answer; `None` for Ctrl-C. While a part is hidden, only a no counts.
    #[cfg(unix)]
    async fn decision(&self, keys: &mut Keys, mut is_hidden: bool, pages: Vec<String>) -> Option<Decision> {
        if keys.settle().await {
            return None;
        }
        loop {
            self.write(if is_hidden { wording::KEYS_TO_VIEW } else { wording::KEYS });
            let decision = loop {
                match keys.next().await {
                    Key::Stop => return None,
                    Key::Letter(b'd') | Key::Enter | Key::Leave => return Some(Decision::Deny),
                    Key::Letter(b'v') if is_hidden => break None,
                    Key::Letter(b'o') => break Some(Decision::Once),
                    Key::Letter(b's') => break Some(Decision::Session),
                    Key::Letter(b'a') => break Some(Decision::Always),
                    Key::Letter(_) => {}
                }
            };
            match decision {
                Some(_) if is_hidden => self.write(&format!("{}\n", wording::VIEW_FIRST)),
                Some(decision) => return Some(decision),
                None => {
                    match self.show(keys, &pages).await {
                        Viewed::All => is_hidden = false,
                        Viewed::Part => return Some(Decision::Deny),
                        Viewed::Stopped => return None,
                    }
                    // A key that turned a page must not answer.
                    if keys.settle().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Shows the pages of a text one by one.
    #[cfg(unix)]
    async fn show(&self, keys: &mut Keys, pages: &[String]) -> Viewed {
        for (number, page) in (1..).zip(pages) {
            self.write(&format!("\n{page}\n"));
            if number == pages.len() {
                break;
            }
            self.write(&format!("page {number} of {}: [space] next page  [d]eny? ", pages.len()));
            loop {
                match keys.next().await {
                    Key::Stop => return Viewed::Stopped,
                    Key::Letter(b'd' | b'q') | Key::Leave => return Viewed::Part,
                    Key::Letter(b' ' | b'v') | Key::Enter => break,
                    Key::Letter(_) => {}
                }
            }
        }
        Viewed::All
    }

    /// Asks a question whose answers are letters. `v` shows the text, page by page. `None` for Ctrl-C.
    #[cfg(unix)]
    pub(crate) async fn choose(
        &self,
        lines: &[String],
        prompt: &str,
        answers: &[u8],
        text: &[String],
    ) -> Option<Choice> {
        let Ok(mut keys) = Keys::open() else { return Some(Choice::Left) };
        self.write("\n");
        lines.iter().for_each(|line| self.write(&format!("{line}\n")));
        if keys.settle().await {
            return None;
        }
        let pages = Size::of_terminal(self.console.screen).pages(text);
        let chosen = 'asked: loop {
            self.write(prompt);
            loop {
                match keys.next().await {
                    Key::Stop => break 'asked None,
                    Key::Enter | Key::Leave => break 'asked Some(Choice::Left),
                    Key::Letter(b'v') => break,
                    Key::Letter(letter) if answers.contains(&letter) => break 'asked Some(Choice::Letter(letter)),
                    Key::Letter(_) => {}
                }
            }
            if self.show(&mut keys, &pages).await == Viewed::Stopped || keys.settle().await {
                break 'asked None;
            }
        };
        self.write("\n");
        chosen
    }

    #[cfg(not(unix))]
    pub(crate) async fn ask(&self, _: &Question) -> Decision {
        Decision::Deny
    }

    #[cfg(not(unix))]
    pub(crate) async fn choose(&self, _: &[String], _: &str, _: &[u8], _: &[String]) -> Option<Choice> {
        Some(Choice::Left)
    }
}

/// The answer to a question with letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Letter(u8),
    /// Enter, Escape or Ctrl-D.
    Left,
}

/// How much of a text the user was shown.
#[cfg(unix)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Viewed {
    All,
    Part,
    /// Ctrl-C.
    Stopped,
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
