//! Lines that hide a command from a rule, and a comparison with the shell itself.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::super::pattern::{Pattern, cover};
use super::*;

fn allows(rule: &str, text: &str) -> bool {
    let rules: Vec<Pattern> = vec![rule.parse().unwrap()];
    Line::read(text).is_ok_and(|line| cover(rules.iter(), &line))
}

#[test]
fn no_second_command_hides_behind_an_allowed_one() {
    for text in [
        "git status; rm x",
        "git status && rm x",
        "git status || rm x",
        "git status | rm x",
        "git status & rm x",
        "git status\nrm x",
        "git status\r\nrm x",
        "git status $(rm x)",
        "git status `rm x`",
        "git status \"$(rm x)\"",
        "git status <(rm x)",
        "git status > x",
        "git status >> x",
        "git status 2> x",
        "git status &> x",
        "git status >& x",
        "git status > /dev/null/../x",
        "git status > \"/dev/nul\"l x > y",
        "A=1 git status",
        "PATH=. git status",
        "git status ${x:=y}",
        "git status ${x@P}",
        "git status $((a[$(rm x)]))",
        "git status $[a[$(rm x)]]",
        "git -c core.fsmonitor='rm x' status",
        "git --exec-path=. status",
        "./git status",
        "/tmp/git status",
        "g*t status",
        "$g status",
        "git statusx",
        "git $x",
        "git() { rm x; }; git status",
        "function git { rm x; }; git status",
        "alias git=rm; git status",
        "if git status; then rm x; fi",
        "! git status",
        "time git status",
        "coproc git status",
        "{ git status; }",
        "git status <<EOF\n$(rm x)\nEOF",
        "git status # \nrm x",
        "git status \\\n; rm x",
        "git status {a,b}",
        "git status 'a' \"b\" ; 'r'm x",
        "sudo git status",
        "env git status",
        "eval git status",
        "git status 'unclosed",
    ] {
        assert!(!allows("git status*", text), "{text}");
    }
}

#[test]
fn no_builtin_evaluates_text_or_steers_the_commands_behind_it() {
    let marker = "a[$(touch m)]";
    for (rule, text) in [
        ("printf *", "printf -v 'a[$(touch m)]' x"),
        ("printf *", "printf -v PATH ."),
        ("printf *", "printf 'x%n' PATH"),
        ("printf *", "printf '%2ln' PATH"),
        ("printf *", "printf *"),
        ("printf *", "printf -- -v* x"),
        ("printf *", "printf %d 'a[$(touch m)]'"),
        ("test *", "test -v 'a[$(touch m)]'"),
        ("test *", "test 'a[$(touch m)]' -eq 0"),
        ("test *", "test * = x"),
        ("[ *", "[ -v 'a[$(touch m)]' ]"),
        ("[ *", "[ -R 'a[$(touch m)]' ]"),
        ("command *", "command printf -v PATH ."),
        ("command *", "command -p printf -v PATH ."),
        ("cd *", "cd x; ./build"),
        ("set *", "set -a"),
        ("set *", "set -x"),
        ("exit *", "exit 'a[$(touch m)]'"),
        ("jobs *", "jobs -x touch m"),
    ] {
        assert!(!allows(rule, text), "{text}");
        let both: Vec<Pattern> = [rule, "./build*", "git status*"].map(|rule| rule.parse().unwrap()).into();
        let line = Line::read(&format!("{text}; git status")).unwrap();
        assert!(!cover(both.iter(), &line), "{text}");
    }
    for builtin in [
        ".",
        "alias",
        "bind",
        "builtin",
        "compgen",
        "complete",
        "declare",
        "enable",
        "eval",
        "exec",
        "export",
        "fc",
        "getopts",
        "hash",
        "let",
        "local",
        "mapfile",
        "read",
        "readarray",
        "readonly",
        "shift",
        "shopt",
        "source",
        "trap",
        "typeset",
        "ulimit",
        "unset",
        "wait",
    ] {
        assert!(!allows(&format!("{builtin} *"), &format!("{builtin} '{marker}'")), "{builtin}");
    }
    for (rule, text) in [
        ("printf *", "printf '%s: %d%%\\n' a 1"),
        ("printf *", "printf -- '-%5.2f\\n' 1"),
        ("test *", "test -f x"),
        ("[ *", "[ a -nt b ]"),
        ("set *", "set -euo pipefail"),
        ("command *", "command -v cargo"),
        ("exit *", "exit 1"),
        ("echo *", "echo '$(touch m)' *"),
        ("cd *", "cd x"),
    ] {
        assert!(allows(rule, text), "{text}");
    }
}

/// Builtins of bash that a rule for them does not cover do not run here; those that it covers run with hostile arguments.
#[test]
fn bash_runs_no_text_in_the_arguments_of_a_covered_builtin() {
    let listed = Command::new("bash").args(["-c", "compgen -b"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().count() > 50, "{listed}");
    let mut covered = 0;
    // `kill` would end this test.
    for builtin in listed.lines().filter(|builtin| *builtin != "kill") {
        for hostile in [
            "'a[$(touch m)]'",
            "-v 'a[$(touch m)]' x",
            "'a[$(touch m)]' -eq 0",
            "-C 'touch m' x",
            "-x touch m",
            "-p 'a[$(touch m)]'",
        ] {
            let folder = tempfile::tempdir().unwrap();
            for text in
                [format!("{builtin} {hostile}"), format!("{builtin} {hostile} ]"), format!("{builtin} '%d' {hostile}")]
            {
                if allows(&format!("{builtin} *"), &text) {
                    covered += 1;
                    let run = Command::new("bash")
                        .args(["-c", &text])
                        .current_dir(folder.path())
                        .stdin(Stdio::null())
                        .output();
                    run.unwrap();
                    assert!(!folder.path().join("m").exists(), "{text}");
                }
            }
        }
    }
    assert!(covered > 10, "{covered}");
}

/// Tokens that a hostile line is made of.
const TOKENS: &[&str] = &[
    "ok",
    "ok",
    "ok",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "(",
    ")",
    "{ ",
    "}",
    "'",
    "\"",
    "\\",
    "`",
    "$",
    "$(",
    "${",
    "x",
    "evil",
    "evil",
    "<",
    ">",
    "<<",
    "<<<",
    "2>&1",
    "#",
    "=",
    "A=1",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    "EOF",
    "\t",
    "\r",
    "if ",
    "then ",
    "fi",
    "$((",
    "))",
    "$'",
    "-",
    "+=",
    "@P",
    "function ",
    "()",
    "é",
    "\u{a0}",
    "/dev/null",
    "\u{b}",
];

/// Tokens of compound commands, quotes and expansions around a program that is denied.
const COMPOUND: &[&str] = &[
    "evil",
    "evil",
    "evil;",
    "\nevil\n",
    ";evil",
    " ",
    " ",
    " ",
    "\n",
    ";",
    ";;",
    ";&",
    "|",
    "&&",
    "case ",
    "case x in ",
    "case y in\n",
    " in ",
    "a)",
    "b|",
    "*)",
    "(",
    ")",
    "esac",
    "esac;",
    "[[ ",
    " ]]",
    " ]];",
    "-n ",
    "x",
    "a",
    "=",
    "==",
    "A=1 ",
    "B=(",
    "\"",
    "\"",
    "'",
    "'",
    "\\",
    "$'",
    "$\"",
    "$x",
    "\"$x\"",
    "$(",
    "`",
    "${x:-",
    "${x:-{",
    "${",
    "}",
    "{ ",
    "}",
    "; }",
    "<(",
    ">x ",
    "<<E\n",
    "\nE\n",
    "#",
    " #",
    "if ",
    "then ",
    "fi",
    "for ",
    "do ",
    "done",
    "time ",
    "! ",
    "function ",
    "f() ",
    "$((",
    "))",
    "[",
    "]",
    "&>",
    ";true;",
    "true ",
];

/// What a shell writes to standard error and standard output when it runs a line. Whatever is not found is reported, and with an empty
/// folder as its own and in PATH nothing is found. The last value is the number of files that the line wrote.
fn run(shell: &str, line: &str) -> (String, String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(format!("/bin/{shell}"))
        .args(["-c", line])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let [errors, written] = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (errors, written, std::fs::read_dir(folder.path()).unwrap().count())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// The reader decides about no line that bash reads in another way: where a rule for `ok` allows a line, bash runs nothing else.
    #[test]
    fn bash_runs_only_what_the_rule_names(tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..14)) {
        let text = format!("ok{}", tokens.concat());
        if allows("ok*", &text) {
            for shell in ["bash", "sh"] {
                let (errors, written, files) = run(shell, &text);
                let said = errors + &written;
                prop_assert!(!said.contains("evil:"), "{shell}: {text:?}: {said}");
                prop_assert!(!said.contains("x: "), "{shell}: {text:?}: {said}");
                prop_assert_eq!(files, 0, "{}: {:?} wrote a file", shell, text);
            }
        }
    }

    /// The reader finds what bash runs: a rule that denies `evil` stops every line in which bash looks for such a program.
    #[test]
    fn bash_runs_nothing_that_a_rule_does_not_find(tokens in prop::collection::vec(prop::sample::select(COMPOUND), 1..18)) {
        let text = tokens.concat();
        let rule: Pattern = "evil*".parse().unwrap();
        for (shell, line) in [("bash", Line::read_of_bash(&text)), ("sh", Line::read(&text))] {
            if !line.is_ok_and(|line| line.any_command(|words| rule.may_mean(words)) == Ok(false)) {
                continue;
            }
            let (errors, ..) = run(shell, &text);
            let runs = errors.lines().any(|line| line.contains(": evil: command not found") || line.contains(": evil: not found"));
            prop_assert!(!runs, "{shell}: {text:?}: {errors}");
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\n\t]{0,200}") {
        if let Ok(line) = Line::read(&text) {
            let _ = line.any_command(|_| false);
        }
    }
}

#[test]
fn deep_and_long_lines_end_quickly() {
    let begun = std::time::Instant::now();
    for text in [
        "((".repeat(2_000),
        "$((".repeat(2_000),
        "${".repeat(2_000),
        "`".repeat(10_001),
        "a $(".repeat(1_000),
        "sh -c '".repeat(500),
        format!("sh {}", "\"a b\" ".repeat(5_000)),
        format!("git {}", "-x ".repeat(20_000)),
    ] {
        if let Ok(line) = Line::read(&text) {
            let pattern = "git push*".parse::<Pattern>().unwrap();
            let _ = line.any_command(|words| pattern.may_mean(words));
        }
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(600));
}
