//! The kernels compiled for each machine.

use super::attention::{attend, Distances, Heads, Scratch};
use super::block::{any_tile, Blocks, Next};
use super::norm::Norm;
use super::product::{Linear, Then};
#[cfg(target_arch = "x86_64")]
use super::simd::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::simd::avx512::{Avx512, Avx512Bf16};
#[cfg(target_arch = "aarch64")]
use super::simd::neon::Neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::simd::pair::Pair;
use super::simd::plain::Plain;
use super::simd::Lanes;

/// The kernels as separate functions, compiled for the instructions of `Self`.
pub trait Machine: Blocks {
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn linear<const LOW: bool>(layer: &Linear, rows: usize, input: &[f32], then: Then<'_>);
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn norm<const LOW: bool>(norm: &Norm, rows: usize, x: &mut [f32], low: &mut [f32]);
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn attend<const LOW: bool>(
        heads: Heads,
        length: usize,
        projected: &[f32],
        distances: Option<&Distances>,
        scratch: &mut Scratch,
        out: &mut [f32],
    );
}

macro_rules! machine {
    ([$($param:tt)*] $lanes:ty, $(#[$features:meta])*) => {
        impl<$($param)*> Blocks for $lanes {
            #[inline(always)]
            unsafe fn block<const LOW: bool>(
                rows: usize, vectors: usize, k: usize, a: *const f32, lda: usize,
                b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize, next: Next,
            ) {
                // Inlined into its four callers, its many tiles would be compiled four times.
                #[inline(never)]
                $(#[$features])*
                #[allow(clippy::too_many_arguments)]
                unsafe fn go<S: Lanes, const LOW: bool>(
                    rows: usize, vectors: usize, k: usize, a: *const f32, lda: usize,
                    b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize, next: Next,
                ) {
                    any_tile::<S, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc, next)
                }
                go::<Self, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc, next)
            }
        }
        impl<$($param)*> Machine for $lanes {
            unsafe fn linear<const LOW: bool>(layer: &Linear, rows: usize, input: &[f32], then: Then<'_>) {
                $(#[$features])*
                unsafe fn go<S: Machine, const LOW: bool>(
                    layer: &Linear, rows: usize, input: &[f32], then: Then<'_>,
                ) {
                    layer.run::<S, LOW>(rows, input, then)
                }
                go::<Self, LOW>(layer, rows, input, then)
            }
            unsafe fn norm<const LOW: bool>(norm: &Norm, rows: usize, x: &mut [f32], low: &mut [f32]) {
                $(#[$features])*
                unsafe fn go<S: Lanes, const LOW: bool>(
                    norm: &Norm, rows: usize, x: &mut [f32], low: &mut [f32],
                ) {
                    norm.run::<S, LOW>(rows, x, low)
                }
                go::<Self, LOW>(norm, rows, x, low)
            }
            unsafe fn attend<const LOW: bool>(
                heads: Heads,
                length: usize,
                projected: &[f32],
                distances: Option<&Distances>,
                scratch: &mut Scratch,
                out: &mut [f32],
            ) {
                $(#[$features])*
                unsafe fn go<S: Machine, const LOW: bool>(
                    heads: Heads,
                    length: usize,
                    projected: &[f32],
                    distances: Option<&Distances>,
                    scratch: &mut Scratch,
                    out: &mut [f32],
                ) {
                    attend::<S, LOW>(heads, length, projected, distances, scratch, out)
                }
                go::<Self, LOW>(heads, length, projected, distances, scratch, out)
            }
        }
    };
}

machine!([const N: usize, const NV: usize, const FUSED: bool] Plain<N, NV, FUSED>,);
#[cfg(target_arch = "x86_64")]
machine!([] Avx2, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
machine!([] Pair<Avx2>, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512Bf16, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]);
#[cfg(target_arch = "aarch64")]
machine!([] Neon,);
#[cfg(target_arch = "aarch64")]
machine!([] Pair<Pair<Neon>>,);
