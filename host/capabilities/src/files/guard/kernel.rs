//! File systems whose files are interfaces of the kernel. They show the variables and the memory of processes, and change the
//! system when they are written.

/// Whether an open file or folder belongs to such a file system.
#[cfg(target_os = "linux")]
pub(in crate::files) fn is_kernel_interface(file: impl std::os::fd::AsFd) -> bool {
    /// From `linux/magic.h`.
    const MAGIC: &[u32] = &[
        0x9fa0,      // procfs
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x6265_6570, // configfs
        0xcafe_4a11, // bpf
        0x27_e0eb,   // cgroup
        0x6367_7270, // cgroup 2
        0xf97c_ff8c, // selinuxfs
        0x4341_5d53, // smackfs
        0xde5e_81e4, // efivarfs
        0x6165_676c, // pstore
        0x4249_4e4d, // binfmt_misc
        0x6e73_6673, // nsfs
    ];
    // If the type is unknown, the file stays usable: a folder that cannot be asked is not one of these.
    rustix::fs::fstatfs(file).is_ok_and(|about| {
        // The width of the type differs by platform; the numbers have 32 bits.
        let kind = i128::from(about.f_type) & 0xffff_ffff;
        MAGIC.iter().any(|magic| i128::from(*magic) == kind)
    })
}

#[cfg(not(target_os = "linux"))]
pub(in crate::files) fn is_kernel_interface(_: impl std::os::fd::AsFd) -> bool {
    false
}
