//! Finds out what a confined program was probably denied. The kernel tells only the program, which often prints it.

/// The denials that a program's output reports, each with the rule and a remedy, and at most one line for each rule. If the
/// command succeeded, denied system calls are not reported: its output may be about something else.
pub(in crate::process) fn denials(outputs: &[&[u8]], network: bool, succeeded: bool) -> Vec<String> {
    const NETWORK: Marks = Marks {
        messages: &[
            "Network is unreachable",
            "network is unreachable",
            "Couldn't connect to server",
            "Could not resolve host",
            "could not resolve host",
            "Couldn't resolve host",
            "Temporary failure in name resolution",
            "Temporary failure resolving",
            "Name or service not known",
            "failed to lookup address information",
            "No address associated with hostname",
        ],
        parts: &["ENETUNREACH", "EAI_AGAIN", "getaddrinfo ENOTFOUND", ": bad address '", "dial tcp: lookup"],
    };
    const WRITE: Marks = Marks {
        messages: &["Read-only file system", "read-only file system", "Device or resource busy"],
        parts: &["EROFS"],
    };
    const CALL: Marks = Marks { messages: &["Operation not permitted"], parts: &[] };

    let mut found = Vec::new();
    let quoted = |marks: &Marks| outputs.iter().find_map(|output| line_with(output, marks));
    if let Some(line) = quoted(&WRITE) {
        found.push(format!(
            "a write was denied (\"{line}\"): programs write only in the workspace and in temporary folders, and not in \
             `.git/config`, `.git/hooks` and files that start programs or instruct agents. The user can add a folder with \
             `sandbox.writable` in config.yaml; tools such as `write_file` change single files with the user's approval"
        ));
    }
    let is_local = |line: &String| ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| line.contains(name));
    if let Some(line) = quoted(&NETWORK).filter(|line| !network && !is_local(line)) {
        found.push(format!(
            "the network is off (\"{line}\"): the user can turn it on with `sandbox.network: true` in config.yaml"
        ));
    }
    if let Some(line) = quoted(&CALL).filter(|_| found.is_empty() && !succeeded) {
        found.push(format!(
            "a system call was denied (\"{line}\"): tracing, mounts, namespaces and other users' files are out of reach. The \
             user can run the command outside of Hermes, or turn the sandbox off with `sandbox.mode: off` in config.yaml"
        ));
    }
    found
}

/// The signs of a line about a denial.
struct Marks {
    /// Messages of the system. They count only without a further word beside them, since prose about the message has some.
    messages: &'static [&'static str],
    /// Parts of a line that have no other meaning.
    parts: &'static [&'static str],
}

impl Marks {
    fn are_in(&self, line: &str) -> bool {
        let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let is_message = |message: &&str| {
            line.match_indices(*message).any(|(at, _)| {
                let (before, after) = (line[..at].trim_end(), line[at + message.len()..].trim_start());
                !is_word(before.chars().next_back()) && !is_word(after.chars().next())
            })
        };
        self.messages.iter().any(is_message) || self.parts.iter().any(|part| line.contains(part))
    }
}

/// The first line with one of the marks, on one line without what a terminal would obey, and shortened.
fn line_with(output: &[u8], marks: &Marks) -> Option<String> {
    const LONGEST: usize = 160;
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find(|line| marks.are_in(line))?;
    let shown: String = line.trim().chars().filter(|character| !character.is_control()).collect();
    Some(match shown.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &shown[..at]),
        None => shown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denials_of(output: &str, network: bool) -> Vec<String> {
        denials(&[output.as_bytes()], network, false)
    }

    #[test]
    fn words_about_a_denial_are_no_denial() {
        for output in [
            "chapter 3: ptrace explained",
            "error: bad address in table",
            "a test: Read-only file system handling",
            "The error Operation not permitted means that",
            "unshare: a program of util-linux",
        ] {
            assert_eq!(denials_of(output, false), Vec::<String>::new(), "{output}");
        }
        let grep: &[u8] = b"errno.txt:1: Operation not permitted";
        assert_eq!(denials(&[grep], false, true), Vec::<String>::new());
    }

    #[test]
    fn messages_of_usual_programs_are_recognised() {
        for output in [
            "OSError: [Errno 30] Read-only file system: '/etc/x'",
            "Error: EROFS: read-only file system, open '/etc/x'",
            "cannot create /etc/x: Read-only file system (os error 30)",
            "mv: cannot move '.git' to 'x': Device or resource busy",
            "strace: PTRACE_TRACEME: Operation not permitted",
            "[Errno 1] Operation not permitted: 'x'",
            "wget: bad address 'example.org'",
            "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
            "npm error request to https://example.org failed, reason: getaddrinfo EAI_AGAIN example.org",
            "dial tcp 192.0.2.1:443: connect: network is unreachable",
            "connect failed: Network is unreachable.",
            "(Caused by X('[Errno -3] Temporary failure in name resolution'))",
        ] {
            assert_eq!(denials_of(output, false).len(), 1, "{output}");
        }
    }

    #[test]
    fn a_denied_write_names_the_line_and_the_key() {
        let found = denials_of("ok\ntouch: cannot touch '/etc/x': Read-only file system\n", false);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("cannot touch '/etc/x'") && found[0].contains("`sandbox.writable`"), "{}", found[0]);
    }

    #[test]
    fn a_failed_lookup_counts_only_without_a_network() {
        let output = "curl: (6) Could not resolve host: example.org";
        assert!(denials_of(output, false)[0].contains("`sandbox.network: true`"));
        assert_eq!(denials_of(output, true), Vec::<String>::new());
    }

    #[test]
    fn a_quoted_line_is_short_and_cannot_control_a_terminal() {
        let found = denials_of(&format!("\u{1b}[2J{}: Operation not permitted", "x".repeat(500)), false);
        assert!(!found[0].contains('\u{1b}') && found[0].len() < 600, "{}", found[0]);
        assert_eq!(denials_of("all is well", false), Vec::<String>::new());
    }
}
