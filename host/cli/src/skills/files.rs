//! The files of a skill in words: which are programs, and what changed.

use hermes_app::skills::{Change, FileChange, SkillFile};

/// Ends of the names of programs in source form.
const PROGRAMS: &[&str] = &[
    "bash", "bat", "cjs", "cmd", "exe", "fish", "js", "lua", "mjs", "php", "pl", "ps1", "psm1", "py", "r", "rb",
    "scpt", "sh", "tcl", "ts", "vbs", "wasm", "zsh",
];
/// Beginnings of files that a system starts: scripts, ELF, Mach-O, Windows and WebAssembly.
const MAGIC: &[&[u8]] = &[b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ", b"\0asm"];

/// Whether a file can be started, or run by an interpreter.
pub(super) fn is_program(file: &SkillFile) -> bool {
    let end = file.name.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end.to_lowercase());
    end.is_some_and(|end| PROGRAMS.contains(&end.as_str())) || MAGIC.iter().any(|magic| file.bytes.starts_with(magic))
}

/// A changed file in words.
pub(super) fn changed(change: &FileChange) -> String {
    let word = match change.change {
        Change::Added => "added",
        Change::Changed => "changed",
        Change::Removed => "removed",
    };
    format!("{word} {}", change.name)
}
