//! The variables that a plugin sets for a program.

use std::ffi::OsString;

use super::invalid;
use crate::fault::Fault;

/// The most variables of a program, and their bytes.
const MOST: usize = 64;
const MOST_BYTES: usize = 32 << 10;

/// Variables of the host, and well-known ones that make a program load or run other code before it reads its arguments. The
/// list cannot be complete: the question shows every other variable, and an approval holds for exactly those.
fn refusal(name: &str) -> Option<&'static str> {
    const LOADERS: &[&str] =
        &["LD_", "DYLD_", "_RLD", "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "OPENSSL_", "LUA_INIT"];
    const STARTERS: &[&str] = &[
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "IFS",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PERL5OPT",
        "PERL5LIB",
        "PERL5DB",
        "PERL5SHELL",
        "PYTHONUSERBASE",
        "PYTHONPYCACHEPREFIX",
        "PYTHONBREAKPOINT",
        "GIT_EXEC_PATH",
        "NODE_PATH",
        "ZDOTDIR",
        "CLASSPATH",
        "JDK_JAVA_OPTIONS",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
    ];
    let upper = name.to_ascii_uppercase();
    match upper.as_str() {
        "PATH" | "HOME" | "TERM" | "TMPDIR" => Some("the host sets it"),
        name if name.starts_with("BASH_FUNC_") => Some("it defines a command of a shell"),
        name if LOADERS.iter().any(|loader| name.starts_with(loader)) => Some("it makes programs load other code"),
        name if STARTERS.contains(&name) => Some("it makes programs run other code"),
        _ => None,
    }
}

/// Checks names and values.
pub(super) fn check(variables: &[(String, String)]) -> Result<(), Fault> {
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if variables.len() > MOST || bytes > MOST_BYTES {
        let count = variables.len();
        return Err(invalid(
            "too-long",
            format!(
                "there are {count} variables with {bytes} bytes: at most {MOST} with {MOST_BYTES} bytes can be set"
            ),
        ));
    }
    for (name, value) in variables {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(plain) || name.as_bytes()[0].is_ascii_digit() {
            return Err(invalid("variable", format!("{name:?} is not the name of a variable")));
        }
        if let Some(why) = refusal(name) {
            return Err(invalid("variable", format!("the variable {name} cannot be set: {why}")));
        }
        if value.contains('\0') {
            return Err(invalid("nul", format!("the value of the variable {name} has a NUL character")));
        }
    }
    Ok(())
}

/// The environment with these variables; the last one with a name counts.
pub(super) fn add(
    mut environment: Vec<(OsString, OsString)>,
    variables: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    for (name, value) in variables {
        environment.retain(|(own, _)| own != name.as_str());
        environment.push((name.into(), value.into()));
    }
    environment
}
