//! The kernels compiled for each machine, and the choice between them at run time.

use super::attention::{attend, Distances, Heads, Scratch};
use super::norm::Norm;
use super::product::{any_tile, Layout, Linear, Then};
#[cfg(target_arch = "x86_64")]
use super::simd::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::simd::avx512::{Avx512, Avx512Bf16};
use super::simd::plain::Plain;
use super::simd::Lanes;
use crate::error::{Error, Result};

/// The kernels as functions of their own, compiled for the instructions of `Self`.
pub trait Machine: Lanes {
    /// A register block of 1 to [`super::product::ROWS`] rows and 1 to `Self::NV` vectors:
    /// `c[r][v] = sum over i < k of a[r][i] * b[i][v]`.
    ///
    /// # Safety
    /// The instructions of `Self`; `k` words in each of `rows` rows of `a` (stride `lda`), vectors
    /// at `b + i * ks + v * vs`, and room for `rows` rows (stride `ldc`) at `c`.
    #[allow(clippy::too_many_arguments)]
    unsafe fn block<const LOW: bool>(
        rows: usize,
        vectors: usize,
        k: usize,
        a: *const f32,
        lda: usize,
        b: *const f32,
        vs: usize,
        ks: usize,
        c: *mut f32,
        ldc: usize,
    );
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
        impl<$($param)*> Machine for $lanes {
            #[inline(always)]
            unsafe fn block<const LOW: bool>(
                rows: usize, vectors: usize, k: usize, a: *const f32, lda: usize,
                b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize,
            ) {
                // Inlined at its four callers, its many tiles would be compiled four times.
                #[inline(never)]
                $(#[$features])*
                #[allow(clippy::too_many_arguments)]
                unsafe fn go<S: Lanes, const LOW: bool>(
                    rows: usize, vectors: usize, k: usize, a: *const f32, lda: usize,
                    b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize,
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { any_tile::<S, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc) }
                }
                // SAFETY: the caller's promise.
                unsafe { go::<Self, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc) }
            }
            unsafe fn linear<const LOW: bool>(layer: &Linear, rows: usize, input: &[f32], then: Then<'_>) {
                $(#[$features])*
                unsafe fn go<S: Machine, const LOW: bool>(
                    layer: &Linear, rows: usize, input: &[f32], then: Then<'_>,
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { layer.run::<S, LOW>(rows, input, then) }
                }
                // SAFETY: the caller's promise.
                unsafe { go::<Self, LOW>(layer, rows, input, then) }
            }
            unsafe fn norm<const LOW: bool>(norm: &Norm, rows: usize, x: &mut [f32], low: &mut [f32]) {
                $(#[$features])*
                unsafe fn go<S: Lanes, const LOW: bool>(
                    norm: &Norm, rows: usize, x: &mut [f32], low: &mut [f32],
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { norm.run::<S, LOW>(rows, x, low) }
                }
                // SAFETY: the caller's promise.
                unsafe { go::<Self, LOW>(norm, rows, x, low) }
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
                    // SAFETY: the caller's promise.
                    unsafe { attend::<S, LOW>(heads, length, projected, distances, scratch, out) }
                }
                // SAFETY: the caller's promise.
                unsafe { go::<Self, LOW>(heads, length, projected, distances, scratch, out) }
            }
        }
    };
}

machine!([const N: usize, const NV: usize] Plain<N, NV>,);
#[cfg(target_arch = "x86_64")]
machine!([] Avx2, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512Bf16, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]);

/// Which instructions to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    Portable,
    Avx2,
    Avx512,
    /// Only for bf16.
    Avx512Bf16,
}

impl Kernel {
    /// Every kernel that this machine has, the plainest first.
    pub fn all() -> Vec<Self> {
        let mut kernels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                kernels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                kernels.push(Self::Avx512);
                if is_x86_feature_detected!("avx512bf16") {
                    kernels.push(Self::Avx512Bf16);
                }
            }
        }
        kernels
    }

    /// The kernel called `name` (auto, portable, avx2, avx512) for f32 or bf16 (`low`). With avx512
    /// and bf16 the bf16 instructions are used where there are any; other kernels emulate bf16.
    pub fn named(name: &str, low: bool) -> Result<Self> {
        let all = Self::all();
        let has = |kernel: Self| all.contains(&kernel);
        let kernel = match name {
            "auto" if low && has(Self::Avx512Bf16) => Self::Avx512Bf16,
            "auto" if has(Self::Avx512) => Self::Avx512,
            "auto" if has(Self::Avx2) => Self::Avx2,
            "auto" | "portable" => Self::Portable,
            "avx2" => Self::Avx2,
            "avx512" if low && has(Self::Avx512Bf16) => Self::Avx512Bf16,
            "avx512" => Self::Avx512,
            _ => {
                return Err(Error::input(format!(
                    "kernel must be one of auto, portable, avx2, avx512, not {name:?}"
                )))
            }
        };
        if has(kernel) {
            Ok(kernel)
        } else {
            Err(Error::input(format!("this machine has no {name}")))
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512-bf16",
        }
    }

    /// How this kernel wants its operands.
    pub fn layout(self, low: bool) -> Layout {
        match self {
            Self::Portable => Layout::of::<super::simd::plain::Portable>(low),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Layout::of::<Avx2>(low),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx512Bf16 => Layout::of::<Avx512>(low),
            #[cfg(not(target_arch = "x86_64"))]
            _ => Layout::of::<super::simd::plain::Portable>(low),
        }
    }
}

/// `run!(kernel, low, F, args)`: `F::<S, LOW>(args)` for the machine of a [`Kernel`]. Must stand
/// where a kernel that [`Kernel::all`] did not list cannot arrive.
macro_rules! on_machine {
    ($kernel:expr, $low:expr, $call:ident, $($arg:expr),*) => {{
        use $crate::encode::machine::Kernel;
        #[cfg(target_arch = "x86_64")]
        use $crate::encode::simd::{avx2::Avx2, avx512::{Avx512, Avx512Bf16}};
        use $crate::encode::simd::plain::Portable;
        match ($kernel, $low) {
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, false) => $call::<Avx2, false>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, true) => $call::<Avx2, true>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512 | Kernel::Avx512Bf16, false) => $call::<Avx512, false>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512, true) => $call::<Avx512, true>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512Bf16, true) => $call::<Avx512Bf16, true>($($arg),*),
            (_, false) => $call::<Portable, false>($($arg),*),
            (_, true) => $call::<Portable, true>($($arg),*),
        }
    }};
}
pub(crate) use on_machine;
