//! Matrix tiles (AMX): whether the processor has them and the system grants them to this process, and their
//! configuration.

/// Availability of matrix tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiles {
    /// The processor, or its virtual machine, has no tiles.
    Absent,
    /// The processor has tiles, but the system does not grant them to this process.
    Refused,
    /// Tiles may be used in all threads of this process and of its children.
    Granted,
}

/// Return the availability of tiles, determined once per process.
pub fn tiles() -> Tiles {
    static FOUND: std::sync::OnceLock<Tiles> = std::sync::OnceLock::new();
    *FOUND.get_or_init(ask)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(unused_unsafe)] // CPUID became a safe function in later versions of Rust
fn ask() -> Tiles {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    let lanes = crate::cpu::has!("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16");
    if crate::cpu::hidden("amx") {
        return Tiles::Absent;
    }
    // SAFETY: every processor of 64 bits has CPUID; leaves beyond the last are not looked at.
    let (last, first, seventh) = unsafe { (__cpuid(0).eax, __cpuid(1), __cpuid_count(7, 0)) };
    let saves = first.ecx >> 27 & 1 == 1;
    if last < 7 || !saves || !lanes || seventh.edx & (BF16 | TILE) != BF16 | TILE {
        return Tiles::Absent;
    }
    let (low, _high): (u32, u32);
    // SAFETY: XGETBV exists if the system saves extended state (OSXSAVE); it only reads.
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
    // SAFETY: this system call requests a permission and changes no memory; the two registers that it
    // overwrites are declared. Systems that do not know it return an error.
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

/// Return whether the granted tiles also multiply bytes.
pub fn byte_tiles() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[allow(unused_unsafe)]
    fn bytes() -> bool {
        const BYTES: u32 = 1 << 25;
        // SAFETY: a processor with tiles has this leaf of CPUID.
        unsafe { std::arch::x86_64::__cpuid_count(7, 0).edx & BYTES != 0 }
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    fn bytes() -> bool {
        false
    }
    tiles() == Tiles::Granted && bytes()
}

#[cfg(target_arch = "x86_64")]
mod on {
    use std::arch::asm;

    #[repr(C, align(64))]
    struct Config {
        palette: u8,
        start: u8,
        reserved: [u8; 14],
        bytes: [u16; 16],
        rows: [u8; 16],
    }

    /// All eight tiles have 16 rows of 64 bytes.
    static CONFIG: Config = Config {
        palette: 1,
        start: 0,
        reserved: [0; 14],
        bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    /// Tiles in use: eight of 16 rows of 64 bytes. Dropping this releases them, so that no thread keeps 8 KB
    /// of state for the system to save, and none is active if a process forks between two calls.
    pub struct On(());

    impl On {
        /// # Safety
        /// [`super::tiles`] must have returned [`super::Tiles::Granted`].
        #[inline(always)]
        pub unsafe fn begin() -> Self {
            // SAFETY: the caller promises that tiles are granted; the configuration is one of palette 1.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, preserves_flags, readonly))
            }
            Self(())
        }
    }

    impl Drop for On {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: an `On` only exists if tiles are granted.
            unsafe { asm!("tilerelease", options(nostack, preserves_flags)) }
        }
    }
}
#[cfg(target_arch = "x86_64")]
pub use on::On;
