//! The errors of servers.

use std::borrow::Cow;
use std::time::Duration;

use hermes_conversation::one_line_within;
use hermes_diagnostic::{Diagnose, Fix, Parts};

use crate::limits;

hermes_diagnostic::codes! {
    /// The codes of MCP servers.
    pub mod codes {
        NOT_STARTED = "mcp.not-started", Category::Plugin, "the program of an MCP server cannot be started";
        NOT_REACHED = "mcp.not-reached", Category::Plugin, "the address of an MCP server cannot be reached";
        NOT_AUTHORIZED = "mcp.not-authorized", Category::Plugin, "an MCP server wants other credentials";
        PROTOCOL = "mcp.protocol", Category::Plugin, "an MCP server does not follow the protocol";
        TIMEOUT = "mcp.timeout", Category::Plugin, "an MCP server did not answer in time";
        ENDED = "mcp.ended", Category::Plugin, "an MCP server ended, or closed its connection";
        FLOOD = "mcp.flood", Category::Plugin, "an MCP server sent more than the limits allow";
        RESTING = "mcp.resting", Category::Plugin, "an MCP server failed a moment ago and is left alone";
        REFUSED = "mcp.refused", Category::Plugin, "an MCP server answered with an error";
    }
}

/// A failure of one server. `Display` gives the cause without the server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct McpError {
    /// The server.
    pub server: String,
    /// What happened.
    pub cause: Cause,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The program cannot be started.
    #[error("`{program}` cannot be started: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// The system's reason.
        why: String,
    },
    /// The sandbox has no folder for its temporary files, so that the program is not started.
    #[error("`{program}` is not started, because the sandbox needs a folder for temporary files: {why}")]
    NoScratch {
        /// The program.
        program: String,
        /// The folder for all of them.
        root: String,
        /// The system's reason.
        why: String,
    },
    /// The address cannot be reached, or answers with a failure.
    #[error("{address} cannot be used: {why}")]
    NotReached {
        /// The address without its query.
        address: String,
        /// The cause.
        why: String,
    },
    /// The address wants credentials.
    #[error("{address} refuses the request: it wants a login or other credentials")]
    NotAuthorized {
        /// The address without its query.
        address: String,
    },
    /// A login that does not allow what was asked.
    #[error("{address} refuses this: the login must also allow `{scope}`")]
    Scope {
        /// The address without its query.
        address: String,
        /// What the login must allow, in the words of the server.
        scope: String,
    },
    /// An answer that the protocol does not allow.
    #[error("it does not follow the protocol: {0}")]
    Protocol(String),
    /// No answer in time.
    #[error("it did not answer within {} ({what})", seconds(*.after))]
    Timeout {
        /// What was asked.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// A session does not wait longer for the list of its tools.
    #[error("it did not answer within {} (its list of tools)", seconds(*.after))]
    Slow {
        /// The limit.
        after: Duration,
    },
    /// The connection ended.
    #[error("{0}")]
    Ended(String),
    /// More than the limits allow.
    #[error("it sent too much: {0}")]
    Flood(String),
    /// It failed a moment ago.
    #[error("it is left alone for {}, because it failed: {why}", seconds(*.left))]
    Resting {
        /// Why it failed.
        why: String,
        /// How long it still rests.
        left: Duration,
    },
    /// The server answered with an error.
    #[error("{0}")]
    Refused(String),
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 && time.subsec_millis() != 0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

/// A text of a server as one short line.
pub(crate) fn line(text: &str) -> String {
    one_line_within(text, limits::ERROR)
}

impl Diagnose for McpError {
    fn parts(&self) -> Parts {
        let what = format!("the MCP server `{}` cannot be used", self.server);
        let test = format!("try `hermes mcp test {}`", self.server);
        let section = format!("`mcp_servers.{}`", self.server);
        let (code, fix) = match &self.cause {
            Cause::NotStarted { .. } => {
                (codes::NOT_STARTED, Fix::words(format!("install the program, or correct `command` in {section}")))
            }
            Cause::NoScratch { root, .. } => {
                let fix =
                    format!("remove what is at {root} if it is no folder, or make it a folder that you may write in");
                (codes::NOT_STARTED, Fix::words(fix))
            }
            Cause::NotReached { .. } => {
                (codes::NOT_REACHED, Fix::words(format!("start it, or correct `url` in {section}")))
            }
            Cause::NotAuthorized { .. } => {
                let login = format!("run `hermes mcp login {}`", self.server);
                (codes::NOT_AUTHORIZED, Fix::words(login).or(format!("set its key below `headers` in {section}")))
            }
            Cause::Scope { scope, .. } => {
                // It becomes a part of a command.
                let is_plain = |c: char| c.is_ascii_alphanumeric() || " :/._+-".contains(c);
                let fix = match scope.chars().all(is_plain) {
                    true => format!("run `hermes mcp login {} --scope '{scope}'`, and try again", self.server),
                    false => format!("run `hermes mcp login {}` with what it names as `--scope`", self.server),
                };
                (codes::NOT_AUTHORIZED, Fix::words(fix))
            }
            Cause::Protocol(_) => (codes::PROTOCOL, Fix::words("tell its authors")),
            Cause::Timeout { .. } => {
                let raise = format!("raise `timeout` or `connect_timeout` in {section}");
                (codes::TIMEOUT, Fix::words(test).or(raise))
            }
            Cause::Slow { .. } => {
                let once = format!("run `hermes mcp test {}` once: it waits longer", self.server);
                (codes::TIMEOUT, Fix::words(format!("{once}, and later sessions have the list at once")))
            }
            Cause::Ended(_) => (codes::ENDED, Fix::words(test)),
            Cause::Flood(_) => (codes::FLOOD, Fix::words("tell its authors")),
            Cause::Resting { .. } => (codes::RESTING, Fix::words("wait").or(test)),
            Cause::Refused(_) => (codes::REFUSED, Fix::words(test)),
        };
        (code, Cow::Owned(what), fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_error_with_cause_and_remedy() {
        let address = "https://example.com/mcp".to_owned();
        let causes = [
            Cause::NotStarted { program: "npx".to_owned(), why: "not found".to_owned() },
            Cause::NoScratch { program: "npx".to_owned(), root: "/h/cache/scratch".to_owned(), why: "x".to_owned() },
            Cause::NotReached { address: address.clone(), why: "connection refused".to_owned() },
            Cause::NotAuthorized { address: address.clone() },
            Cause::Scope { address: address.clone(), scope: "notes:read notes:write".to_owned() },
            Cause::Scope { address, scope: "a'; rm -rf ~".to_owned() },
            Cause::Protocol("an answer without a result".to_owned()),
            Cause::Timeout { what: "connecting".to_owned(), after: Duration::from_millis(1500) },
            Cause::Ended("it ended with exit code 1".to_owned()),
            Cause::Slow { after: Duration::from_secs(5) },
            Cause::Flood("2000 messages".to_owned()),
            Cause::Resting { why: "it ended".to_owned(), left: Duration::from_secs(2) },
            Cause::Refused("no such tool".to_owned()),
        ];
        let errors = causes.map(|cause| McpError { server: "fs".to_owned(), cause }.diagnose());
        assert_eq!(hermes_diagnostic::gaps(codes::ALL, &errors), Vec::<String>::new());
        assert_eq!(
            errors[7].to_string(),
            "the MCP server `fs` cannot be used: it did not answer within 1.5 s (connecting); try `hermes mcp test fs`, or \
             raise `timeout` or `connect_timeout` in `mcp_servers.fs`"
        );
        let fixes = [&errors[4], &errors[5]].map(|error| error.to_string());
        assert!(fixes[0].contains("`hermes mcp login fs --scope 'notes:read notes:write'`"), "{fixes:?}");
        assert!(!fixes[1].contains("--scope '"), "{fixes:?}");
    }
}
