//! The system calls that confined programs do not get: a second lock behind the namespaces.
//!
//! The filter refuses what could reach other processes, change the view of the file system, make a user namespace (which would
//! give back capabilities, and with them a large part of the kernel), or reach parts of the kernel that no build or test needs.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use crate::SetupError;

/// Refused with `EPERM`.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // Keys of the kernel.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Newer forms, which have the same number on every processor. `libc` does not know all of them.
    QUOTACTL_FD,
    STATMOUNT,
    LISTMOUNT,
    LSM_GET_SELF_ATTR,
    LSM_SET_SELF_ATTR,
    LSM_LIST_MODULES,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
];

const QUOTACTL_FD: i64 = 443;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const LSM_GET_SELF_ATTR: i64 = 459;
const LSM_SET_SELF_ATTR: i64 = 460;
const LSM_LIST_MODULES: i64 = 461;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;
/// The newest system call that these lists were written for (Linux 6.18). The effect of later system calls is unknown, so they
/// fail as on an older kernel.
const NEWEST: u32 = 469;

/// Refused with `ENOSYS`: programs have another way then. The flags of `clone3` cannot be checked, and `io_uring` does the work
/// of other system calls behind the filter.
const ABSENT: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Flags of `clone` that create namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Types text on a terminal, or commands the console.
const TERMINAL_REQUESTS: &[u64] = &[0x5412, 0x541C, 0x541D];

/// The families of sockets that stay. Others, such as `AF_VSOCK` to the host of a virtual machine, belong to no namespace or open
/// large parts of the kernel.
const FAMILIES: &[i32] = &[libc::AF_UNSPEC, libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Restricts this thread and what it starts. False on processors that the filter does not know.
pub(crate) fn apply() -> Result<bool, SetupError> {
    apply_up_to(NEWEST)
}

fn apply_up_to(newest: u32) -> Result<bool, SetupError> {
    let Ok(target) = std::env::consts::ARCH.try_into() else { return Ok(false) };
    let failed = |error: seccompiler::BackendError| SetupError::new("seccomp", std::io::Error::other(error));
    // The number of the error says whether this machine has no filters, or something ran out.
    let installed = |error: seccompiler::Error| {
        SetupError::new(
            "seccomp",
            match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                other => std::io::Error::other(other),
            },
        )
    };
    let number = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    let absent: BTreeMap<i64, Vec<SeccompRule>> = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    let filters = [(refused().map_err(failed)?, number(libc::EPERM)), (absent, number(libc::ENOSYS))];
    for (rules, action) in filters {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target).map_err(failed)?;
        let program: BpfProgram = filter.try_into().map_err(failed)?;
        seccompiler::apply_filter(&without_unknown(program, newest)).map_err(installed)?;
    }
    Ok(true)
}

fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let condition = |argument: u8, operation: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend([libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm].map(|call| (call, Vec::new())));
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clone.push(SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    let mut requests = Vec::new();
    for request in TERMINAL_REQUESTS {
        requests.push(SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, *request)?])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    let mut other_families = Vec::new();
    for family in FAMILIES {
        other_families.push(condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))?);
    }
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other_families)?]);
    Ok(rules)
}

/// Refuses numbers beyond the newest known one. x86-64 has a second table of system calls (x32), with the same calls under very high
/// numbers, which no program uses: all of it is absent, too.
fn without_unknown(program: BpfProgram, newest: u32) -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    let answer = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut whole = vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_GREATER, jt: 0, jf: 1, k: newest },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: answer },
    ];
    whole.extend(program);
    whole
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use crate::syscalls::{error_of, error_with};

    /// Asks the kernel in a thread of its own, which stays restricted.
    fn restricted<T: Send + 'static>(newest: u32, ask: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(move || {
            assert!(apply_up_to(newest).unwrap(), "the filter does not know this processor");
            ask()
        })
        .join()
        .unwrap()
    }

    #[test]
    fn every_number_beyond_the_newest_known_one_is_absent() {
        let second_table = [0, 39, 101, 165, 467].map(|number| 0x4000_0000 + number);
        let numbers: Vec<i64> = (i64::from(NEWEST) + 1..1_100)
            .chain(second_table)
            .chain([i64::from(i32::MAX), i64::from(u32::MAX)])
            .collect();
        let answers =
            restricted(NEWEST, move || numbers.iter().map(|number| (*number, error_of(*number))).collect::<Vec<_>>());
        for (number, error) in answers {
            assert_eq!(error, libc::ENOSYS, "{number}");
        }
        // This kernel knows the number, so only the filter can answer so. A thread needs none that high to end.
        assert_ne!(error_of(libc::SYS_openat2), libc::ENOSYS);
        let below = u32::try_from(libc::SYS_openat2 - 1).unwrap();
        let (high, low) = restricted(below, || (error_of(libc::SYS_openat2), error_of(libc::SYS_getppid)));
        assert_eq!((high, low), (libc::ENOSYS, 0));
    }

    #[test]
    fn every_refused_call_is_refused_whatever_its_arguments() {
        let answers = restricted(NEWEST, || REFUSED.iter().map(|call| (*call, error_of(*call))).collect::<Vec<_>>());
        for (call, error) in answers {
            assert_eq!(error, libc::EPERM, "{call}");
        }
        assert!(REFUSED.iter().chain(ABSENT).all(|call| *call <= i64::from(NEWEST)));
    }

    /// A newer kernel refuses to type on a terminal by itself, and no terminal is there in the other tests.
    #[test]
    fn requests_that_type_on_a_terminal_and_odd_families_of_sockets_are_refused() {
        const NO_FILE: i64 = -1;
        const WINDOW_SIZE: i64 = 0x5413;
        let (typed, size, families) = restricted(NEWEST, || {
            let request = |request: i64| error_with(libc::SYS_ioctl, [NO_FILE, request]);
            let socket = |family: i32| error_with(libc::SYS_socket, [family.into(), 0]);
            let families = [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_UNIX, libc::AF_INET].map(socket);
            (TERMINAL_REQUESTS.iter().map(|it| request(*it as i64)).collect::<Vec<_>>(), request(WINDOW_SIZE), families)
        });
        assert_eq!((typed, size), (vec![libc::EPERM; 3], libc::EBADF));
        assert_eq!(families.map(|error| error == libc::EPERM), [true, true, true, false, false]);
    }
}
