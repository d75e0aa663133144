//! Outputs of commands in files that the user names.

use std::io;
use std::path::Path;

use hermes_app::files::{Patience, Readers, write_output};

use crate::console::Console;
use crate::text;

/// The file of an output; `None` if it is standard output, which `-` means too.
pub fn file(named: Option<&Path>) -> Option<&Path> {
    named.filter(|path| *path != Path::new("-"))
}

/// Writes an output. What is not done in silence is said on standard error: the wait for the reader of a pipe, and that a file was
/// replaced.
pub fn write(path: &Path, content: &[u8], readers: Readers, console: Console) -> io::Result<()> {
    if write_output(path, content, readers, Patience::Waits(&|| waits(path, console)))? {
        console.note(&format!("{} existed, and was replaced", shown(path)));
    }
    Ok(())
}

/// Writes a file of a project, which the command makes anew each time.
pub fn renew(path: &Path, content: &[u8], console: Console) -> io::Result<()> {
    write_output(path, content, Readers::Everybody, Patience::Waits(&|| waits(path, console))).map(drop)
}

/// Says that a pipe has no reader yet.
pub fn waits(path: &Path, console: Console) {
    console.note(&format!("{} is a pipe: waiting for a program that reads from it; ctrl-c ends the wait", shown(path)));
}

fn shown(path: &Path) -> String {
    text::exact(&path.display().to_string())
}
