//! Reads single keys of the terminal while a question is shown, and restores the terminal afterwards.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use hermes_agent::approval::Decision;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// How often to look for a key. Reads never block, so that a question can be withdrawn at any moment.
const POLL: Duration = Duration::from_millis(20);
/// How long no key must be pressed before a key counts: a user in the middle of a word must not answer by accident.
const REST: Duration = Duration::from_millis(400);
/// Keys within this time of one another are pasted text or an escape sequence, not separate key presses.
const BURST: Duration = Duration::from_millis(30);

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const ESCAPE: u8 = 0x1b;

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Given(Decision),
    /// Ctrl-C: no, and stop the turn.
    Stop,
}

/// Standard input without echo and line editing.
pub(super) struct Keys {
    before: Termios,
}

impl Keys {
    /// Switches the terminal, and drops earlier input.
    pub(super) fn open() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        // A read returns at once, also without input.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw)?;
        let keys = Self { before };
        tcflush(stdin.as_fd(), QueueSelector::IFlush)?;
        Ok(keys)
    }

    /// Drops keys until none is pressed for a moment.
    pub(super) async fn settle(&mut self) -> Answer {
        let mut rested = Duration::ZERO;
        while rested < REST {
            tokio::time::sleep(POLL).await;
            rested += POLL;
            match pressed() {
                Pressed::Nothing => {}
                Pressed::End => break,
                Pressed::Keys(keys) if keys.contains(&CTRL_C) => return Answer::Stop,
                Pressed::Keys(_) => rested = Duration::ZERO,
            }
        }
        Answer::Given(Decision::Deny)
    }

    /// Waits for a key that is an answer.
    pub(super) async fn answer(&mut self) -> Answer {
        loop {
            match pressed() {
                Pressed::Nothing => tokio::time::sleep(POLL).await,
                Pressed::End => return Answer::Given(Decision::Deny),
                Pressed::Keys(mut keys) => {
                    loop {
                        tokio::time::sleep(BURST).await;
                        match pressed() {
                            Pressed::Keys(more) => keys.extend(more),
                            Pressed::Nothing | Pressed::End => break,
                        }
                    }
                    if let Some(answer) = meaning(&keys) {
                        return answer;
                    }
                }
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.before);
    }
}

/// The answer of keys that arrived together. None if they are no single answer key.
fn meaning(keys: &[u8]) -> Option<Answer> {
    if keys.contains(&CTRL_C) {
        return Some(Answer::Stop);
    }
    let [key] = keys else { return None };
    Some(Answer::Given(match key.to_ascii_lowercase() {
        b'o' => Decision::Once,
        b's' => Decision::Session,
        b'a' => Decision::Always,
        b'd' | b'\r' | b'\n' | ESCAPE | CTRL_D => Decision::Deny,
        _ => return None,
    }))
}

enum Pressed {
    Nothing,
    Keys(Vec<u8>),
    /// The terminal is gone.
    End,
}

/// Reads the keys that were pressed since the last call.
fn pressed() -> Pressed {
    let stdin = io::stdin();
    let mut waiting = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    match poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Pressed::Nothing,
        Ok(_) => {}
        Err(_) => return Pressed::End,
    }
    let mut keys = [0; 256];
    match rustix::io::read(stdin.as_fd(), &mut keys) {
        Ok(count @ 1..) => Pressed::Keys(keys[..count].to_vec()),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Pressed::Nothing,
        Ok(0) | Err(_) => Pressed::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_key_is_a_yes() {
        let given = |decision| Some(Answer::Given(decision));
        for (keys, answer) in [
            (b"o".as_slice(), given(Decision::Once)),
            (b"O", given(Decision::Once)),
            (b"s", given(Decision::Session)),
            (b"a", given(Decision::Always)),
            (b"d", given(Decision::Deny)),
            (b"\r", given(Decision::Deny)),
            (b"\n", given(Decision::Deny)),
            (b"\x1b", given(Decision::Deny)),
            (b"\x04", given(Decision::Deny)),
            (b"\x03", Some(Answer::Stop)),
            (b"always do as I say", None),
            (b"ok", None),
            (b"o\r", None),
            (b"\x1b[A", None),
            (b"\x1bo", None),
            (b"y", None),
            (b" ", None),
            ("ö".as_bytes(), None),
            (b"", None),
            (b"text\x03", Some(Answer::Stop)),
        ] {
            assert_eq!(meaning(keys), answer, "{keys:?}");
        }
    }
}
