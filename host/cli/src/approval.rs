//! Asks for approval on the terminal: shows exactly what a plugin wants to do, and reads one key.
//!
//! Keys typed before the question do not answer it, every answer but a clear yes is a no, and a yes counts only after the user
//! was shown everything.

pub(crate) mod drawn;
mod foreign;
#[cfg(unix)]
mod keys;
pub(crate) mod listing;
#[cfg(unix)]
mod pager;
mod rows;
mod wording;

use std::io::{self, IsTerminal, Write};

#[cfg(unix)]
use self::foreign::Extent;
#[cfg(unix)]
use self::keys::{Key, Keys};
#[cfg(unix)]
use self::pager::Size;
use hermes_protocol::{Decision, Question};

use crate::console::{Console, Tone};
use crate::signals::StopSwitch;
#[cfg(unix)]
use crate::text;
#[cfg(unix)]
use crate::typed::{Echo, Typed};

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
    pub(crate) async fn ask(&self, question: &Question) -> (Decision, Option<String>) {
        let Ok(mut keys) = Keys::open() else { return (Decision::Deny, None) };
        let brief = wording::lines(question, Extent::Brief);
        let whole = wording::lines(question, Extent::Whole);
        let columns = Size::of_terminal(self.console.screen).columns;
        let (is_cut, has_pattern) = (brief != whole, wording::pattern(question).is_some());
        let (brief, whole) = (rows::wrapped(&brief, columns), rows::wrapped(&whole, columns));
        let asked = Asked {
            is_cut,
            brief: &brief,
            pages: &whole,
            prompt: if has_pattern { wording::KEYS_WITH_PATTERN } else { wording::KEYS },
            prompt_to_view: wording::KEYS_TO_VIEW,
            answers: if has_pattern { b"osap" } else { b"osa" },
            no: b"dn",
            optional_view: false,
        };
        let token = self.stop.token();
        let withdrawn = Withdrawn(Some(self));
        let choice = tokio::select! {
            biased;
            () = token.cancelled() => Some(Choice::Left),
            choice = self.answer(&mut keys, &asked) => choice,
        };
        let decision = match choice {
            Some(Choice::Letter(b'o')) => Decision::Once,
            Some(Choice::Letter(b's')) => Decision::Session,
            Some(Choice::Letter(b'a')) => Decision::Always,
            Some(Choice::Letter(b'p')) => Decision::Pattern,
            Some(_) => Decision::Deny,
            None => {
                self.stop.trigger();
                Decision::Deny
            }
        };
        // The terminal reads a whole line again.
        drop(keys);
        let instead = match choice {
            Some(Choice::Letter(b'n')) => self.instead().await,
            _ => None,
        };
        withdrawn.disarm();
        let decided = if instead.is_some() { wording::INSTEAD_SENT } else { wording::decided(decision) };
        // Behind the prompt if there is room, and never torn at the edge. A typed line has ended its own.
        let is_beside = !matches!(choice, Some(Choice::Letter(b'n')));
        let taken = text::columns(asked.prompt) + text::columns(decided);
        let gap = if is_beside && taken >= columns { "\n" } else { "" };
        self.write(&format!("{gap}{}\n", self.console.paint(Tone::Faint, decided)));
        (decision, instead)
    }

    /// Reads what the model should do instead; `None` if the user says nothing.
    #[cfg(unix)]
    async fn instead(&self) -> Option<String> {
        self.write(&format!("\n{}", wording::INSTEAD));
        let _echo = Echo::begin();
        let (token, mut lines) = (self.stop.token(), Typed::open());
        let line = tokio::select! {
            biased;
            () = token.cancelled() => return None,
            line = lines.next() => line,
        };
        let line = line.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// Asks a question whose answers are letters; `no` is the one that accepts nothing. `v` shows the text, page by page. `None`
    /// for Ctrl-C.
    #[cfg(unix)]
    pub(crate) async fn choose(
        &self,
        lines: &[String],
        prompt: &str,
        (answers, no): (&[u8], u8),
        text: &[String],
    ) -> Option<Choice> {
        let Ok(mut keys) = Keys::open() else { return Some(Choice::Left) };
        let pages: Vec<String> = lines.iter().chain(text).cloned().collect();
        let prompt_to_view = format!("[v]iew all of it to answer  [{}] none of it (enter)? ", char::from(no));
        let asked = Asked {
            is_cut: false,
            brief: lines,
            pages: &pages,
            prompt,
            prompt_to_view: &prompt_to_view,
            answers,
            no: &[no],
            optional_view: !text.is_empty(),
        };
        let chosen = self.answer(&mut keys, &asked).await;
        self.write("\n");
        chosen
    }

    /// Shows a question and reads its answer; `None` for Ctrl-C. While a part is hidden, only a no counts.
    ///
    /// What the user saw depends on the size of the terminal. So the size is read again before a yes counts, and after a change
    /// the question is shown and asked again.
    #[cfg(unix)]
    async fn answer(&self, keys: &mut Keys, asked: &Asked<'_>) -> Option<Choice> {
        'shown: loop {
            let size = Size::of_terminal(self.console.screen);
            let pages = size.pages(asked.pages, wording::page, asked.prompt);
            let mut is_hidden = asked.is_cut || !size.holds(asked.brief, asked.prompt);
            self.write_question(asked.brief);
            if keys.settle().await {
                return None;
            }
            loop {
                self.write(match (is_hidden, &pages) {
                    (false, _) => asked.prompt,
                    (true, Some(_)) => asked.prompt_to_view,
                    (true, None) => wording::KEYS_TOO_SMALL,
                });
                let letter = loop {
                    match keys.next().await {
                        Key::Stop => return None,
                        Key::Enter | Key::Leave => return Some(Choice::Left),
                        Key::Letter(letter) if asked.no.contains(&letter) => return Some(Choice::Letter(letter)),
                        Key::Letter(b'v') if is_hidden || asked.optional_view => break None,
                        Key::Letter(letter) if asked.answers.contains(&letter) => break Some(letter),
                        Key::Letter(_) => {}
                    }
                };
                if Size::of_terminal(self.console.screen) != size {
                    self.write(&format!("\n{}\n", wording::RESIZED));
                    continue 'shown;
                }
                match (letter, &pages) {
                    (Some(letter), _) if !is_hidden => return Some(Choice::Letter(letter)),
                    (Some(_), Some(_)) => self.write(&format!("{}\n", wording::VIEW_FIRST)),
                    (_, None) => self.write("\n"),
                    (None, Some(pages)) => {
                        match self.show(keys, pages).await {
                            Viewed::All => is_hidden = false,
                            Viewed::Part if asked.optional_view => {}
                            Viewed::Part => return Some(Choice::Left),
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
    }

    /// Writes the lines of a question, the first one as its title.
    #[cfg(unix)]
    fn write_question(&self, lines: &[String]) {
        let Some((title, others)) = lines.split_first() else { return };
        // The terminal may have echoed typed keys, so the question starts on a new line.
        self.write(&format!("\n{}\n", self.console.paint(Tone::Warning, title)));
        others.iter().for_each(|line| self.write(&format!("{line}\n")));
    }

    /// Shows the pages of a text one by one.
    #[cfg(unix)]
    async fn show(&self, keys: &mut Keys, pages: &[String]) -> Viewed {
        for (number, page) in (1..).zip(pages) {
            self.write(&format!("\n{page}\n"));
            if number == pages.len() {
                break;
            }
            self.write(&wording::page(number, pages.len()));
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

    #[cfg(not(unix))]
    pub(crate) async fn ask(&self, _: &Question) -> (Decision, Option<String>) {
        (Decision::Deny, None)
    }

    #[cfg(not(unix))]
    pub(crate) async fn choose(&self, _: &[String], _: &str, _: (&[u8], u8), _: &[String]) -> Option<Choice> {
        Some(Choice::Left)
    }
}

/// A question, and how to answer it.
#[cfg(unix)]
struct Asked<'a> {
    /// The first lines that are shown.
    brief: &'a [String],
    /// Whether these lines leave something out.
    is_cut: bool,
    /// Everything, for the pages.
    pages: &'a [String],
    prompt: &'a str,
    prompt_to_view: &'a str,
    /// The letters that count only after everything was shown.
    answers: &'a [u8],
    /// The letters that always count.
    no: &'a [u8],
    /// Whether the pages contain more than the question, which need not be viewed.
    optional_view: bool,
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
