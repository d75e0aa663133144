//! The programs that build a plugin, and what to do if one is missing.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hermes_plugin_host::toolchain;

use super::Lang;

const TARGET: &str = "wasm32-wasip2";

/// A warning if a program that builds plugins of this language is missing, with the command that installs it.
pub(super) fn missing(language: Lang) -> Option<String> {
    match language {
        Lang::Rust => missing_target(),
        Lang::Python => missing_program(toolchain::PYTHON),
        Lang::JavaScript => missing_program(toolchain::NPM),
        Lang::C => missing_program("make"),
        Lang::Go => missing_program("go"),
    }
}

fn missing_program(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    command
        .arg(if program == "go" { "version" } else { "--version" })
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let remedy = toolchain::remedy(program).unwrap_or("install it");
    command.status().is_err().then(|| format!("`{program}` was not found; {remedy}"))
}

fn missing_target() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| OsStr::new("rustc").to_owned());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]).stdin(Stdio::null()).stderr(Stdio::null());
    match command.output() {
        Err(_) => Some(
            "no Rust compiler was found; install Rust from https://rustup.rs, then run `rustup target add \
             wasm32-wasip2`"
                .to_owned(),
        ),
        Ok(output) => {
            let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            let exists = output.status.success() && fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
            (!exists).then(|| {
                format!("the Rust target {TARGET} is not installed; install it with `rustup target add {TARGET}`")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_and_a_present_one_is_not() {
        let missing = missing_program("no-such-program-of-hermes");
        assert!(missing.is_some_and(|text| text.contains("no-such-program-of-hermes") && text.contains("install")));
        assert_eq!(missing_program("cargo"), None);
    }
}
