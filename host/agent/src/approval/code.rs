//! Programs that run the code in their arguments. An approval of `sh` with any arguments would allow everything, so the answers
//! `session` and `always` hold for exactly the command that the question shows.

use std::path::Path;

use hermes_capabilities::process::Run;

/// Shells, whose input and arguments are command lines.
pub(super) const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh", "osh", "pwsh",
    "rbash", "sh", "tcsh", "toybox", "xonsh", "yash", "zsh",
];
/// Interpreters of other languages that take code as an argument or from their input.
const LANGUAGES: &[&str] = &[
    "awk",
    "bun",
    "deno",
    "gawk",
    "lua",
    "mawk",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "python",
    "ruby",
    "Rscript",
    "tclsh",
];
/// Programs that start others.
const STARTERS: &[&str] = &["doas", "env", "nohup", "setsid", "ssh", "sudo", "timeout", "xargs"];

/// Whether a program runs the code in its arguments, by its own name or by that of the file behind it.
pub(super) fn runs_its_arguments(run: &Run) -> bool {
    let names = [Path::new(&run.program), &run.path, &run.real].map(|path| path.file_name().unwrap_or_default());
    names.iter().any(|name| is_known(&name.to_string_lossy()))
}

/// Whether a program of this name runs the code in its arguments, or in a file that they name.
pub(crate) fn is_known(name: &str) -> bool {
    [SHELLS, LANGUAGES, STARTERS].iter().any(|known| is_one_of(known, name))
}

/// Whether a program of this name takes code in another language than that of shells.
pub(super) fn is_other_language(name: &str) -> bool {
    is_one_of(LANGUAGES, name.rsplit('/').next().unwrap_or(name))
}

fn is_one_of(known: &[&str], name: &str) -> bool {
    // `python3.12` and `lua5.4` are `python` and `lua`.
    let family =
        name.strip_suffix(".exe").unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit() || "._-".contains(c));
    known.iter().any(|known| name.eq_ignore_ascii_case(known) || family.eq_ignore_ascii_case(known))
}

/// The command, exactly: what an approval of it compares. People read it in the list of approvals.
pub(super) fn exactly(run: &Run) -> String {
    let arguments: Vec<String> = run.arguments.iter().map(|argument| format!("{argument:?}")).collect();
    let input = match run.input.as_slice() {
        [] => String::new(),
        input => format!(" with the input of the hash {}", blake3::hash(input).to_hex()),
    };
    let background = if run.background { " in the background" } else { "" };
    format!("{} in {:?}{input}{background}", arguments.join(" "), run.folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_interpreters_are_known_in_every_version() {
        for known in ["sh", "bash", "python3.12", "python3", "lua5.4", "ruby-3.3", "pwsh.exe", "env", "ksh93", "PERL"] {
            assert!(is_known(known), "{known}");
        }
        for other in ["git", "cargo", "shfmt", "bashful", "gsh2", "pythonista", ""] {
            assert!(!is_known(other), "{other}");
        }
    }
}
