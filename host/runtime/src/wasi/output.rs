//! What a guest prints: complete lines go to the plugin's log, and the end of standard error explains a crash.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The most bytes of a line; the rest begins another line.
const LINE: usize = 16 << 10;
/// How many bytes of standard error are kept to explain a crash.
const TAIL: usize = 8 << 10;
/// How many bytes a guest can write at once.
const PERMIT: usize = 64 << 10;
/// How many bytes wait for the log at most. They are logged at the guest's next use of WASI, or at the next tick.
const WAITING: usize = 1 << 20;

/// The two streams that a guest prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stdout,
    Stderr,
}

/// What the guest of one instance has printed and nobody has taken yet. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Printed>>);

#[derive(Default)]
struct Printed {
    lines: Vec<String>,
    /// The bytes of `lines`.
    waiting: usize,
    /// Beginnings of lines.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The end of standard error.
    tail: Vec<u8>,
}

impl Output {
    /// A stream for the guest.
    pub(super) fn stream(&self, source: Source) -> impl StdoutStream + use<> {
        Stream { output: self.clone(), source }
    }

    /// Takes the lines that are complete.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut printed = self.printed();
        printed.waiting = 0;
        mem::take(&mut printed.lines)
    }

    /// Takes all lines, also those without an end.
    pub(crate) fn finish(&self) -> Vec<String> {
        let mut printed = self.printed();
        for source in [Source::Stdout, Source::Stderr] {
            let rest = mem::take(printed.partial(source));
            if !rest.is_empty() {
                printed.push(&rest);
            }
        }
        drop(printed);
        self.lines()
    }

    /// The end of standard error, as text.
    pub(crate) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.printed().tail).trim().to_owned()
    }

    /// Forgets the end of standard error: what an earlier call printed does not explain a later crash.
    pub(crate) fn begin(&self) {
        self.printed().tail.clear();
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Printed {
    fn partial(&mut self, source: Source) -> &mut Vec<u8> {
        match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        }
    }

    fn write(&mut self, source: Source, bytes: &[u8]) {
        if source == Source::Stderr {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
            let excess = self.tail.len().saturating_sub(TAIL);
            self.tail.drain(..excess);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut line = mem::take(self.partial(source));
            let piece = &rest[..rest.len().min(LINE - line.len())];
            let piece = piece.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            line.extend_from_slice(piece);
            rest = &rest[piece.len()..];
            if line.ends_with(b"\n") || line.len() == LINE {
                self.push(&line);
                line.clear();
            }
            *self.partial(source) = line;
        }
    }

    fn push(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if !text.is_empty() && self.waiting < WAITING {
            self.waiting += text.len();
            self.lines.push(text.to_owned());
        }
    }
}

/// One of the streams. Writing never waits.
#[derive(Clone)]
struct Stream {
    output: Output,
    source: Source,
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Only WASI 0.3 asks for it, which is not served.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.printed().write(self.source, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_complete_and_the_rest_comes_at_the_end() {
        let output = Output::default();
        let write = |source, text: &str| output.printed().write(source, text.as_bytes());
        write(Source::Stdout, "one\ntwo");
        write(Source::Stderr, "Trace\n\n  File\n");
        write(Source::Stdout, " and more\nthree");
        assert_eq!(output.lines(), ["one", "Trace", "  File", "two and more"]);
        assert_eq!(output.finish(), ["three"]);
        assert_eq!(output.tail(), "Trace\n\n  File");
        output.begin();
        assert_eq!((output.tail().as_str(), output.finish().len()), ("", 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let output = Output::default();
        for _ in 0..100 {
            output.printed().write(Source::Stderr, &[b'x'; 100 << 10]);
        }
        assert_eq!(output.tail().len(), TAIL);
        let lines = output.finish();
        assert!(lines.iter().all(|line| line.len() <= LINE));
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!((WAITING..WAITING + 2 * LINE).contains(&bytes), "{bytes}");
    }
}

#[cfg(test)]
mod attack {
    use super::*;

    #[test]
    fn no_way_of_printing_takes_more_memory_than_another() {
        for (name, piece, times) in [
            ("empty lines", &b"\n\n\n\n\n\n\n\n"[..], 500_000),
            ("lines of one letter", b"x\n", 2_000_000),
            ("letters without a line", b"x", 2_000_000),
            ("bytes that are no text", &[0xff; 4_096], 2_000),
            ("half of a letter at each end of a line", b"\xc3\n\xa4\n", 500_000),
            ("escape sequences", b"\x1b[2J\x1b]0;x\x07", 300_000),
            ("carriage returns", b"\r\r\r\r", 500_000),
            ("nothing", b"", 1_000_000),
        ] {
            for source in [Source::Stdout, Source::Stderr] {
                let output = Output::default();
                for _ in 0..times {
                    output.printed().write(source, piece);
                }
                let printed = output.printed();
                let text: usize = printed.lines.iter().map(String::len).sum();
                assert!(printed.lines.len() <= WAITING && text < WAITING + 4 * LINE, "{name}: {text}");
                assert!(printed.stdout.len() < LINE && printed.stderr.len() < LINE, "{name}");
                drop(printed);
                assert!(output.tail().len() <= 3 * TAIL, "{name}");
                output.finish();
                assert!(output.lines().is_empty() && output.finish().is_empty(), "{name}");
            }
        }
    }
}
