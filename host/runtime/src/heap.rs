//! The heap of the process.

/// Lets all threads share one heap. Call it before the first thread starts.
///
/// glibc gives each thread a heap of its own, which grows by one page per system call: a short turn makes two hundred of
/// them. The shared heap grows in larger steps.
pub fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it sets a number of the allocator, and no other thread runs yet.
    unsafe {
        // It fails only for a number that is out of range.
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
