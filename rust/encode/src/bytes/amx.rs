//! Products of bytes with tiles (AMX), a panel of 32 outputs by 32 rows at a time.

use super::dot::{Dot, Portable};
use super::{HALF_WORDS, PANEL, STEP};
use ketrag_base::tiles::On;
use std::arch::asm;

/// `tdpbusd`.
#[derive(Clone, Copy)]
pub struct Amx;

/// Bytes per line of weights.
const LINE: usize = 64;

// The vectors of the portable block, which is not used here.
impl Dot for Amx {
    type On = On;
    type I = [i32; 16];
    const N: usize = 16;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn on() -> On {
        On::begin()
    }
    #[inline(always)]
    unsafe fn zero() -> [i32; 16] {
        [0; 16]
    }
    #[inline(always)]
    unsafe fn load(p: *const i32) -> [i32; 16] {
        Portable::load(p)
    }
    #[inline(always)]
    unsafe fn spread(p: *const i32) -> [i32; 16] {
        Portable::spread(p)
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: [i32; 16]) {
        Portable::store(p, v)
    }
    #[inline(always)]
    unsafe fn dot(acc: [i32; 16], a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        Portable::dot(acc, a, b)
    }

    /// Tiles 0 to 3 are the sums, 4 and 5 the rows, 6 and 7 the weights.
    #[inline(always)]
    unsafe fn block(
        rows: usize,
        steps: usize,
        mut a: *const i32,
        stride: usize,
        mut b: *const i32,
        c: *mut i32,
    ) {
        let (bytes, line, half) = (stride * 4, PANEL * 4, steps * HALF_WORDS);
        // SAFETY: a tile's load reads 16 rows of 64 bytes and its store writes them, which the caller
        // guarantees to exist; prefetched addresses need not be readable.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nomem, nostack, preserves_flags)
            );
            for _ in 0..steps {
                if rows > 16 {
                    asm!(
                        "tileloadd tmm4, [{a} + {l}]", "tileloadd tmm6, [{b} + {s}]",
                        "tdpbusd tmm0, tmm4, tmm6",
                        "tileloadd tmm7, [{e} + {s}]",
                        "tdpbusd tmm1, tmm4, tmm7",
                        "tileloadd tmm5, [{d} + {l}]",
                        "tdpbusd tmm2, tmm5, tmm6",
                        "tdpbusd tmm3, tmm5, tmm7",
                        a = in(reg) a, d = in(reg) a.wrapping_add(16 * stride), b = in(reg) b, e = in(reg) b.wrapping_add(half),
                        l = in(reg) bytes, s = in(reg) LINE,
                        options(nostack, preserves_flags, readonly)
                    );
                } else {
                    asm!(
                        "tileloadd tmm4, [{a} + {l}]", "tileloadd tmm6, [{b} + {s}]",
                        "tdpbusd tmm0, tmm4, tmm6",
                        "tileloadd tmm7, [{e} + {s}]",
                        "tdpbusd tmm1, tmm4, tmm7",
                        a = in(reg) a, b = in(reg) b, e = in(reg) b.wrapping_add(half),
                        l = in(reg) bytes, s = in(reg) LINE,
                        options(nostack, preserves_flags, readonly)
                    );
                }
                a = a.wrapping_add(STEP);
                b = b.wrapping_add(HALF_WORDS);
            }
            asm!(
                "tilestored [{c} + {l}], tmm0", "tilestored [{c} + {l} + 64], tmm1",
                c = in(reg) c, l = in(reg) line, options(nostack, preserves_flags)
            );
            if rows > 16 {
                asm!(
                    "tilestored [{c} + {l}], tmm2", "tilestored [{c} + {l} + 64], tmm3",
                    c = in(reg) c.add(16 * PANEL), l = in(reg) line, options(nostack, preserves_flags)
                );
            }
        }
    }
}

// A tile of weights is 16 lines of 64 bytes, end to end.
const _: () = assert!(HALF_WORDS * 4 == 16 * LINE);
