//! `hermes doctor`: checks the home folder and everything in it.

use std::process::ExitCode;

use hermes_app::doctor::{Check, Outcome, examine_home};
use hermes_app::{Home, process};
use hermes_diagnostic::Fix;
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::session_arguments::ModelArguments;
use crate::{text, wording};

/// Prints the report. With a failed check, the exit code is 1. `asks_model`: whether the model gets a small request.
pub(crate) async fn run(
    model: &ModelArguments,
    asks_model: bool,
    json: bool,
    console: Console,
) -> Result<ExitCode, Failure> {
    let checks = examine_home(&Home::locate()?, &model.choice(), process::compiler(), asks_model).await;
    if json {
        let checks: Vec<_> = checks
            .iter()
            .map(|check| json!({"finding": check.outcome, "of": check.subject, "found": check.found, "fix": fix(&check.fix)}))
            .collect();
        print(&text::json(&json!(checks)))?;
    } else {
        print(&checks.iter().map(|check| line(check, console)).collect::<String>())?;
    }
    let failed = checks.iter().any(|check| check.outcome == Outcome::Fail);
    Ok(if failed { Kind::General.into() } else { ExitCode::SUCCESS })
}

fn fix(fix: &Fix) -> String {
    if fix.is_empty() { String::new() } else { wording::fix(fix) }
}

fn line(check: &Check, console: Console) -> String {
    let (word, tone) = match check.outcome {
        Outcome::Ok => ("ok", Tone::Good),
        Outcome::Warn => ("warn", Tone::Warning),
        Outcome::Fail => ("fail", Tone::Bad),
    };
    // Below what was found, so that the words in front stand out on a narrow terminal.
    const MARGIN: usize = 15;
    let found = format!("{word:<4} {:<9} {}", check.subject, text::line(&check.found));
    let found = console.hanging(&found, MARGIN);
    let found = found.strip_prefix(word).map(|rest| console.paint(tone, word) + rest).unwrap_or(found);
    match fix(&check.fix) {
        fix if fix.is_empty() => found,
        fix => found + &console.hanging(&format!("{:MARGIN$}fix: {}", "", text::line(&fix)), MARGIN + "fix: ".len()),
    }
}
