//! Creates the namespaces, and the first process in them.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets, UnshareFlags};

use crate::{Holds, Plan, SetupError, filter, loopback, rules, syscalls, view};

/// Where a call of [`enter`] returns.
#[derive(Debug)]
pub enum Side {
    /// In the first process of the namespaces. Everything that it starts is confined as it is.
    Inside(Holds),
    /// In the process that called.
    Outside(Outside),
}

/// The first process of the namespaces, as its parent sees it.
#[derive(Debug)]
pub struct Outside(Pid);

impl Outside {
    /// Waits for its end. Nothing that it started is left then.
    ///
    /// # Errors
    ///
    /// When it cannot be waited for.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            match rustix::process::waitpid(Some(self.0), WaitOptions::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// Forks into new namespaces, and confines the child as planned. The process must have one thread.
///
/// The child shares the descriptors of this process. It leads a session without a terminal, so that no program reaches the
/// user's. It ends with this process, by a signal.
///
/// # Errors
///
/// In either process, when a step fails. A child that fails must end: it is confined in part.
pub fn enter(plan: &Plan) -> Result<Side, SetupError> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let sockets = view::foreign_sockets()?;
    // On old kernels, a descriptor that the user's shell left open is inherited, as by any program.
    let _ = syscalls::close_on_exec();
    syscalls::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)
        .map_err(|error| SetupError::new("user namespace", error))?;
    // Without this, the kernel does not let ordinary users map groups.
    fs::write("/proc/self/setgroups", "deny").map_err(|error| SetupError::new("groups of the namespace", error))?;
    let (user, group) = (user.as_raw(), group.as_raw());
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))
        .map_err(|error| SetupError::new("user of the namespace", error))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
        .map_err(|error| SetupError::new("group of the namespace", error))?;
    // From now on nobody without capabilities can look into this process and its child: not at their memory, nor through
    // `/proc/PID/root`, `fd` or `environ`.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| SetupError::new("protection of the process", error))?;
    match syscalls::fork().map_err(|error| SetupError::new("first process of the namespace", error))? {
        Some(child) => Ok(Side::Outside(Outside(child))),
        None => confine(plan, &sockets).map(Side::Inside),
    }
}

fn confine(plan: &Plan, sockets: &[PathBuf]) -> Result<Holds, SetupError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| SetupError::new("end with the parent", error))?;
    rustix::process::setsid().map_err(|error| SetupError::new("session", error))?;
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    flags.set(UnshareFlags::NEWNET, !plan.network);
    syscalls::unshare(flags).map_err(|error| SetupError::new("namespaces of mounts and network", error))?;
    if !plan.network {
        loopback::bring_up().map_err(|error| SetupError::new("loopback device", error))?;
    }
    let own_processes = view::build(plan, sockets)?;
    std::env::set_current_dir(&plan.folder).map_err(|error| SetupError::at("folder", &plan.folder, error))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| SetupError::new("no new privileges", error))?;
    let landlock = rules::restrict(plan)?;
    drop_capabilities().map_err(|error| SetupError::new("capabilities", error))?;
    let seccomp = filter::apply()?;
    Ok(Holds { landlock, seccomp, own_processes, network: plan.network })
}

/// Gives up all capabilities for good, also those that a program of root would get.
fn drop_capabilities() -> rustix::io::Result<()> {
    let all = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(all)?;
    for capability in (0..64).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // Beyond the last one that the kernel knows.
            Err(rustix::io::Errno::INVAL) => break,
            result => result?,
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
