//! Opens an address in the user's browser.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// Starts the browser and does not wait for it. The address is one argument, and no shell reads it.
pub(crate) fn open(page: &str) -> io::Result<()> {
    let (program, arguments) = program(std::env::var_os("BROWSER"));
    let mut command = Command::new(&program);
    command.args(arguments).arg(page);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", program.display()));
    let mut child = child.map_err(named)?;
    // Otherwise, as without a thread, the ended browser stays in the table of processes until this one ends.
    drop(std::thread::Builder::new().spawn(move || child.wait()));
    Ok(())
}

/// The program that opens addresses, and its first arguments.
fn program(chosen: Option<OsString>) -> (OsString, &'static [&'static str]) {
    match chosen.filter(|program| !program.is_empty()) {
        Some(program) => (program, &[]),
        None if cfg!(target_os = "macos") => ("open".into(), &[]),
        None if cfg!(windows) => ("rundll32".into(), &["url.dll,FileProtocolHandler"]),
        None => ("xdg-open".into(), &[]),
    }
}
