//! Text for the clipboard of the terminal, which may be on another machine: the sequence OSC 52.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The most bytes of a text. Terminals drop longer sequences without a word: xterm reads 100,000 bytes.
const MOST: usize = 74_000;

/// Why a text was not handed to the terminal.
#[derive(Debug)]
pub enum NotCopied {
    /// It has more bytes than terminals take.
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// How many they take.
        most: usize,
    },
    /// The terminal cannot be written.
    Unwritable(io::Error),
}

/// Hands a text to the clipboard of the terminal behind `out`. Nobody learns whether the terminal takes it.
///
/// # Errors
///
/// If the text is too long, or `out` cannot be written.
pub fn copy(text: &str, out: &mut impl Write) -> Result<(), NotCopied> {
    if text.len() > MOST {
        return Err(NotCopied::TooLong { bytes: text.len(), most: MOST });
    }
    let written = write!(out, "\u{1b}]52;c;{}\u{7}", STANDARD.encode(text)).and_then(|()| out.flush());
    written.map_err(NotCopied::Unwritable)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_sequence_and_a_long_one_none() {
        let mut out = Vec::new();
        copy("tea\u{1b}]0;x\u{7}", &mut out).unwrap();
        assert_eq!(out, b"\x1b]52;c;dGVhG10wO3gH\x07");
        out.clear();
        let refused = copy(&"x".repeat(MOST + 1), &mut out).unwrap_err();
        assert!(matches!(refused, NotCopied::TooLong { bytes: 74_001, most: 74_000 }) && out.is_empty());
    }
}
