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
use crate::tiles::{tiles, Tiles};

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

machine!([const N: usize, const NV: usize, const FUSED: bool] Plain<N, NV, FUSED>,);
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
    /// `vdpbf16ps`: only for bf16, and the only kernel whose sums run in that instruction's order.
    Avx512Bf16,
    /// Tiles: only for bf16.
    Amx,
}

/// Every kernel there is, the plainest first.
const KERNELS: [Kernel; 5] =
    [Kernel::Portable, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Bf16, Kernel::Amx];

impl Kernel {
    /// Whether this process can run it.
    pub fn here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = || {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            };
            match self {
                Self::Portable => true,
                Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
                Self::Avx512 => avx512(),
                Self::Avx512Bf16 => avx512() && is_x86_feature_detected!("avx512bf16"),
                Self::Amx => tiles() == Tiles::Granted,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Self::Portable
        }
    }

    /// Every kernel that this process can run, the plainest first.
    pub fn all() -> Vec<Self> {
        KERNELS.into_iter().filter(|kernel| kernel.here()).collect()
    }

    /// The kernel called `name`. Errors: there is none, or this machine has not got it.
    pub fn named(name: &str) -> Result<Self> {
        let Some(kernel) = KERNELS.into_iter().find(|kernel| kernel.name() == name) else {
            let names = KERNELS.map(Self::name).join(", ");
            return Err(Error::input(format!("kernel must be one of auto, {names}, not {name:?}")));
        };
        if kernel.here() {
            Ok(kernel)
        } else if kernel == Self::Amx && tiles() == Tiles::Refused {
            Err(Error::input("the system does not grant this process the processor's tiles (amx)"))
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
            Self::Amx => "amx",
        }
    }

    /// Whether the hardware multiplies bf16; the other kernels compute what the tiles do, more slowly than
    /// f32.
    pub fn has_bf16(self) -> bool {
        matches!(self, Self::Avx512Bf16 | Self::Amx)
    }

    /// How this kernel wants its operands.
    pub fn layout(self, low: bool) -> Layout {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bf16 => Layout::of::<Avx512Bf16>(low),
            _ if low => Layout::tiles(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Layout::of::<Avx2>(low),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Amx => Layout::of::<Avx512>(low),
            _ => Layout::of::<super::simd::plain::Portable>(low),
        }
    }
}

/// `on_rows!(kernel, low, F, args)`: `F::<S, LOW>(args)` for the machine of a [`Kernel`]. Must stand
/// where a kernel that [`Kernel::all`] did not list cannot arrive.
macro_rules! on_rows {
    ($kernel:expr, $low:expr, $call:ident, $($arg:expr),*) => {{
        use $crate::encode::machine::Kernel;
        #[cfg(target_arch = "x86_64")]
        use $crate::encode::simd::{avx2::Avx2, avx512::{Avx512, Avx512Bf16}};
        use $crate::encode::simd::plain::Portable;
        match ($kernel, $low) {
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, false) => $call::<Avx2, false>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512Bf16, true) => $call::<Avx512Bf16, true>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512 | Kernel::Avx512Bf16 | Kernel::Amx, false) => $call::<Avx512, false>($($arg),*),
            _ => $call::<Portable, false>($($arg),*),
        }
    }};
}
pub(crate) use on_rows;

/// `on_tiles!(kernel, F, args)`: `F::<S>(args)` likewise for the kernels of `encode::tiles`.
macro_rules! on_tiles {
    ($kernel:expr, $call:ident, $($arg:expr),*) => {{
        #[cfg(target_arch = "x86_64")]
        use $crate::encode::{simd::{avx2::Avx2, avx512::Avx512, pair::Pair}, tiles::amx::Amx};
        use $crate::encode::{machine::Kernel, simd::plain::PortableWide};
        match $kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => $call::<Pair<Avx2>>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => $call::<Avx512>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => $call::<Amx>($($arg),*),
            _ => $call::<PortableWide>($($arg),*),
        }
    }};
}
pub(crate) use on_tiles;
