//! Why the system does not start a script, in the words of its first line.

use std::io::Read as _;
use std::path::Path;

/// The most bytes of a first line.
const LINE: u64 = 256;

/// What is wrong with the first line of a script; `None` if nothing is, or if the file is no script.
pub(super) fn flaw(script: &Path) -> Option<String> {
    let mut begin = Vec::new();
    hermes_private_files::open_regular(script).ok()?.take(LINE).read_to_end(&mut begin).ok()?;
    let (begin, has_mark) = match begin.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (rest, true),
        None => (begin.as_slice(), false),
    };
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if begin.contains(&0) {
        return None;
    }
    let named = line.strip_prefix(b"#!").map(|line| String::from_utf8_lossy(line).trim().to_owned());
    let name = script.file_name().unwrap_or_default().to_string_lossy();
    match named {
        _ if line.ends_with(b"\r") => Some(format!(
            "the first line of `{name}` ends with a carriage return (CR, as Windows writes line ends), which becomes part of the \
             name of its interpreter and of its commands: save it with LF line ends"
        )),
        Some(_) if has_mark => Some(format!("`{name}` begins with a byte order mark: save it without one")),
        Some(line) => {
            let interpreter = line.split_whitespace().next().unwrap_or_default();
            let is_missing = Path::new(interpreter).is_absolute() && !Path::new(interpreter).exists();
            is_missing.then(|| format!("the interpreter of `{name}`, {interpreter}, does not exist"))
        }
        None => None,
    }
}

/// The same for a script that the system could not start at all.
pub(super) fn flaw_of_unstarted(script: &Path) -> Option<String> {
    flaw(script).or_else(|| {
        let text = hermes_private_files::read_text(script, super::LONGEST_SCRIPT).ok()?;
        let name = script.file_name().unwrap_or_default().to_string_lossy();
        (!text.starts_with("#!")).then(|| format!("`{name}` has no first line such as `#!/bin/sh`"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_that_cannot_work_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("guard.sh");
        for (text, expected) in [
            ("#!/bin/sh\r\nexit 0\r\n", Some("carriage return (CR")),
            ("#!/usr/bin/env bash\r\n", Some("carriage return (CR")),
            ("cat\r\n", Some("carriage return (CR")),
            ("\u{feff}#!/bin/sh\n", Some("byte order mark")),
            ("#! /no/such/shell -e\n", Some("/no/such/shell, does not exist")),
            ("#!/bin/sh\n", None),
            ("cat\n", None),
            ("\u{7f}ELF\0\r\n", None),
        ] {
            std::fs::write(&script, text).unwrap();
            let found = flaw(&script);
            let is_as_expected = match expected {
                Some(part) => found.as_deref().is_some_and(|found| found.contains(part)),
                None => found.is_none(),
            };
            assert!(is_as_expected, "{text:?}: {found:?}");
        }
        std::fs::write(&script, "cat\n").unwrap();
        assert!(flaw_of_unstarted(&script).unwrap().contains("has no first line"));
    }
}
