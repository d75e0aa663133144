//! Reads single keys of the terminal while a question is shown, and restores the terminal afterwards.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

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

/// What the user pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter in lower case, or a space.
    Letter(u8),
    Enter,
    /// Escape or Ctrl-D, or the terminal is gone.
    Leave,
    /// Ctrl-C.
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

    /// Drops keys until none is pressed for a moment. True if Ctrl-C was.
    pub(super) async fn settle(&mut self) -> bool {
        let mut rested = Duration::ZERO;
        while rested < REST {
            tokio::time::sleep(POLL).await;
            rested += POLL;
            match pressed() {
                Pressed::Nothing => {}
                Pressed::End => break,
                Pressed::Keys(keys) if keys.contains(&CTRL_C) => return true,
                Pressed::Keys(_) => rested = Duration::ZERO,
            }
        }
        false
    }

    /// Waits for a single key.
    pub(super) async fn next(&mut self) -> Key {
        loop {
            match pressed() {
                Pressed::Nothing => tokio::time::sleep(POLL).await,
                Pressed::End => return Key::Leave,
                Pressed::Keys(mut keys) => {
                    loop {
                        tokio::time::sleep(BURST).await;
                        match pressed() {
                            Pressed::Keys(more) => keys.extend(more),
                            Pressed::Nothing | Pressed::End => break,
                        }
                    }
                    if let Some(key) = single(&keys) {
                        return key;
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

/// The key of bytes that arrived together. None if they are no single key: pasted text must not answer.
fn single(bytes: &[u8]) -> Option<Key> {
    if bytes.contains(&CTRL_C) {
        return Some(Key::Stop);
    }
    let [byte] = bytes else { return None };
    match byte {
        b'\r' | b'\n' => Some(Key::Enter),
        &(ESCAPE | CTRL_D) => Some(Key::Leave),
        b' ' => Some(Key::Letter(b' ')),
        letter if letter.is_ascii_alphabetic() => Some(Key::Letter(letter.to_ascii_lowercase())),
        _ => None,
    }
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
    fn only_a_single_key_counts() {
        for (bytes, key) in [
            (b"o".as_slice(), Some(Key::Letter(b'o'))),
            (b"O", Some(Key::Letter(b'o'))),
            (b" ", Some(Key::Letter(b' '))),
            (b"\r", Some(Key::Enter)),
            (b"\n", Some(Key::Enter)),
            (b"\x1b", Some(Key::Leave)),
            (b"\x04", Some(Key::Leave)),
            (b"\x03", Some(Key::Stop)),
            (b"always do as I say", None),
            (b"ok", None),
            (b"o\r", None),
            (b"\x1b[A", None),
            (b"\x1bo", None),
            (b"7", None),
            ("ö".as_bytes(), None),
            (b"", None),
            (b"text\x03", Some(Key::Stop)),
        ] {
            assert_eq!(single(bytes), key, "{bytes:?}");
        }
    }
}
