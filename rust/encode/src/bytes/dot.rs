//! Sums of products of bytes: unsigned activations times signed weights, four to a word.

#[cfg(doc)]
use super::STEP_WORDS;
use super::{HALF_WORDS, PANEL, STEP};
use crate::simd::wide::Wide;

/// Maximum number of rows in a register block.
const ROWS: usize = 8;
/// Maximum number of rows of [`Dot::block`]. Buffers of rows are rounded up to a multiple of it.
pub const BLOCK: usize = 32;

/// The parameters that turn the sums of a group into values of a block: pointers to the first row and output.
#[derive(Clone, Copy)]
pub struct Scales {
    /// For each output: the scale of the group's weights, and the negated sum of the weights.
    pub scale: *const f32,
    pub weights: *const i32,
    /// For each row: the scale of the group's values, and their zero point.
    pub row_scale: *const f32,
    pub zero: *const i32,
    /// Values added to each output, in rows `stride` apart.
    pub so_far: *const f32,
    pub stride: usize,
}

impl Scales {
    /// From another row and output on.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    pub unsafe fn from(self, row: usize, output: usize) -> Self {
        Self {
            scale: self.scale.add(output),
            weights: self.weights.add(output),
            row_scale: self.row_scale.add(row),
            zero: self.zero.add(row),
            so_far: self.so_far.add(row * self.stride + output),
            ..self
        }
    }
}

/// How a processor multiplies bytes. Sums of four products, of two adjacent words each the lower or the upper
/// two, fit in 16 bits (see [`super::product`]), and all sums in 32 bits, so that all implementations have the
/// same results.
///
/// # Safety
/// Every method needs the instructions of its type, and pointers `N` readable or writable words.
pub trait Dot: Copy + 'static {
    /// This thread may multiply while this value exists.
    type On;
    /// A vector of `N` words.
    type I: Copy;
    const N: usize;
    /// Rows of a register block, of two vectors each; at most [`ROWS`].
    const ROWS: usize;

    unsafe fn on() -> Self::On;
    unsafe fn zero() -> Self::I;
    unsafe fn load(p: *const i32) -> Self::I;
    /// The word at `p` in every lane.
    unsafe fn spread(p: *const i32) -> Self::I;
    unsafe fn store(p: *mut i32, v: Self::I);
    /// `acc` plus in each lane the four products of unsigned `a` with signed `b`.
    unsafe fn dot(acc: Self::I, a: Self::I, b: Self::I) -> Self::I;
    /// `c[r][j]`, rows of [`PANEL`]: sums over `steps` times 64 inputs, for 1 to [`BLOCK`] rows.
    /// [`STEP`] words; `b` has [`STEP_WORDS`] for each step; `c` has room for [`BLOCK`] rows.
    #[inline(always)]
    unsafe fn block(rows: usize, steps: usize, a: *const i32, stride: usize, b: *const i32, c: *mut i32) {
        let count = rows.div_ceil(Self::ROWS);
        for from in (0..PANEL).step_by(2 * Self::N) {
            let place = |column: usize| column / 16 * steps * HALF_WORDS + column % 16;
            for i in 0..count {
                let (row, end) = (i * rows / count, (i + 1) * rows / count);
                // SAFETY: the caller's promise.
                unsafe {
                    let (a, c) = (a.add(row * stride), c.add(row * PANEL + from));
                    let b = [b.add(place(from)), b.add(place(from + Self::N))];
                    any_tile::<Self>(end - row, steps * STEP, a, stride, b, c);
                }
            }
        }
    }
    /// [`Dot::block`] for a group, whose sums are added as values: `total[r][j]`, rows of [`PANEL`]. `sums` is
    /// memory for the block.
    ///
    /// # Safety
    /// As [`Dot::block`], and the instructions of `S`; `of` has what it describes for all outputs and, rounded up
    /// to [`BLOCK`], rows, and may point to `total`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn group<S: Wide>(
        rows: usize,
        steps: usize,
        a: *const i32,
        stride: usize,
        b: *const i32,
        of: Scales,
        sums: *mut i32,
        total: *mut f32,
    ) {
        Self::block(rows, steps, a, stride, b, sums);
        for column in (0..PANEL).step_by(16) {
            let scale = S::load(of.scale.add(column));
            for r in 0..rows {
                let so_far = S::load(of.so_far.add(r * of.stride + column));
                let zero = of.zero.add(r).read();
                let row_scale = S::splat(of.row_scale.add(r).read());
                let sum = S::plus(sums.add(r * PANEL + column), of.weights.add(column), zero);
                S::store(total.add(r * PANEL + column), S::fma(sum, S::mul(scale, row_scale), so_far));
            }
        }
    }
}

/// A register block of `R` rows and two vectors. One word at a time: with four the compiler keeps sums in
/// memory.
///
/// # Safety
/// As [`Dot::block`].
#[inline(always)]
unsafe fn tile<D: Dot, const R: usize>(
    words: usize,
    mut a: *const i32,
    stride: usize,
    b: [*const i32; 2],
    c: *mut i32,
) {
    let mut sums = [[D::zero(); 2]; R];
    let (mut first, mut second) = (b[0], b[1]);
    for _ in 0..words {
        let columns = [D::load(first), D::load(second)];
        for r in 0..R {
            let x = D::spread(a.add(r * stride));
            sums[r][0] = D::dot(sums[r][0], x, columns[0]);
            sums[r][1] = D::dot(sums[r][1], x, columns[1]);
        }
        a = a.wrapping_add(1);
        first = first.wrapping_add(16);
        second = second.wrapping_add(16);
    }
    for r in 0..R {
        D::store(c.add(r * PANEL), sums[r][0]);
        D::store(c.add(r * PANEL + D::N), sums[r][1]);
    }
}

/// [`tile`] for a number of rows that is known at run time.
///
/// # Safety
/// As [`Dot::block`].
#[inline(always)]
unsafe fn any_tile<D: Dot>(
    rows: usize,
    words: usize,
    a: *const i32,
    stride: usize,
    b: [*const i32; 2],
    c: *mut i32,
) {
    macro_rules! go {
        ($($r:literal),*) => {
            match rows {
                $($r if $r <= D::ROWS => tile::<D, $r>(words, a, stride, b, c),)*
                _ => unreachable!("a block has at most {ROWS} rows"),
            }
        };
    }
    go!(1, 2, 3, 4, 5, 6, 7, 8)
}

/// The portable implementation, without special instructions.
#[derive(Clone, Copy)]
pub struct Portable;

impl Dot for Portable {
    type On = ();
    type I = [i32; 16];
    const N: usize = 16;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn on() {}
    #[inline(always)]
    unsafe fn zero() -> [i32; 16] {
        [0; 16]
    }
    #[inline(always)]
    unsafe fn load(p: *const i32) -> [i32; 16] {
        p.cast::<[i32; 16]>().read_unaligned()
    }
    #[inline(always)]
    unsafe fn spread(p: *const i32) -> [i32; 16] {
        [p.read(); 16]
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: [i32; 16]) {
        p.cast::<[i32; 16]>().write_unaligned(v)
    }
    #[inline(always)]
    unsafe fn dot(mut acc: [i32; 16], a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
        for i in 0..16 {
            for (x, w) in a[i].to_le_bytes().into_iter().zip(b[i].to_le_bytes()) {
                acc[i] += i32::from(x) * i32::from(w as i8);
            }
        }
        acc
    }
}
