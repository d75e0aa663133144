//! What the end of a command means.

use hermes_plugin::process::End;

/// One line about the end of a command. `seconds` is its time limit, if it is known.
pub(crate) fn explained(command: &str, end: &End, seconds: Option<u64>) -> String {
    match end {
        End::Exited(0) => "[exit code 0]".to_owned(),
        End::Exited(code) => match meaning(&program(command), *code) {
            Some(meaning) => format!("[exit code {code}: {meaning}]"),
            None => format!("[exit code {code}]"),
        },
        End::Killed(number) => format!("[ended by {}]", signal(*number)),
        End::TimedOut => {
            let after = seconds.map(|seconds| format!(" after {seconds} s")).unwrap_or_default();
            format!(
                "[timed out{after}: the command and all that it started were ended. Give it a longer timeout, or run it in the \
                 background]"
            )
        }
        End::Stopped => "[stopped, with all that it started]".to_owned(),
        End::Other(name) => format!("[ended: {name}]"),
    }
}

/// What the sandbox denied, a line for each, after a line break.
pub(crate) fn denied(extra: &[(String, String)]) -> String {
    /// The key of the contract's README.
    const DENIED: &str = "sandbox-denied";
    let lines = extra.iter().filter(|(key, _)| key == DENIED);
    lines.map(|(_, line)| format!("\n[sandbox: {line}]")).collect()
}

/// What a code says: first for the program, then for all.
fn meaning(program: &str, code: i32) -> Option<String> {
    let own = match (program, code) {
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "git grep", 1) => "no line matched",
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg", 2) => "a wrong pattern or option, or a file that cannot be read",
        ("diff" | "cmp" | "git diff", 1) => "the inputs differ",
        ("diff" | "cmp", 2) => "the inputs cannot be compared",
        ("test" | "[" | "[[", 1) => "the condition is false",
        ("find", 1) => "parts of the tree cannot be read",
        ("which" | "command", 1) => "there is no such command",
        ("pytest" | "py.test", 1) => "tests failed",
        ("pytest" | "py.test", 2) => "interrupted, often by an error in a test file",
        ("pytest" | "py.test", 5) => "no tests were found",
        ("cargo", 101) => "the build or a test failed",
        ("make", 2) => "a rule failed",
        ("curl", 6) => "the host's name has no address",
        ("curl", 7) => "the host accepts no connection",
        ("curl", 22) => "the server answered with an HTTP error",
        ("curl", 28) => "the time limit of curl",
        ("curl", 35 | 60) => "the TLS connection failed",
        ("wget", 4) => "a failure of the network",
        ("wget", 8) => "the server answered with an error",
        ("ssh" | "scp", 255) => "the connection failed",
        (git, 128) if git == "git" || git.starts_with("git ") => "a fatal error",
        (git, 129) if git == "git" || git.starts_with("git ") => "wrong usage",
        _ => "",
    };
    if !own.is_empty() {
        return Some(format!("for {program}, {own}"));
    }
    match code {
        124 => Some("usually a time limit set with `timeout`".to_owned()),
        126 => Some("the file was found, but cannot be run".to_owned()),
        127 => Some("command not found: it is misspelt or not installed".to_owned()),
        129..=159 => Some(format!("ended by {}", signal(code - 128))),
        _ => None,
    }
}

/// A signal by name. The numbers are those that all systems share.
fn signal(number: i32) -> String {
    let (name, why) = match number {
        1 => ("SIGHUP", ""),
        2 => ("SIGINT", ""),
        3 => ("SIGQUIT", ""),
        4 => ("SIGILL", ""),
        6 => ("SIGABRT", ": the program gave up"),
        8 => ("SIGFPE", ""),
        9 => ("SIGKILL", ": something killed it, such as the system when memory ran out"),
        11 => ("SIGSEGV", ": the program crashed"),
        13 => ("SIGPIPE", ": nothing read its output any more"),
        14 => ("SIGALRM", ""),
        15 => ("SIGTERM", ": it was asked to end"),
        _ => return format!("signal {number}"),
    };
    format!("{name} (signal {number}){why}")
}

/// The program whose exit code is that of the command: usually the last one. Of git, with its subcommand.
fn program(command: &str) -> String {
    const IN_FRONT: &[&str] = &["sudo", "env", "time", "nice", "nohup", "exec", "!"];
    let is_setting = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '"', '\'']));
    let last = last_part(command);
    let mut words = last.split_whitespace().skip_while(|word| IN_FRONT.contains(word) || is_setting(word));
    let program = words.next().unwrap_or_default().trim_start_matches('(');
    let program = program.rsplit('/').next().unwrap_or_default();
    match (program, words.next()) {
        ("git", Some(subcommand)) => format!("git {subcommand}"),
        _ => program.to_owned(),
    }
}

/// What follows the last operator outside of quotes that separates commands.
fn last_part(command: &str) -> &str {
    let command = command.trim_end_matches(|c: char| c.is_whitespace() || ";)".contains(c));
    let (mut quote, mut escaped, mut start, mut before) = (None, false, 0, ' ');
    for (at, character) in command.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some('"') | None, '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            // A redirection, such as `2>&1`.
            (None, '&') if before == '>' => {}
            (None, '|' | ';' | '&' | '\n') => start = at + 1,
            _ => {}
        }
        before = character;
    }
    command[start..].trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_last_one_of_the_command() {
        for (command, expected) in [
            ("grep -q x file", "grep"),
            ("cd src && LANG=C /usr/bin/grep 'a|b; c' file 2>&1", "grep"),
            ("cat file | sort | diff - other;", "diff"),
            ("sudo env A=1 find . -name \"x && y\"", "find"),
            ("make\npytest -q", "pytest"),
            ("(cd a; git diff --exit-code)", "git diff"),
            ("echo \\; ls", "echo"),
            ("", ""),
        ] {
            assert_eq!(program(command), expected, "{command}");
        }
    }

    #[test]
    fn well_known_codes_are_explained() {
        for (command, code, expected) in [
            ("ls", 0, "[exit code 0]"),
            ("ls", 3, "[exit code 3]"),
            ("grep x y", 1, "[exit code 1: for grep, no line matched]"),
            ("python x.py", 1, "[exit code 1]"),
            ("diff a b", 1, "[exit code 1: for diff, the inputs differ]"),
            ("git push", 128, "[exit code 128: for git push, a fatal error]"),
            ("timeout 1 sleep 2", 124, "[exit code 124: usually a time limit set with `timeout`]"),
            ("./x", 126, "[exit code 126: the file was found, but cannot be run]"),
            ("nope", 127, "[exit code 127: command not found: it is misspelt or not installed]"),
            ("x | cat", 143, "[exit code 143: ended by SIGTERM (signal 15): it was asked to end]"),
            ("x", 148, "[exit code 148: ended by signal 20]"),
            ("x", 255, "[exit code 255]"),
        ] {
            assert_eq!(explained(command, &End::Exited(code), None), expected);
        }
    }

    #[test]
    fn other_ends_are_explained() {
        let end = |end: End| explained("x", &end, None);
        assert!(end(End::Killed(9)).starts_with("[ended by SIGKILL (signal 9): "));
        assert!(end(End::TimedOut).starts_with("[timed out: "));
        assert_eq!(end(End::Stopped), "[stopped, with all that it started]");
        assert_eq!(end(End::Other("frozen".to_owned())), "[ended: frozen]");
    }
}
