//! The priority of threads that nobody waits for.

/// The priority (nice) of such a thread.
#[cfg(target_os = "linux")]
const LOW: libc::c_int = 10;

/// Give this thread only the processor time that others leave, until it ends. On systems other than Linux, where
/// only whole processes have a priority, nothing changes.
pub fn lower() {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take and return numbers. On Linux the process of a priority is a thread.
    unsafe {
        let thread = libc::gettid() as libc::id_t;
        if libc::getpriority(libc::PRIO_PROCESS, thread) < LOW {
            libc::setpriority(libc::PRIO_PROCESS, thread, LOW); // an error leaves it as it is
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn only_this_thread_is_lowered() {
        // SAFETY: as above.
        let current = || unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t) };
        let before = current();
        let lowered = std::thread::spawn(move || {
            super::lower();
            current()
        });
        assert_eq!((lowered.join().unwrap(), current()), (before.max(super::LOW), before));
    }
}
