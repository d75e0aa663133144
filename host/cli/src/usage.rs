//! Errors of the command-line parser as failures with a code, a cause and a fix.

use clap::Error;
use clap::error::{ContextKind, ErrorKind};

use crate::failure::{Failure, Kind};

/// Converts an error of the parser. A request for help or the version is printed instead, and ends the program.
pub(crate) fn failure(error: &Error) -> Failure {
    let is_page = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_page {
        error.exit();
    }
    Failure::new(Kind::Usage, "the command line is invalid", why(error), fix(error))
}

fn why(error: &Error) -> String {
    let argument = given(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = given(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => format!("the argument `{argument}` is not expected here"),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command `{}`", given(error, ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            format!("`{argument}` needs a value")
        }
        ErrorKind::InvalidValue => format!("`{value}` is not a valid value for `{argument}`"),
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("`{value}` is not a valid value for `{argument}`{cause}")
        }
        ErrorKind::MissingRequiredArgument => format!("`{argument}` is missing"),
        ErrorKind::ArgumentConflict => match given(error, ContextKind::PriorArg) {
            Some(prior) if prior != argument => format!("`{argument}` cannot be used with `{prior}`"),
            _ => format!("`{argument}` is given more than once"),
        },
        kind => [kind.to_string(), argument].join(" ").trim_end().to_owned(),
    }
}

fn fix(error: &Error) -> String {
    const HELP: &str = "`--help` explains the options";
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    if let Some(near) = suggested.into_iter().find_map(|kind| given(error, kind)) {
        return format!("did you mean `{near}`? {HELP}");
    }
    if let Some(values) = given(error, ContextKind::ValidValue) {
        return format!("choose one of {values}; {HELP}");
    }
    match (error.kind(), given(error, ContextKind::Usage)) {
        (ErrorKind::ArgumentConflict, _) => format!("remove one of them; {HELP}"),
        // The parser's text begins with a heading.
        (_, Some(usage)) => format!("usage: `{}`; {HELP}", usage.trim_start_matches("Usage:").trim()),
        _ => format!("correct the value; {HELP}"),
    }
}

/// A detail of the error, if the parser knows it.
fn given(error: &Error, kind: ContextKind) -> Option<String> {
    error.get(kind).map(ToString::to_string).filter(|text| !text.is_empty())
}
