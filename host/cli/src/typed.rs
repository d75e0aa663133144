//! Lines that the user types while a turn runs.
//!
//! The terminal hands over whole lines then, and does not show them: they would be in the middle of the answer. Hermes shows a line
//! when it takes it. A question to the user reads single keys instead, and no line is read meanwhile.

#[cfg(unix)]
pub(crate) use unix::{Echo, Typed};

/// Shift-Tab, as a terminal sends it. It stands for the next mode.
pub(crate) const SHIFT_TAB: &str = "\u{1b}[Z";

#[cfg(unix)]
mod unix {
    use std::collections::VecDeque;
    use std::io;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::termios::{
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr, tcsetattr,
    };

    use super::SHIFT_TAB;
    use crate::input::{Input, is_continued, joined};
    use crate::live::Live;
    use crate::silence::{Silent, set_echo};

    /// How often to look for a line. Reads never block, and no thread outlives the turn.
    const POLL: Duration = Duration::from_millis(20);
    /// The terminal hands over no longer line.
    const LONGEST: usize = 4096;

    /// While it lives, a silent terminal shows what is typed: the user answers a question.
    pub(crate) struct Echo;

    impl Echo {
        pub(crate) fn begin() -> Self {
            set_echo(true);
            Self
        }
    }

    impl Drop for Echo {
        fn drop(&mut self) {
            set_echo(false);
        }
    }

    /// The lines of the terminal until this is dropped. Lines that were not read by then stay with the terminal.
    pub(crate) struct Typed {
        /// Whether there are lines: not if the input is no terminal, or has ended.
        is_open: bool,
        /// The begin of a line that the next one continues.
        begun: String,
        lines: VecDeque<String>,
        /// The terminal, if it is drawn. It reads the keys then.
        live: Option<Live>,
        silent: Option<Silent>,
        /// While a question of the model is answered.
        echo: Option<Echo>,
    }

    impl Typed {
        /// No lines at all.
        pub(crate) fn none() -> Self {
            Self { is_open: false, begun: String::new(), lines: VecDeque::new(), live: None, silent: None, echo: None }
        }

        /// The lines of standard input, which is a terminal.
        pub(crate) fn open() -> Self {
            Self { is_open: true, ..Self::none() }
        }

        /// The same without showing what is typed, while a turn prints its text.
        pub(crate) fn silent() -> Self {
            Self { silent: Silent::begin(), ..Self::open() }
        }

        /// Lets the terminal show the answer to a question while it is typed, or hides the input again.
        pub(crate) fn shows(&mut self, shows: bool) {
            self.echo = None;
            self.echo = (shows && self.silent.is_some()).then(Echo::begin);
        }

        /// The inputs of a terminal that is drawn.
        pub(crate) fn drawn(live: &Live) -> Self {
            Self { is_open: true, live: Some(live.clone()), ..Self::none() }
        }

        /// The lines that were not used yet, and the begun line.
        pub(crate) fn rest(mut self) -> (VecDeque<String>, String) {
            if self.silent.is_some() && self.is_open {
                self.take_unread();
            }
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.begun))
        }

        /// Takes the input that was not shown: unread lines, and a begun one. The next prompt shows it.
        fn take_unread(&mut self) {
            let Ok(lines) = tcgetattr(io::stdin()) else { return };
            let mut single = lines.clone();
            single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            single.special_codes[SpecialCodeIndex::VMIN] = 0;
            single.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &single);
            let (mut unread, mut bytes) = (Vec::new(), [0; LONGEST]);
            while let Ok(read @ 1..) = rustix::io::read(io::stdin(), &mut bytes) {
                unread.extend_from_slice(&bytes[..read]);
            }
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &lines);
            self.take_all(&String::from_utf8_lossy(&unread));
        }

        /// Splits what was read into lines. The last one may have no end.
        fn take_all(&mut self, read: &str) {
            let end = read.rfind(['\n', '\r']).map_or(0, |at| at + 1);
            self.take(&read[..end]);
            self.begun.extend(read[end..].chars().filter(|character| !character.is_control()));
        }

        /// Whether lines are read from now on, and whether they were until now.
        pub(crate) fn listen(&mut self, listens: bool) -> bool {
            std::mem::replace(&mut self.is_open, listens)
        }

        /// The same for the lines so far, before a question is shown. What the user has begun to type is dropped.
        pub(crate) fn set_aside(&mut self) -> (VecDeque<String>, String) {
            // Without a terminal there is nothing to drop.
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            (std::mem::take(&mut self.lines), std::mem::take(&mut self.begun))
        }

        /// Waits for a line, for ever if there are none. The future may be dropped at any time.
        pub(crate) async fn next(&mut self) -> String {
            loop {
                if let Some(line) = self.lines.pop_front() {
                    return line;
                }
                if !self.is_open {
                    return std::future::pending().await;
                }
                if let Some(live) = &self.live {
                    match live.next().await {
                        Input::Text(line) => {
                            live.remember(&line);
                            return line;
                        }
                        Input::NextMode(_) => return SHIFT_TAB.to_owned(),
                        Input::Editor => live.tell("ctrl-g opens the editor when nothing runs"),
                        // The terminal is gone.
                        Input::End if live.has_ended() => self.is_open = false,
                        Input::End => live.tell("ctrl-c stops this; ctrl-d leaves when nothing runs"),
                        // Ctrl-C stops the turn without this.
                        Input::Interrupted => {}
                    }
                    continue;
                }
                if !has_input() {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                let mut bytes = [0; LONGEST];
                match rustix::io::read(io::stdin(), &mut bytes) {
                    Ok(read) if read > 0 => {
                        self.take(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()));
                    }
                    // The next prompt meets the end of the input again.
                    Ok(_) | Err(_) => self.is_open = false,
                }
            }
        }

        /// Splits what was read into lines. Several arrive together if they were pasted.
        fn take(&mut self, read: &str) {
            for line in read.split_inclusive(['\n', '\r']) {
                self.begun.push_str(line.trim_end_matches(['\n', '\r']));
                if is_continued(&self.begun) {
                    self.begun.push('\n');
                } else {
                    self.lines.push_back(joined(&std::mem::take(&mut self.begun)));
                }
            }
        }
    }

    fn has_input() -> bool {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let stdin = io::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut watched, Some(&AT_ONCE)).is_ok_and(|ready| ready > 0)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_begin_of_a_line_is_kept_for_the_next_prompt() {
            let mut typed = Typed::none();
            typed.take_all("one\ntwo\\\nth\u{7f}ree");
            let (lines, begun) = typed.rest();
            assert_eq!(
                (lines.into_iter().collect::<Vec<_>>(), begun.as_str()),
                (vec!["one".to_owned()], "two\\\nthree")
            );
        }

        #[test]
        fn pasted_lines_are_separate_and_a_backslash_continues_one() {
            let mut typed = Typed::none();
            for read in ["one\n", "two\rthree\r", "four\\\n", "five\n"] {
                typed.take(read);
            }
            assert_eq!(typed.lines, ["one", "two", "three", "four\nfive"]);
            typed.take("six\\\n");
            let (lines, begun) = typed.rest();
            assert_eq!((lines.len(), begun.as_str()), (4, "six\\\n"));
        }
    }
}

/// Elsewhere no line is read during a turn.
#[cfg(not(unix))]
pub(crate) struct Typed;

#[cfg(not(unix))]
impl Typed {
    /// No lines at all.
    pub(crate) fn none() -> Self {
        Self
    }

    /// No lines at all.
    pub(crate) fn open() -> Self {
        Self
    }

    /// No lines at all.
    pub(crate) fn silent() -> Self {
        Self
    }

    /// The terminal is as usual.
    pub(crate) fn shows(&mut self, _: bool) {}

    /// The terminal keeps them until the next prompt.
    pub(crate) fn drawn(_: &crate::live::Live) -> Self {
        Self
    }

    /// No lines.
    pub(crate) fn rest(self) -> (std::collections::VecDeque<String>, String) {
        Default::default()
    }

    /// No lines are read.
    pub(crate) fn listen(&mut self, _: bool) -> bool {
        false
    }

    /// No lines.
    pub(crate) fn set_aside(&mut self) -> (std::collections::VecDeque<String>, String) {
        Default::default()
    }

    /// Waits for ever.
    pub(crate) async fn next(&mut self) -> String {
        std::future::pending().await
    }
}
