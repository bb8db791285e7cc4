//! Vectors of f32 behind one interface, so that each kernel is written once.
//!
//! A kernel is generic over [`Lanes`] and wholly inlined into a function that is compiled for the
//! instructions it uses ([`super::machine`]). Processors differ only in the one-line methods here; the same
//! kernels run on [`plain::Plain`] with any number of lanes, which is how widths that a machine lacks are
//! tested on it.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod math;
#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod pair;
pub mod plain;
pub mod wide;

/// A vector of `N` f32. A *word* is four bytes of an operand: one f32, or two bf16 (the lower index
/// in the lower half).
///
/// # Safety
/// Every method needs the instructions of its type; those with pointers need `N` readable (or
/// writable) elements there. Pointers need no alignment beyond their element's.
pub trait Lanes: Copy + 'static {
    /// Lanes of a vector; a power of two.
    const N: usize;
    /// Vectors side by side in a register block, at most 4.
    const NV: usize;
    /// Rows of a register block, at most [`super::product::ROWS`].
    const ROWS: usize = 6;
    type V: Copy;

    unsafe fn load(p: *const f32) -> Self::V;
    unsafe fn store(p: *mut f32, v: Self::V);
    unsafe fn splat(x: f32) -> Self::V;
    /// The word at `p` in every lane.
    ///
    /// # Safety
    /// One readable word.
    unsafe fn spread(p: *const f32) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the processor can.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// To the nearest integer, ties to even.
    unsafe fn round(v: Self::V) -> Self::V;
    /// `2^v` for whole `v` in -126..=127.
    unsafe fn power(v: Self::V) -> Self::V;
    unsafe fn total(v: Self::V) -> f32;
    unsafe fn largest(v: Self::V) -> f32;
    /// The first `n` (at most `N`) lanes of `v`, the rest from `other`.
    unsafe fn first(v: Self::V, n: usize, other: Self::V) -> Self::V;
    /// `acc` plus the products of pairs of bf16: the upper halves first, then the lower.
    unsafe fn dot2(acc: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// `N` rows of `N` words, `stride` apart, transposed.
    #[inline(always)]
    unsafe fn turn(from: *const f32, stride: usize, to: *mut f32) {
        for i in 0..Self::N {
            for j in 0..Self::N {
                // SAFETY: the caller's promise. As integers: a signalling NaN would be quieted.
                unsafe {
                    let word = from.cast::<u32>().add(i * stride + j).read();
                    to.cast::<u32>().add(j * Self::N + i).write(word);
                }
            }
        }
    }
    /// Prefetch the line at `p`, which need not be readable, into the L2 cache, if that helps.
    ///
    /// # Safety
    /// The instructions of the type.
    #[inline(always)]
    unsafe fn prefetch(_p: *const f32) {}
    /// `N` bf16, rounded to nearest, ties to even.
    unsafe fn store_low(p: *mut u16, v: Self::V);
    /// `N` words whose lower halves come from `a`, the upper from `b`.
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32);
}

/// The bf16 nearest to a finite `x`, ties to even.
#[inline(always)]
pub fn low(x: f32) -> u16 {
    let bits = x.to_bits();
    (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// Two bf16 as one word.
#[inline(always)]
pub fn word(first: f32, second: f32) -> f32 {
    f32::from_bits(u32::from(low(first)) | u32::from(low(second)) << 16)
}

#[cfg(test)]
mod tests;
