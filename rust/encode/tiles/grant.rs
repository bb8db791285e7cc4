//! Whether this process may use tiles: the processor has them, and the system keeps their state.

/// What a processor with tiles and their system say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiles {
    /// The processor (or what is left of it in a virtual machine) has none.
    Absent,
    /// The processor has them, and the system does not grant them to this process.
    Refused,
    /// They may be used, in this and all threads of the process and its children.
    Granted,
}

/// Asked once in a process.
pub fn tiles() -> Tiles {
    static FOUND: std::sync::OnceLock<Tiles> = std::sync::OnceLock::new();
    *FOUND.get_or_init(ask)
}

/// Whether the tiles multiply bytes too, if they are granted.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // as below
pub fn of_bytes() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // SAFETY: every processor of 64 bits has CPUID.
    unsafe { __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx >> 25 & 1 == 1 }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(unused_unsafe)] // CPUID became a safe function in later versions of Rust
fn ask() -> Tiles {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    let lanes = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bf16");
    // SAFETY: every processor of 64 bits has CPUID; leaves beyond the last are not looked at.
    let (last, first, seventh) = unsafe { (__cpuid(0).eax, __cpuid(1), __cpuid_count(7, 0)) };
    let saves = first.ecx >> 27 & 1 == 1;
    if last < 7 || !saves || !lanes || seventh.edx & (BF16 | TILE) != BF16 | TILE {
        return Tiles::Absent;
    }
    let (low, _high): (u32, u32);
    // SAFETY: XGETBV is there where the system saves extended state (OSXSAVE); it only reads.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _high, options(nomem, nostack, preserves_flags));
    };
    // The tiles' configuration (17) and data (18).
    if low >> 17 & 3 != 3 {
        return Tiles::Refused;
    }
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let answer: i64;
    // SAFETY: this call of the system asks for permission and changes no memory; the system overwrites
    // the two registers that are given up. Kernels that do not know it answer with an error.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => answer,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") TILE_DATA,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    };
    if answer == 0 {
        Tiles::Granted
    } else {
        Tiles::Refused
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn ask() -> Tiles {
    Tiles::Absent
}
