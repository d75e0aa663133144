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
];

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

/// Restricts this process. False on processors that the filter does not know.
pub(crate) fn apply() -> Result<bool, SetupError> {
    let Ok(target) = std::env::consts::ARCH.try_into() else { return Ok(false) };
    let failed = |error: seccompiler::BackendError| SetupError::new("seccomp", std::io::Error::other(error));
    let installed = |error: seccompiler::Error| SetupError::new("seccomp", std::io::Error::other(error));
    let number = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    let absent: BTreeMap<i64, Vec<SeccompRule>> = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    let filters = [(refused().map_err(failed)?, number(libc::EPERM)), (absent, number(libc::ENOSYS))];
    for (rules, action) in filters {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, target).map_err(failed)?;
        let program: BpfProgram = filter.try_into().map_err(failed)?;
        seccompiler::apply_filter(&without_second_table(program)).map_err(installed)?;
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

/// x86-64 has a second table of system calls (x32), with the same calls under other numbers. No program uses it, so all of it is
/// absent.
fn without_second_table(program: BpfProgram) -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const SECOND_TABLE: u32 = 0x4000_0000;
    if !cfg!(target_arch = "x86_64") {
        return program;
    }
    let answer = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut whole = vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: SECOND_TABLE },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: answer },
    ];
    whole.extend(program);
    whole
}
