//! Ends a process group if the host itself is killed.
//!
//! The guard is a shell that waits for its input to end. Only the host holds the other end of that pipe, so it ends
//! together with the host, however the host ends. Without a shell there is no guard, and a group outlives a killed host.
//! Only for programs without a supervisor.

use std::process::Stdio;

use tokio::process::{Child, Command};

use super::group::Group;

/// Waits without a command of its own: `read` and `kill` are part of the shell.
const SCRIPT: &str = r#"read -r _; kill -s KILL -- "-$1""#;

/// The guard of one group. Dropping it, once the group has ended, ends the guard without any signal to the group.
pub(super) struct Guard {
    _shell: Option<Child>,
}

impl Guard {
    pub(super) fn of(group: &Group) -> Self {
        let shell = group.leader().and_then(|leader| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT, "hermes-guard", &leader.to_string()]).env_clear().current_dir("/");
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
            // A Ctrl-C at the terminal must not end the guard before the program.
            #[cfg(unix)]
            command.process_group(0);
            let started = command.spawn();
            started.inspect_err(|error| tracing::warn!(%error, "a background program has no guard")).ok()
        });
        Self { _shell: shell }
    }
}
