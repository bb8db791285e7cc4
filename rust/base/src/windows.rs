//! Memory of the machine and of this process as Windows reports and limits it. Python's standard library has these
//! numbers for Unix only.

use std::ffi::c_void;
use std::mem::size_of;

type Handle = *mut c_void;

/// `MEMORYSTATUSEX`.
#[repr(C)]
#[derive(Default)]
struct MemoryStatus {
    length: u32,
    load: u32,
    total: u64,
    available: u64,
    page_file: [u64; 2],
    address_space: [u64; 3],
}

/// `PROCESS_MEMORY_COUNTERS`.
#[repr(C)]
#[derive(Default)]
struct Counters {
    length: u32,
    page_faults: u32,
    peak_working_set: usize,
    others: [usize; 7],
}

/// `JOBOBJECT_EXTENDED_LIMIT_INFORMATION`, with `JOBOBJECT_BASIC_LIMIT_INFORMATION` and `IO_COUNTERS` inlined.
#[repr(C)]
#[derive(Default)]
struct Limits {
    times: [i64; 2],
    flags: u32,
    working_set: [usize; 2],
    processes: u32,
    affinity: usize,
    classes: [u32; 2],
    counters: [u64; 6],
    process_memory: usize,
    job_memory: usize,
    peaks: [usize; 2],
}

/// `JobObjectExtendedLimitInformation`.
const EXTENDED_LIMITS: i32 = 9;
/// `JOB_OBJECT_LIMIT_PROCESS_MEMORY`.
const LIMIT_PROCESS_MEMORY: u32 = 0x100;

#[link(name = "kernel32")]
extern "system" {
    fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
    fn GetCurrentProcess() -> Handle;
    fn K32GetProcessMemoryInfo(process: Handle, counters: *mut Counters, length: u32) -> i32;
    fn CreateJobObjectW(attributes: *const c_void, name: *const u16) -> Handle;
    fn SetInformationJobObject(job: Handle, class: i32, limits: *const Limits, length: u32) -> i32;
    fn AssignProcessToJobObject(job: Handle, process: Handle) -> i32;
    fn CloseHandle(handle: Handle) -> i32;
}

/// Return the bytes of the machine's memory, and of those the available ones.
pub fn machine_memory() -> Option<(u64, u64)> {
    let mut status = MemoryStatus { length: size_of::<MemoryStatus>() as u32, ..Default::default() };
    // SAFETY: the structure has the layout of Windows, and its first field is its length.
    let known = unsafe { GlobalMemoryStatusEx(&mut status) } != 0;
    known.then_some((status.total, status.available))
}

/// Return the largest number of bytes that this process had in memory at once.
pub fn peak_memory() -> Option<u64> {
    let length = size_of::<Counters>() as u32;
    let mut counters = Counters { length, ..Default::default() };
    // SAFETY: the structure has the layout of Windows and the passed length.
    let known = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, length) } != 0;
    known.then_some(counters.peak_working_set as u64)
}

/// Limit the committed memory of this process; return whether Windows accepted it. It cannot be removed.
pub fn limit_memory(bytes: usize) -> bool {
    let limits = Limits { flags: LIMIT_PROCESS_MEMORY, process_memory: bytes, ..Default::default() };
    // SAFETY: the structure has the layout of Windows and the passed length, and a job without a name has no other
    // owner. The job ends with its last process, not with its handle.
    unsafe {
        let job = CreateJobObjectW(std::ptr::null(), std::ptr::null());
        if job.is_null() {
            return false;
        }
        let accepted = SetInformationJobObject(job, EXTENDED_LIMITS, &limits, size_of::<Limits>() as u32)
            != 0
            && AssignProcessToJobObject(job, GetCurrentProcess()) != 0;
        CloseHandle(job);
        accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn structures_have_the_sizes_of_windows() {
        assert_eq!([size_of::<MemoryStatus>(), size_of::<Counters>(), size_of::<Limits>()], [64, 72, 144]);
    }

    #[test]
    fn memory_is_known() {
        let (total, available) = machine_memory().unwrap();
        assert!(available > 0 && available <= total);
        let filled = vec![1u8; 64 << 20];
        assert!(std::hint::black_box(&filled).len() as u64 <= peak_memory().unwrap());
    }

    #[test]
    fn a_limit_is_accepted() {
        assert!(limit_memory(8 << 30));
    }
}
