//! What the end and the output of a hook decide.

use std::time::Duration;

use hermes_capabilities::process::End;
use hermes_conversation::one_line_within;
use hermes_plugin_host::Verdict;
use serde_json::Value;

use super::seconds;

/// The exit code that blocks a call, with the standard error as the reason.
const BLOCKS: i32 = 2;
/// The most characters of a reason.
const MOST_REASON: usize = 8_000;
/// The most characters of a line of the standard error.
const LAST_LINE: usize = 200;

/// The verdict of a hook, or how it failed.
pub(super) fn verdict(end: End, output: &[u8], errors: &str, time: Duration) -> Result<Verdict, String> {
    match end {
        End::Exited(0) => of_output(output),
        End::Exited(BLOCKS) => Ok(Verdict::Block(reason(errors))),
        End::TimedOut => Err(format!("did not end within {}", seconds(time))),
        End::Exited(code) => Err(with_last_line(format!("ended with exit code {code}"), errors)),
        End::Killed(signal) => Err(with_last_line(format!("was ended by signal {signal}"), errors)),
        End::Stopped => Err("was stopped".to_owned()),
    }
}

/// A JSON object decides; other texts are for nobody.
fn of_output(output: &[u8]) -> Result<Verdict, String> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    if !text.starts_with('{') {
        return Ok(Verdict::Proceed);
    }
    let answer: Value =
        serde_json::from_str(text).map_err(|error| format!("wrote JSON that cannot be read: {error}"))?;
    let member =
        |names: [&str; 2]| names.into_iter().find_map(|name| answer.get(name).filter(|value| !value.is_null()));
    let Some(decision) = member(["decision", "action"]) else { return Ok(Verdict::Proceed) };
    let why = || reason(member(["reason", "message"]).and_then(Value::as_str).unwrap_or_default());
    match decision.as_str() {
        Some("proceed" | "allow") => Ok(Verdict::Proceed),
        Some("block" | "deny") => Ok(Verdict::Block(why())),
        // The peer's word for a question to the user.
        Some("ask" | "approve") => Ok(Verdict::Ask(why())),
        _ => Err(one_line_within(
            &format!("decided {decision}, which is none of `proceed`, `block` and `ask`"),
            LAST_LINE,
        )),
    }
}

fn reason(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MOST_REASON) {
        _ if text.is_empty() => "it gave no reason".to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
        None => text.to_owned(),
    }
}

fn with_last_line(what: String, errors: &str) -> String {
    match errors.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{what}: {}", one_line_within(line, LAST_LINE)),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: i32, output: &str, errors: &str) -> String {
        match verdict(End::Exited(code), output.as_bytes(), errors, Duration::from_secs(60)) {
            Ok(Verdict::Proceed) => "proceed".to_owned(),
            Ok(Verdict::Block(why)) => format!("block: {why}"),
            Ok(Verdict::Ask(why)) => format!("ask: {why}"),
            Err(why) => format!("fails: {why}"),
        }
    }

    #[test]
    fn exit_code_and_output_decide() {
        for (code, output, errors, expected) in [
            (0, "", "", "proceed"),
            (0, "checked, all is well\n", "", "proceed"),
            (0, "{}", "", "proceed"),
            (0, r#" {"decision": "proceed"} "#, "", "proceed"),
            (0, r#"{"decision": "block", "reason": "no"}"#, "", "block: no"),
            (0, r#"{"action": "block", "message": "no"}"#, "", "block: no"),
            (0, r#"{"decision": "ask", "reason": "sure?"}"#, "", "ask: sure?"),
            (0, r#"{"action": "approve", "message": "sure?"}"#, "", "ask: sure?"),
            (0, r#"{"decision": "block"}"#, "", "block: it gave no reason"),
            (
                0,
                r#"{"decision": "maybe"}"#,
                "",
                "fails: decided \"maybe\", which is none of `proceed`, `block` and `ask`",
            ),
            (2, "ignored", "never on Friday\n", "block: never on Friday"),
            (1, r#"{"decision": "proceed"}"#, "Traceback\nboom\n\n", "fails: ended with exit code 1: boom"),
            (127, "", "", "fails: ended with exit code 127"),
        ] {
            assert_eq!(of(code, output, errors), expected);
        }
        assert!(of(0, "{broken", "").starts_with("fails: wrote JSON that cannot be read"));
        let long = of(2, "", &"é".repeat(20_000));
        assert!(long.ends_with("é […]") && long.chars().count() < MOST_REASON + 20, "{}", long.len());
        let late = verdict(End::TimedOut, b"", "", Duration::from_secs(3));
        assert!(matches!(late, Err(why) if why == "did not end within 3 s"));
    }
}
