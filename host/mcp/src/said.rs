//! What a server's program writes to its standard error, and which line of it says why the program failed.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::error::line;
use crate::limits;

/// The last bytes of a standard error. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// All of it that is kept.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Its last lines, for people.
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].iter().map(|text| line(text)).collect()
    }

    /// Whether one of its lines is called an error, or belongs to Python's trace.
    pub(crate) fn names_error(&self) -> bool {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        of_python(&lines).is_some() || lines.iter().any(|line| is_error(line) || of_npm(line).is_some())
    }

    /// The line that says why the program failed.
    pub(crate) fn reason(&self) -> Option<String> {
        reason(&self.text()).map(|reason| line(&reason))
    }

    /// Reads until the end.
    pub(crate) async fn listen(self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.add(&buffer[..count]);
        }
    }

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let beyond = kept.len().saturating_sub(limits::STANDARD_ERROR);
        kept.drain(..beyond);
    }
}

/// The line with the reason, in this order: the one of npm's report, the one after Python's traceback, the first that is called
/// an error, the one before a usage text, or else the last that is more than a reference.
fn reason(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let of_npm = lines.iter().find_map(|line| of_npm(line.trim())).map(|said| format!("npm error {said}"));
    let found = of_npm.as_deref().or_else(|| of_python(&lines));
    let found = found.or_else(|| lines.iter().copied().find(|line| is_error(line)));
    let found = found.or_else(|| {
        let usage = lines.iter().position(|line| is_usage(line))?;
        lines[..usage].last().copied()
    });
    let found = found.or_else(|| lines.iter().rev().copied().find(|line| !is_reference(line)));
    found.or(lines.last().copied()).map(|line| line.trim().to_owned())
}

/// What a line of npm's report says, unless it is a detail. The report ends with advice and with the name of a log.
fn of_npm(line: &str) -> Option<&str> {
    let said = line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "))?.trim();
    let is_detail = ["code ", "errno ", "syscall ", "path ", "A complete log"].iter().any(|it| said.starts_with(it));
    (!is_detail).then_some(said)
}

/// The line behind the frames of the last trace of Python.
fn of_python<'t>(lines: &[&'t str]) -> Option<&'t str> {
    let trace = lines.iter().rposition(|line| line.trim_start().starts_with("Traceback (most recent call last)"))?;
    let indent = lines[trace].len() - lines[trace].trim_start().len();
    let is_frame = |line: &str| line.len() - line.trim_start().len() > indent;
    lines[trace + 1..].iter().copied().find(|line| !is_frame(line))
}

/// Whether a line begins with the name of an error, or has one behind a prefix such as that of a log. The line of the source that Node
/// shows has a bracket behind the name instead.
fn is_error(line: &str) -> bool {
    line.split_inclusive(':').any(|part| {
        let Some(before) = part.strip_suffix(':') else { return false };
        // Node writes a code between the name and the colon.
        let before = before.split_once(" [").map_or(before, |(name, _)| name);
        let word = before.rsplit([' ', '\t', '(', '[', ']', '"']).next().unwrap_or_default().to_ascii_lowercase();
        ["error", "exception", "fatal", "panic"].iter().any(|end| word.ends_with(end))
    })
}

fn is_usage(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    ["usage:", "examples:", "options:", "flags:"].iter().any(|head| line.starts_with(head))
}

/// Whether a line only says where to read more, or which program wrote the others.
fn is_reference(line: &str) -> bool {
    line.contains("://") || line.contains("--help") || line.trim().starts_with("Node.js v")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_that_helps() {
        for (said, expected) in [
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://example.org/x - Not found\nnpm error 404\n\
                 npm error A complete log of this run can be found in: /home/me/.npm/_logs/1.log\n",
                "npm error 404 Not Found - GET https://example.org/x - Not found",
            ),
            // Node: the source with a mark, the error, its trace, its fields, and the version.
            (
                "node:net:1612\n    throw new Error(`x: y`);\n    ^\n\nError: connect ECONNREFUSED 127.0.0.1:9\n    at f (node:net:1)\n\
                 {\n  code: 'ECONNREFUSED'\n}\n\nNode.js v20.20.2\n",
                "Error: connect ECONNREFUSED 127.0.0.1:9",
            ),
            ("starting\nTypeError [ERR_X]: wrong: key\n    at f\n\nNode.js v22.1.0\n", "TypeError [ERR_X]: wrong: key"),
            ("[2026-11-28 10:00:00] ERROR: no token\nbye\n", "[2026-11-28 10:00:00] ERROR: no token"),
            // Cobra, argparse, and a text of one's own before the usage.
            (
                "Error: no context is set\nUsage:\n  server [flags]\n\nFlags:\n      --version  Print it\n",
                "Error: no context is set",
            ),
            ("usage: server [-h] --key KEY\nserver: error: --key is required\n", "server: error: --key is required"),
            ("A token is needed.\n\nUsage:\n  server --token=T\n  server --token=T --more\n", "A token is needed."),
            ("usage: server KEY\n", "usage: server KEY"),
            // Python: an error with another one as its cause, and a log behind it.
            (
                "INFO: starting\nTraceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'a'\n\n\
                 Traceback (most recent call last):\n  File \"a.py\", line 2\n    y\nModuleNotFoundError: No module named 'x'\nend\n",
                "ModuleNotFoundError: No module named 'x'",
            ),
            ("It needs Node.js 22 or newer.\nMore help: https://example.org/x\n", "It needs Node.js 22 or newer."),
            (
                "INFO:     Server running on http://127.0.0.1:8000\n",
                "INFO:     Server running on http://127.0.0.1:8000",
            ),
            ("ready, 0 errors: all fine\nkilled\n", "killed"),
        ] {
            assert_eq!(reason(said).as_deref(), Some(expected), "{said}");
        }
        assert_eq!(reason("\n \n"), None);
    }

    #[test]
    fn the_end_is_kept() {
        let said = Said::default();
        assert_eq!((said.reason(), said.last_lines(5)), (None, Vec::new()));
        said.add(&b"x".repeat(3 * limits::STANDARD_ERROR));
        said.add(b"\nTraceback\n  the cause\x1b[0m\n \n");
        assert_eq!(said.0.lock().map(|kept| kept.len()).unwrap_or_default(), limits::STANDARD_ERROR);
        assert_eq!(said.reason().as_deref(), Some("the cause [0m"));
        assert_eq!(said.last_lines(2), ["Traceback", "the cause [0m"]);
    }
}
