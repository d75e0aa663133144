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

/// The result of a probe, or why the probe failed. A failed probe says nothing about the machine.
pub type Answer = Result<Offer, String>;

/// Enters a sandbox and finds out what holds in it. Call it in a process of its own with one thread.
#[cfg(target_os = "linux")]
pub fn probe(answer: impl FnOnce(&Answer)) {
    use crate::{Side, enter};

    let plan = crate::Plan { folder: "/".into(), ..crate::Plan::default() };
    match enter(&plan) {
        Ok(Side::Inside(holds)) => answer(&Ok(Offer::Confined(holds))),
        Ok(Side::Outside(child)) => drop(child.wait()),
        Err(error) => {
            let (setting, why) = reason(&error);
            answer(&if is_of_the_machine(&error, setting) { Ok(Offer::Nothing(why)) } else { Err(why) });
        }
    }
}

/// Whether a step failed because of the machine itself, and not because of a temporary lack or fault. Unknown errors count as
/// temporary, because a machine that offers a sandbox must never count as one that does not.
#[cfg(target_os = "linux")]
fn is_of_the_machine(error: &crate::SetupError, setting: Option<&str>) -> bool {
    /// The kernel, its settings or a container do not permit it, or do not know it.
    const REFUSALS: [i32; 9] = [
        libc::EPERM,
        libc::EACCES,
        libc::ENOSYS,
        libc::EINVAL,
        libc::EOPNOTSUPP,
        libc::ENODEV,
        libc::ENOENT,
        libc::ENOTDIR,
        libc::EROFS,
    ];
    error.source.raw_os_error().is_some_and(|number| {
        REFUSALS.contains(&number)
            || (number == libc::ENOSPC
                && setting.is_some_and(|why| error.step.contains("namespace") && why.contains("namespaces` is 0")))
    })
}

/// Reasons beyond the step that failed.
const CHROOT: &str = "the kernel allows no user namespace in a chroot";
const OLD: &str = "it needs Linux 5.12 or later";
/// The step that installs the filter of system calls.
const SECCOMP: &str = "seccomp";

impl Offer {
    /// What the user can do if this machine offers nothing.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Confined(_) => "nothing is missing",
            Self::Nothing(why) if why.contains(CHROOT) => "start Hermes outside of the chroot",
            Self::Nothing(why) if why.starts_with(SECCOMP) => {
                "boot a kernel with filters of system calls (CONFIG_SECCOMP_FILTER), or let the container install them"
            }
            Self::Nothing(why) if why.ends_with(OLD) => {
                "boot Linux 5.12 or later, or let the container use its system calls for mounts"
            }
            Self::Nothing(why) if why.split(':').next().is_some_and(|step| step.contains("namespace")) => {
                "allow user namespaces for this program, as docs/use/sandbox.md says"
            }
            Self::Nothing(_) => "docs/use/sandbox.md says what the sandbox needs of the kernel and of a container",
        }
    }
}

/// The setting of the kernel that forbids it, if there is one, and the error with what the system says about its cause.
#[cfg(target_os = "linux")]
fn reason(error: &crate::SetupError) -> (Option<&'static str>, String) {
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
    let place = Place {
        setting: SETTINGS.iter().find(is_set).map(|(_, _, why)| *why),
        chroot: std::fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| is_chroot(&mounts)),
        container: std::path::Path::new("/.dockerenv").exists(),
    };
    (place.setting, place.explain(error))
}

/// What is known of the place that a process runs in.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
struct Place {
    setting: Option<&'static str>,
    chroot: bool,
    container: bool,
}

#[cfg(target_os = "linux")]
impl Place {
    fn explain(self, error: &crate::SetupError) -> String {
        let (is_of_namespaces, number) = (error.step.contains("namespace"), error.source.raw_os_error());
        let is_refused = matches!(number, Some(libc::EPERM | libc::EACCES));
        match self {
            Self { chroot: true, .. } if is_of_namespaces && is_refused => format!("{error}; {CHROOT}"),
            Self { setting: Some(why), .. } if error.step != SECCOMP && number != Some(libc::ENOSYS) => {
                format!("{error}; {why}")
            }
            _ if number == Some(libc::ENOSYS) && !is_of_namespaces && error.step != SECCOMP => {
                format!("{error}; {OLD}")
            }
            Self { container: true, .. } if is_refused => format!("{error}; this container does not allow it"),
            _ => error.to_string(),
        }
    }
}

/// Whether the root is a folder within a file system: then no mount that the process sees is at `/`.
#[cfg(target_os = "linux")]
fn is_chroot(mounts: &str) -> bool {
    !mounts.is_empty() && mounts.lines().all(|line| line.split(' ').nth(4) != Some("/"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io;

    use super::*;
    use crate::SetupError;

    #[test]
    fn each_step_that_fails_has_its_own_cause_and_remedy() {
        let nowhere = Place { setting: None, chroot: false, container: false };
        let (chroot, container) = (Place { chroot: true, ..nowhere }, Place { container: true, ..nowhere });
        let system = io::Error::from_raw_os_error;
        for (place, step, source, cause, remedy) in [
            (container, "user namespace", system(libc::EPERM), "; this container does not allow it", "user namespaces"),
            (container, "user namespace", system(libc::ENOSYS), "(os error 38)", "user namespaces"),
            (chroot, "user namespace", system(libc::EPERM), CHROOT, "outside of the chroot"),
            (container, "bind", system(libc::ENOSYS), OLD, "Linux 5.12"),
            (
                container,
                "private mounts",
                system(libc::EPERM),
                "; this container does not allow it",
                "docs/use/sandbox.md says what",
            ),
            (
                container,
                SECCOMP,
                io::Error::other("Function not implemented"),
                "seccomp: Function not implemented",
                "CONFIG_SECCOMP",
            ),
        ] {
            let why = place.explain(&SetupError::new(step, source));
            assert!(why.ends_with(cause), "{why}");
            let offered = Offer::Nothing(why).remedy();
            assert!(offered.contains(remedy), "{cause}: {offered}");
        }
        let restricted = Place { setting: Some("`user.max_user_namespaces` is 0"), ..container };
        let why = restricted.explain(&SetupError::new("user namespace", system(libc::ENOSPC)));
        assert!(why.ends_with("`user.max_user_namespaces` is 0"), "{why}");
    }

    #[test]
    fn what_runs_out_at_a_moment_says_nothing_about_the_machine() {
        let zero = Some("`user.max_user_namespaces` is 0");
        for (step, source, setting, is_of_the_machine) in [
            ("user namespace", io::Error::from_raw_os_error(libc::EPERM), None, true),
            ("bind", io::Error::from_raw_os_error(libc::ENOSYS), None, true),
            (SECCOMP, io::Error::from_raw_os_error(libc::EINVAL), None, true),
            ("user namespace", io::Error::from_raw_os_error(libc::ENOSPC), zero, true),
            ("user namespace", io::Error::from_raw_os_error(libc::ENOSPC), None, false),
            ("empty folder", io::Error::from_raw_os_error(libc::ENOSPC), zero, false),
            ("first process of the namespace", io::Error::from_raw_os_error(libc::EAGAIN), None, false),
            ("private mounts", io::Error::from_raw_os_error(libc::ENOMEM), None, false),
            ("devices", io::Error::from_raw_os_error(libc::EMFILE), None, false),
            ("devices", io::Error::from_raw_os_error(libc::EIO), None, false),
            ("Landlock", io::Error::other("unknown"), None, false),
        ] {
            let error = SetupError::new(step, source);
            assert_eq!(super::is_of_the_machine(&error, setting), is_of_the_machine, "{error}");
        }
    }

    #[test]
    fn a_root_without_a_mount_is_a_chroot() {
        assert!(is_chroot("22 1 0:20 / /proc rw - proc proc rw\n"));
        assert!(!is_chroot("21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 0:20 / /proc rw - proc proc rw\n"));
    }
}
