//! The system calls that no safe interface offers. This module is the only one of the crate with unsafe code.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// `struct mount_attr` of the kernel, which neither `libc` nor `rustix` has for every target.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

pub(crate) const READ_ONLY: u64 = 1;
pub(crate) const NO_SET_UID: u64 = 2;
pub(crate) const NO_DEVICES: u64 = 4;

/// Forks. None in the child. The caller makes sure that this process has one thread: another one could hold a lock, which nobody
/// would open in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: with one thread, the child is in the same state as this process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Gives this process namespaces of its own.
pub(crate) fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the only flag that could take descriptors from other threads is not set.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Sets attributes of the mounts below a descriptor.
pub(crate) fn restrict_mounts(tree: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a C string, and the size is that of the structure, which the kernel only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes all descriptors but the standard ones when another program starts. Fails on old kernels, where descriptors that
/// this process inherited stay open.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: it closes nothing now.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The number of the error that a system call without arguments gives; 0 if it succeeds.
#[cfg(test)]
pub(crate) fn error_of(number: i64) -> i32 {
    error_with(number, [0; 2])
}

/// The number of the error that a system call with these first arguments gives; 0 if it succeeds.
#[cfg(test)]
pub(crate) fn error_with(number: i64, [first, second]: [i64; 2]) -> i32 {
    // SAFETY: with zeros for all other arguments, none of the calls that the tests name reads or writes memory of this process:
    // their pointers are null, and their descriptors are of no use.
    let result = unsafe { libc::syscall(number, first, second, 0, 0, 0, 0) };
    if result >= 0 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or_default() }
}
