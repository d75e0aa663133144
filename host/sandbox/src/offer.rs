//! What this machine offers to confine programs.

use serde::{Deserialize, Serialize};

/// What holds for a confined process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// The version of the kernel's Landlock interface; none without Landlock.
    pub landlock: Option<i32>,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// Whether `/proc` shows its own processes only.
    pub own_processes: bool,
    /// Whether it can use the network.
    pub network: bool,
}

/// What this machine offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offer {
    /// Programs can be confined.
    Confined(Holds),
    /// They cannot, for this reason.
    Nothing(String),
}

/// Enters a sandbox and finds out what holds in it. Call it in a process of its own with one thread.
#[cfg(target_os = "linux")]
pub fn probe(answer: impl FnOnce(&Offer)) {
    use crate::{Side, enter};

    let plan = crate::Plan { folder: "/".into(), ..crate::Plan::default() };
    match enter(&plan) {
        Ok(Side::Inside(holds)) => answer(&Offer::Confined(holds)),
        Ok(Side::Outside(child)) => drop(child.wait()),
        Err(error) => answer(&Offer::Nothing(reason(&error))),
    }
}

/// The error, and what the system says about its cause.
#[cfg(target_os = "linux")]
fn reason(error: &crate::SetupError) -> String {
    /// Settings of the kernel that forbid user namespaces, with the value that does.
    const SETTINGS: [(&str, &str, &str); 4] = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "`kernel.unprivileged_userns_clone` is 0"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor restricts user namespaces (`kernel.apparmor_restrict_unprivileged_userns` is 1)",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "`user.max_user_namespaces` is 0"),
        ("/proc/sys/user/max_pid_namespaces", "0", "`user.max_pid_namespaces` is 0"),
    ];
    let is_set =
        |(path, value, _): &&(&str, &str, &str)| std::fs::read_to_string(path).is_ok_and(|is| is.trim() == *value);
    match SETTINGS.iter().find(is_set) {
        Some((_, _, why)) => format!("{error}; {why}"),
        None if error.source.raw_os_error() == Some(libc::ENOSYS) => format!("{error}; it needs Linux 5.12 or later"),
        None if std::path::Path::new("/.dockerenv").exists() => format!("{error}; this container does not allow it"),
        None => error.to_string(),
    }
}
