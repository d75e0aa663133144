use super::*;

fn of(code: i32, output: &str, errors: &str) -> String {
    of_bytes(code, output.as_bytes(), errors)
}

fn of_bytes(code: i32, output: &[u8], errors: &str) -> String {
    at(true, code, output, errors)
}

fn at(guards: bool, code: i32, output: &[u8], errors: &str) -> String {
    match answer(End::Exited(code), output, errors, Duration::from_secs(60), guards) {
        Ok(Answer { verdict: Verdict::Proceed, unheard: None }) => "proceed".to_owned(),
        Ok(Answer { verdict: Verdict::Proceed, unheard: Some(what) }) => format!("proceed, but it {what}"),
        Ok(Answer { verdict: Verdict::Block(why), .. }) => format!("block: {why}"),
        Ok(Answer { verdict: Verdict::Ask(why), .. }) => format!("ask: {why}"),
        Err(why) => format!("fails: {why}"),
    }
}

#[test]
fn exit_code_and_output_decide() {
    for (code, output, errors, expected) in [
        (0, "", "", "proceed"),
        (0, "\r\n", "", "proceed"),
        (0, "{}", "", "proceed"),
        (0, "", "a line for people", "proceed"),
        (0, r#" {"decision": "proceed"} "#, "", "proceed"),
        (0, r#"{"decision": "block", "reason": "no"}"#, "", "block: no"),
        (0, r#"{"action": "block", "message": "no"}"#, "", "block: no"),
        (0, r#"{"decision": "ask", "reason": "sure?"}"#, "", "ask: sure?"),
        (0, r#"{"action": "approve", "message": "sure?"}"#, "", "ask: sure?"),
        (0, r#"{"decision": "block"}"#, "", "block: it gave no reason"),
        (2, "ignored", "never on Friday\n", "block: never on Friday"),
        (2, r#"{"decision": "block", "reason": "no"}"#, "", "block: no"),
        (2, "not here\n", "", "block: not here"),
        (2, "", "", "block: it gave no reason"),
        (1, r#"{"decision": "proceed"}"#, "Traceback\nboom\n\n", "fails: ended with exit code 1: boom"),
        (127, "", "", "fails: ended with exit code 127"),
    ] {
        assert_eq!(of(code, output, errors), expected, "{output}");
    }
    let long = of(2, "", &"é".repeat(20_000));
    assert!(long.ends_with("é […]") && long.chars().count() < MOST_REASON + 20, "{}", long.len());
    let late = answer(End::TimedOut, b"", "", Duration::from_secs(3), true);
    assert!(matches!(late, Err(why) if why == "did not end within 3 s"));
}

/// The forms of Claude Code, Codex, Gemini CLI, Copilot, Cursor, Cline and Amp.
#[test]
fn the_forms_of_other_agents_decide() {
    let specific = |inner: &str| format!(r#"{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", {inner}}}}}"#);
    for (output, expected) in [
        (specific(r#""permissionDecision": "deny", "permissionDecisionReason": "no""#), "block: no"),
        (specific(r#""permissionDecision": "allow", "permissionDecisionReason": "fine""#), "proceed"),
        (specific(r#""permissionDecision": "ask", "permissionDecisionReason": "sure?""#), "ask: sure?"),
        (specific(r#""decision": {"behavior": "deny", "message": "no", "interrupt": true}"#), "block: no"),
        (specific(r#""decision": {"behavior": "allow"}"#), "proceed"),
        (r#"{"continue": false, "stopReason": "no"}"#.to_owned(), "block: no"),
        (r#"{"continue": true, "suppressOutput": true}"#.to_owned(), "proceed"),
        (r#"{"suppressOutput": true, "systemMessage": "checked"}"#.to_owned(), "proceed"),
        (r#"{"decision": null, "reason": ""}"#.to_owned(), "proceed"),
        (r#"{"permissionDecision": "deny", "permissionDecisionReason": "no"}"#.to_owned(), "block: no"),
        (r#"{"permission": "deny", "user_message": "You may not", "agent_message": "no"}"#.to_owned(), "block: no"),
        (r#"{"permission": "ask", "userMessage": "sure?"}"#.to_owned(), "ask: sure?"),
        (r#"{"cancel": true, "errorMessage": "no"}"#.to_owned(), "block: no"),
        (r#"{"cancel": false}"#.to_owned(), "proceed"),
        (r#"{"action": "reject", "message": "no"}"#.to_owned(), "block: no"),
        (r#"{"Decision": "Deny", "Reason": "no"}"#.to_owned(), "block: no"),
        // A refusal wins over every other member.
        (r#"{"decision": "allow", "continue": false, "stopReason": "no"}"#.to_owned(), "block: no"),
        (r#"{"decision": "deny", "decision": "allow", "reason": "no"}"#.to_owned(), "block: no"),
        (r#"{"decision": "deny", "reason": "no", "severity": 3}"#.to_owned(), "block: no"),
        ("{\"decision\": \"allow\"}\n{\"decision\": \"deny\", \"reason\": \"no\"}\n{}".to_owned(), "block: no"),
        (r#"[{"decision": "deny", "reason": "no"}]"#.to_owned(), "block: no"),
    ] {
        assert_eq!(of(0, &output, ""), expected, "{output}");
    }
}

#[test]
fn an_object_that_is_not_understood_whole_is_no_consent() {
    for output in [
        r#"{"decision": "maybe"}"#,
        r#"{"decision": ""}"#,
        r#"{"decision": true}"#,
        r#"{"decision": ["deny"]}"#,
        r#"{"decision": {"behavior": "deny"}}"#,
        r#"{"allow": false}"#,
        r#"{"allowed": false, "decision": "allow"}"#,
        r#"{"verdict": "deny"}"#,
        r#"{"result": {"decision": "deny"}}"#,
        r#"{"continue": "false"}"#,
        r#"{"continue": true, "stopReason": "no"}"#,
        r#"{"stopReason": "no"}"#,
        r#"{"reason": "no"}"#,
        r#"{"message": "no"}"#,
        r#"{"status": "fine"}"#,
        r#"{"async": true}"#,
        // A hook that would change the call has not agreed to this one.
        r#"{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "ls"}}}"#,
        r#"{"hookSpecificOutput": "deny"}"#,
        r#"{"hookSpecificOutput": {"hookSpecificOutput": {"permissionDecision": "deny"}}}"#,
        "{broken",
        "{'decision': 'deny'}",
        r#"{"decision": "deny", "reason": "no"#,
        r#"{"decision": "allow",}"#,
        r#""{\"decision\": \"deny\"}""#,
        "{} {broken}",
        r#"{"decision": "allow"} and not allowed"#,
        "false",
        "null",
        "0",
        "\"deny\"",
        "[\"deny\"]",
        "decision: deny",
        "permissionDecision=...",
        "BLOCKED by policy",
        "this is not permitted",
        "no",
        "d\0e\0n\0y",
    ] {
        let said = of(0, output, "");
        assert!(said.starts_with("fails: wrote "), "{output}: {said}");
        let shown: String = output.chars().take_while(|character| *character != '\0').take(12).collect();
        assert!(said.contains(&shown), "what was said is shown: {said}");
    }
}

#[test]
fn marks_lines_and_encodings_around_an_answer_change_nothing() {
    let utf_16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (answer, expected) in [
        (r#"{"decision": "block", "reason": "no"}"#, "block: no"),
        (r#"{"decision": "ask", "reason": "sure?"}"#, "ask: sure?"),
        (r#"{"decision": "allow"}"#, "proceed"),
    ] {
        for around in ["\u{feff}# ", "# \r\n", "```json\n#\n```", "\u{1b}[33m#\u{1b}[0m", "--- # ---"] {
            let output = around.replace('#', answer);
            let said = of(0, &output, "");
            assert!(said.starts_with(expected), "{output}: {said}");
            let said = of_bytes(0, &utf_16(&output), "");
            assert!(said.starts_with(expected), "{output} in UTF-16: {said}");
        }
        for around in ["loading the profile\n#\n", "#\nchecked in 3 ms\n"] {
            let said = of(0, &around.replace('#', answer), "");
            assert!(said.starts_with(expected), "{around}: {said}");
        }
    }
}

#[test]
fn words_decide_and_context_has_no_effect_and_is_told() {
    for (output, expected) in [
        ("allow\n", "proceed"),
        ("deny\r\n", "block: it gave no reason"),
        ("ask", "ask: it gave no reason"),
        ("```\n{}\n```", "proceed"),
        (
            r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "mind the gap"}}"#,
            "proceed, but it wants to add context (`mind the gap`), which hooks cannot do",
        ),
    ] {
        assert_eq!(of(0, output, ""), expected);
    }
}

/// Refusals in the words of people, and what programs report when they find nothing: no list of words tells them apart.
const TEXTS: [&str; 30] = [
    "checked, all is well",
    "ok",
    "I will not let you do this.",
    "You may not write to this folder",
    "Please ask the owner first",
    "Nope.",
    "Das ist hier nicht erlaubt",
    "permission required",
    "unsafe command",
    "ERROR: policy violation",
    "✗",
    "[]",
    "[[]]",
    "---",
    "()",
    "0 blocked, 0 denied",
    "All matched files use Prettier code style!",
    "[warn] src/a.ts",
    "src/a.ts 31ms (unchanged)",
    "✖ 2 problems (0 errors, 2 warnings)",
    "All checks passed!",
    "2 files left unchanged",
    "would reformat a.py",
    "Diff in src/main.rs:1:\n-fn main(){}\n+fn main() {}",
    "===== 3 passed, 1 deselected in 0.01s =====",
    r#"{"level": "info", "msg": "checked"}"#,
    r#"{"level": 30, "time": 1, "pid": 2, "hostname": "h", "msg": "refused 0 of 3"}"#,
    "You may not do this\n{}",
    "the report\n{\"systemMessage\": \"checked\"}",
    "no\n{}",
];

#[test]
fn text_blocks_a_call_with_the_way_to_agree_and_is_information_at_other_moments() {
    for output in TEXTS {
        let said = of(0, output, "");
        assert!(said.starts_with("fails: wrote ") && said.ends_with(CONSENT), "{output}: {said}");
        assert_eq!(at(false, 0, output.as_bytes(), ""), "proceed", "{output}");
    }
    // The reports of linters.
    for output in ["fn main() { x }", "{broken", r#"[{"filePath": "a.ts", "messages": [{"severity": 2}]}]"#, "BLOCKED"]
    {
        assert!(of(0, output, "").starts_with("fails: wrote "), "{output}");
        assert_eq!(at(false, 0, output.as_bytes(), ""), "proceed", "{output}");
    }
    for (output, expected) in [
        (r#"{"decision": "block", "reason": "it does not parse"}"#, "block: it does not parse"),
        (r#"{"hookSpecificOutput": {"updatedToolOutput": "x"}}"#, "fails: wrote "),
        (r#"{"additionalContext": "x"}"#, "proceed, but it wants to add context"),
    ] {
        let said = at(false, 0, format!("1 file fixed\n{output}").as_bytes(), "");
        assert!(said.starts_with(expected), "{output}: {said}");
    }
}

#[test]
fn lines_around_a_decision_change_it_only_if_they_may_refuse() {
    let allow = r#"{"decision": "allow"}"#;
    for (line, passes) in [
        ("loading the profile", true),
        ("0 blocked, 0 denied", true),
        ("nothing blocked", true),
        (r#"{"level": "info", "msg": "checked", "time": "12:00"}"#, true),
        (r#"{"severity": "INFO", "message": "3 rules read", "logger": "guard"}"#, true),
        ("0 Blocked.", true),
        ("3 checked, 0 blocked", true),
        (r#"{"level": "Debug", "event": "3 rules read", "pid": 7}"#, true),
        ("3 blocked", false),
        // Only a line that is a count is one.
        ("No: denied by policy 3", false),
        ("rule 0: blocked", false),
        ("0 blocked, 3 denied", false),
        ("0 allowed, 3 denied", false),
        ("0\nblocked", false),
        ("0 blocked by rule 3", false),
        ("0 denied: 3 blocked", false),
        ("policy 0 blocked", false),
        ("nothing; blocked", false),
        ("no, denied", false),
        ("0 blocked\ndenied by rule 3", false),
        ("must not run", false),
        // A log line of any other level may be a refusal.
        (r#"{"severity": "high", "message": "must not run"}"#, false),
        (r#"{"level": "warn", "msg": "checked"}"#, false),
        (r#"{"level": "fatal", "msg": "checked"}"#, false),
        (r#"{"level": 50, "msg": "checked"}"#, false),
        (r#"{"level": "", "msg": "checked"}"#, false),
        (r#"{"level": "info", "severity": "high", "msg": "checked"}"#, false),
        (r#"{"level": "info", "message": "must not run"}"#, false),
        (r#"{"level": "info", "msg": "denied by rule 0"}"#, false),
        ("BLOCKED", false),
        ("this is not allowed", false),
        ("false", false),
        (r#"{"level": "error", "msg": "denied by rule 3"}"#, false),
        (r#"{"level": "info", "msg": "checked", "allowed": false}"#, false),
        (r#"{"level": "info", "msg": "checked", "result": "no"}"#, false),
        (r#"{"level": "info"}"#, false),
    ] {
        for output in [format!("{line}\n{allow}\n"), format!("{allow}\n{line}\n")] {
            let said = of(0, &output, "");
            assert_eq!(said.starts_with("proceed"), passes, "{output}: {said}");
            assert!(passes || said.starts_with("fails: wrote "), "{output}: {said}");
            assert_eq!(of(0, &output.replace("allow\"", "deny\""), ""), "block: it gave no reason", "{output}");
        }
    }
}
