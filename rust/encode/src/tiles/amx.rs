//! Hardware tiles (AMX), in inline assembly because the intrinsics are not stable.
//!
//! The compiler never uses tile registers, so they keep their content between pieces of assembly. On a signal
//! or context switch the system saves them.

use super::block::{Between, Tiles, STEP_WORDS};
use super::{PANEL, ROW, TILE};
use crate::simd::avx512::Avx512Bf16;
use ketrag_base::tiles::On;
use std::arch::asm;

/// Vector lanes used with the tiles: a processor with tiles has these.
pub type Amx = Avx512Bf16;

#[repr(align(64))]
struct Ones(#[allow(dead_code)] [u32; TILE * ROW]); // only the assembly reads it

/// A tile of ones.
static ONES: Ones = Ones([0x3f80_3f80; TILE * ROW]);

/// Bytes between rows of a panel.
const LINE: usize = ROW * 4;

impl Tiles for Amx {
    type On = On;

    #[inline(always)]
    unsafe fn on() -> On {
        On::begin()
    }

    /// Tiles 0 to 3 are the sums, 4 and 5 the rows, 6 and 7 the weights: four loads (8 cycles each) behind
    /// four products (16 cycles each).
    #[inline(always)]
    unsafe fn block<W: Between>(
        rows: usize,
        steps: usize,
        a: *const f32,
        a_step: usize,
        b: *const f32,
        c: *mut f32,
        c_stride: usize,
        work: &mut W,
    ) {
        let (mut a, mut b, line) = (a, b, c_stride * 4);
        // SAFETY: a tile's load reads 16 rows of 64 bytes and its store writes them; the caller
        // promises that they exist; `a` and `b` pass the last step's end only after it.
        unsafe {
            if rows > TILE {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    options(nomem, nostack, preserves_flags)
                );
                for k in 0..steps {
                    asm!(
                        "tileloadd tmm4, [{a} + {s}]", "tileloadd tmm6, [{b} + {s}]",
                        "tdpbf16ps tmm0, tmm4, tmm6",
                        "tileloadd tmm7, [{b} + {s} + 1024]",
                        "tdpbf16ps tmm1, tmm4, tmm7",
                        "tileloadd tmm5, [{a} + {s} + 1024]",
                        "tdpbf16ps tmm2, tmm5, tmm6",
                        "tdpbf16ps tmm3, tmm5, tmm7",
                        a = in(reg) a, b = in(reg) b, s = in(reg) LINE,
                        options(nostack, preserves_flags, readonly)
                    );
                    a = a.wrapping_add(a_step);
                    b = b.wrapping_add(STEP_WORDS);
                    work.step(k);
                }
                let below = c.add(TILE * c_stride);
                asm!(
                    "tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
                    "tilestored [{d} + {s}], tmm2", "tilestored [{d} + {s} + 64], tmm3",
                    c = in(reg) c, d = in(reg) below, s = in(reg) line,
                    options(nostack, preserves_flags)
                );
            } else {
                asm!("tilezero tmm0", "tilezero tmm1", options(nomem, nostack, preserves_flags));
                for k in 0..steps {
                    asm!(
                        "tileloadd tmm4, [{a} + {s}]", "tileloadd tmm6, [{b} + {s}]",
                        "tdpbf16ps tmm0, tmm4, tmm6",
                        "tileloadd tmm7, [{b} + {s} + 1024]",
                        "tdpbf16ps tmm1, tmm4, tmm7",
                        a = in(reg) a, b = in(reg) b, s = in(reg) LINE,
                        options(nostack, preserves_flags, readonly)
                    );
                    a = a.wrapping_add(a_step);
                    b = b.wrapping_add(STEP_WORDS);
                    work.step(k);
                }
                asm!(
                    "tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
                    c = in(reg) c, s = in(reg) line,
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    #[inline(always)]
    unsafe fn mix(
        _rows: usize,
        steps: usize,
        a: *const f32,
        a_step: usize,
        b: *const f32,
        c: *mut f32,
        totals: *mut f32,
    ) {
        let (mut a, mut b) = (a, b);
        // SAFETY: as in `block`.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tileloadd tmm7, [{o} + {s}]",
                o = in(reg) &raw const ONES, s = in(reg) LINE,
                options(nostack, preserves_flags, readonly)
            );
            for _ in 0..steps {
                asm!(
                    "tileloadd tmm4, [{a} + {s}]", "tileloadd tmm5, [{b} + {s}]",
                    "tileloadd tmm6, [{b} + {s} + 1024]",
                    "tdpbf16ps tmm2, tmm4, tmm7", "tdpbf16ps tmm0, tmm4, tmm5", "tdpbf16ps tmm1, tmm4, tmm6",
                    a = in(reg) a, b = in(reg) b, s = in(reg) LINE,
                    options(nostack, preserves_flags, readonly)
                );
                a = a.wrapping_add(a_step);
                b = b.wrapping_add(STEP_WORDS);
            }
            asm!(
                "tilestored [{t} + {s}], tmm2", "tilestored [{c} + {l}], tmm0", "tilestored [{c} + {l} + 64], tmm1",
                t = in(reg) totals, s = in(reg) LINE, c = in(reg) c, l = in(reg) PANEL * 4,
                options(nostack, preserves_flags)
            );
        }
    }
}
