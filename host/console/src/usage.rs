//! Errors of the command-line parser as failures with a code, a cause and a fix.

use std::num::ParseIntError;

use clap::error::{ContextKind, ErrorKind};
use clap::{Command, Error};
use hermes_config::most_similar;

use crate::failure::{Failure, Kind};

/// The cause and the fix of a subcommand that does not exist, given the command before it and the word.
pub type Unknown<'a> = &'a dyn Fn(&str, &str) -> Option<(String, String)>;

/// Help and version are printed as the parser has them, and end the program. Everything else is a failure. `program` is the
/// definition of the command line; `unknown` may know more about a subcommand that does not exist.
pub fn failure(error: &Error, program: Command, unknown: Unknown<'_>) -> Failure {
    let is_page = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_page {
        error.exit();
    }
    let command = command(program, std::env::args().skip(1));
    let (why, fix) = explained(error, &command, unknown);
    Failure::new(Kind::Usage, "the command line is invalid", why, fix)
}

/// The command that the words of a command line name, such as `hermes sessions show`.
fn command(mut command: Command, words: impl Iterator<Item = String>) -> String {
    let mut name = command.get_name().to_owned();
    for word in words {
        if let Some(subcommand) = command.find_subcommand(&word).cloned() {
            name = format!("{name} {}", subcommand.get_name());
            command = subcommand;
        }
    }
    name
}

/// The cause and the fix.
fn explained(error: &Error, command: &str, unknown: Unknown<'_>) -> (String, String) {
    let argument = plain(&given(error, ContextKind::InvalidArg).unwrap_or_default());
    // An option without the name of its value.
    let option = argument.split(' ').next().unwrap_or_default();
    let value = given(error, ContextKind::InvalidValue).unwrap_or_default();
    let help = format!("see `{command} --help`");
    let choices = given(error, ContextKind::ValidValue);
    let near = |wrong: &str| match nearest(error, wrong) {
        Some(near) => format!("did you mean `{near}`? {help}"),
        None => format!("remove it; {help}"),
    };
    match error.kind() {
        ErrorKind::UnknownArgument => (format!("the argument `{argument}` is not expected here"), near(&argument)),
        ErrorKind::InvalidSubcommand => {
            let wrong = given(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            if let Some(explained) = unknown(command, &wrong) {
                return explained;
            }
            let fix = nearest(error, &wrong).map_or_else(
                || format!("`{command} --help` lists the commands"),
                |near| format!("did you mean `{near}`? {help}"),
            );
            (format!("there is no command `{wrong}`"), fix)
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            (format!("`{option}` needs a value"), format!("write `{argument}`; {help}"))
        }
        ErrorKind::InvalidValue => {
            let fix = choices.map_or_else(|| near(&value), |choices| format!("choose one of {choices}; {help}"));
            (format!("`{value}` is not a valid value for `{option}`"), fix)
        }
        ErrorKind::ValueValidation => {
            let (why, fix) = unfit(error, &value, option);
            (why, format!("{fix}; {help}"))
        }
        ErrorKind::MissingRequiredArgument => match argument.as_str() {
            "ID or --all" => {
                ("neither a session nor `--all` is given".to_owned(), format!("give session ids or --all; {help}"))
            }
            "--resume ID or --continue" => {
                let why = "`--branch` needs `--resume ID` or `--continue`";
                (why.to_owned(), format!("add one of them; {help}"))
            }
            "--oneshot TEXT" => {
                ("`--image`, `--json` and `--stream-json` need `-z`".to_owned(), format!("add `-z TEXT`; {help}"))
            }
            _ => {
                // The parser's usage has a heading.
                let usage = given(error, ContextKind::Usage).unwrap_or_default();
                let usage = usage.trim_start_matches("Usage:").trim().to_owned();
                (format!("`{argument}` is missing"), format!("usage: `{usage}`; {help}"))
            }
        },
        ErrorKind::ArgumentConflict => match given(error, ContextKind::PriorArg).map(|prior| plain(&prior)) {
            Some(prior) if prior != argument => {
                let prior = prior.split(' ').next().unwrap_or_default();
                (format!("`{option}` cannot be used with `{prior}`"), format!("remove one of them; {help}"))
            }
            _ => (format!("`{option}` is given more than once"), format!("give it only once; {help}")),
        },
        kind => ([kind.to_string(), argument].join(" ").trim_end().to_owned(), help),
    }
}

/// Why a value cannot be read, and what to give instead.
fn unfit(error: &Error, value: &str, option: &str) -> (String, &'static str) {
    let cause = std::error::Error::source(error);
    if cause.is_some_and(|cause| cause.is::<ParseIntError>()) {
        return (format!("`{value}` is not a valid number for `{option}`"), "give a whole number");
    }
    if cause.is_some_and(|cause| cause.is::<jiff::Error>()) {
        let looks_like_a_day = value.len() == 10 && value.chars().all(|c| c.is_ascii_digit() || c == '-');
        let why = if looks_like_a_day { "does not exist" } else { "is not a day" };
        return (format!("`{value}` {why}"), "give a day such as 2026-01-31");
    }
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    (format!("`{value}` is not a valid value for `{option}`{cause}"), "correct the value")
}

/// The name that the parser suggests, unless it is too different from the given one.
fn nearest(error: &Error, wrong: &str) -> Option<String> {
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    most_similar(wrong, suggested.into_iter().find_map(|kind| given(error, kind)).into_iter())
}

/// An argument without the marks of the usage: `<--resume <ID>|--continue>` becomes `--resume ID or --continue`.
fn plain(argument: &str) -> String {
    argument.replace('|', " or ").replace(['<', '>', '[', ']'], "")
}

/// What the parser knows about the error, unless it is nothing.
fn given(error: &Error, kind: ContextKind) -> Option<String> {
    error.get(kind).map(ToString::to_string).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_the_command_that_failed_is_named() {
        let list = Command::new("list").alias("ls");
        let hermes = Command::new("hermes")
            .subcommand(Command::new("sessions").subcommand(Command::new("show")))
            .subcommand(Command::new("plugins").subcommand(list));
        for (line, expected) in [
            ("--wrong", "hermes"),
            ("sessions show", "hermes sessions show"),
            ("-v plugins ls --wrong", "hermes plugins list"),
            ("dance", "hermes"),
        ] {
            assert_eq!(command(hermes.clone(), line.split(' ').map(str::to_owned)), expected, "{line}");
        }
    }
}
