//! Arithmetic of the tiles: in hardware, and with the same bits on vectors.
//!
//! `tdpbf16ps` adds to each sum the products of 16 pairs: those of the pairs' first elements by fused
//! multiplications and additions from zero, in order, those of the second elements likewise, then
//! `c + (first + second)`, all rounded to nearest. It flushes what is below the normal numbers; by the
//! rule of `simd::wide` nothing is.

use super::{PANEL, ROW, TILE};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::simd::pair::Pair;
use crate::simd::plain::PortableWide;
use crate::simd::wide::Wide;

/// Work of the vector units while the tiles are busy.
pub trait Between {
    /// # Safety
    /// The instructions of the machine that calls.
    unsafe fn step(&mut self, step: usize);
}

/// No work.
pub struct Idle;

impl Between for Idle {
    #[inline(always)]
    unsafe fn step(&mut self, _: usize) {}
}

/// Words of a tile.
pub const TILE_WORDS: usize = TILE * ROW;
/// Words of the weights of one step (32 inner columns) and panel: two tiles of 16 outputs.
pub const STEP_WORDS: usize = 2 * TILE_WORDS;

/// Products of tiles.
///
/// # Safety
/// The instructions of the type, and [`Tiles::on`] held around all other methods.
pub trait Tiles: Wide {
    /// While this value is held, this thread's tiles are configured.
    type On;
    unsafe fn on() -> Self::On;

    /// `c[r][j] = sum over k of a[r][k] * b[k][j]` for 1 to 32 rows and 32 columns, `steps` times 32
    /// inner columns. Calls `work` once for each step.
    /// `a_step` words apart; `b` has [`STEP_WORDS`] for each step; `c` has room for the rows, rounded up
    /// likewise, `c_stride` f32 apart.
    #[allow(clippy::too_many_arguments)]
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
        for r in 0..rows {
            for half in 0..2 {
                let sums = row::<Self>(steps, a.add(r * ROW), a_step, b.add(half * TILE_WORDS));
                Self::store(c.add(r * c_stride + half * 16), sums);
            }
        }
        for k in 0..steps {
            work.step(k);
        }
    }

    /// Like [`Tiles::block`] for at most 16 rows, without work, `c` with rows of 32; and the sums of the rows
    /// of `a` in `totals`, each 16 times.
    ///
    /// # Safety
    /// As [`Tiles::block`]; `totals` has room for 16 rows of 16.
    #[inline(always)]
    unsafe fn mix(
        rows: usize,
        steps: usize,
        a: *const f32,
        a_step: usize,
        b: *const f32,
        c: *mut f32,
        totals: *mut f32,
    ) {
        Self::block(rows, steps, a, a_step, b, c, PANEL, &mut Idle);
        let zero = Self::splat(0.0);
        for r in 0..rows {
            let mut total = zero;
            for k in 0..steps {
                let mut parts = (zero, zero);
                for p in 0..ROW {
                    let (first, second) = Self::widen(Self::spread(a.add(k * a_step + r * ROW + p)));
                    parts = (Self::add(parts.0, first), Self::add(parts.1, second));
                }
                total = Self::add(total, Self::add(parts.0, parts.1));
            }
            Self::store(totals.add(r * 16), total);
        }
    }
}

/// One row times 16 columns.
///
/// # Safety
/// As [`Tiles::block`].
#[inline(always)]
unsafe fn row<S: Wide>(steps: usize, a: *const f32, a_step: usize, b: *const f32) -> S::V {
    let zero = S::splat(0.0);
    let mut sum = zero;
    for k in 0..steps {
        let mut parts = (zero, zero);
        for p in 0..ROW {
            let x = S::widen(S::spread(a.add(k * a_step + p)));
            let w = S::widen(S::load(b.add(k * STEP_WORDS + p * 16)));
            parts = (S::fma(x.0, w.0, parts.0), S::fma(x.1, w.1, parts.1));
        }
        sum = S::add(sum, S::add(parts.0, parts.1));
    }
    sum
}

impl Tiles for PortableWide {
    type On = ();
    #[inline(always)]
    unsafe fn on() {}
}

#[cfg(target_arch = "aarch64")]
impl Tiles for Pair<Pair<crate::simd::neon::Neon>> {
    type On = ();
    #[inline(always)]
    unsafe fn on() {}
}

#[cfg(target_arch = "x86_64")]
impl Tiles for Pair<crate::simd::avx2::Avx2> {
    type On = ();
    #[inline(always)]
    unsafe fn on() {}
}

#[cfg(target_arch = "x86_64")]
impl Tiles for crate::simd::avx512::Avx512 {
    type On = ();
    #[inline(always)]
    unsafe fn on() {}
}
