//! The programs that build a plugin, and what to do if one is missing.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hermes_plugin_host::toolchain;

use crate::ProjectLanguage;

const TARGET: &str = "wasm32-wasip2";

/// A warning if a program that builds plugins of this language is missing, with the command that installs it.
pub fn missing(language: ProjectLanguage) -> Option<String> {
    match language {
        ProjectLanguage::Rust => missing_target(),
        ProjectLanguage::Python => missing_program(toolchain::PYTHON),
        ProjectLanguage::JavaScript => missing_program(toolchain::NPM),
        ProjectLanguage::C => missing_program("make").or_else(missing_c_compiler),
        ProjectLanguage::Go => missing_program("go"),
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

/// The names of compilers that the Makefile of a project looks for.
const CLANGS: [&str; 7] = ["clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang"];
const ZIGS: [&str; 2] = ["zig", "python-zig"];

fn missing_c_compiler() -> Option<String> {
    // Some systems have a clang and no libc for WebAssembly.
    let links = |program: &&str| {
        let Ok(output) = tempfile::NamedTempFile::new() else { return false };
        let mut command = Command::new(program);
        command.args(["--target=wasm32-wasi", "-mexec-model=reactor", "-x", "c", "-", "-o"]).arg(output.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = CLANGS.iter().any(links) || ZIGS.iter().any(|name| missing_program(name).is_none());
    (!found).then(|| {
        "no C compiler for WebAssembly was found; install that of Zig with `pip install ziglang`, or clang, on Debian 12 \
         with `apt install clang-16 lld-16 wasi-libc libclang-rt-16-dev-wasm32`"
            .to_owned()
    })
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
