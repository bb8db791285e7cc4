//! The kernels compiled for each machine, and the choice between them at run time.

use super::attention::{attend, Distances, Heads, Scratch};
use super::norm::Norm;
use super::product::{any_tile, Layout, Linear, Next, Then};
#[cfg(target_arch = "x86_64")]
use super::simd::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::simd::avx512::{Avx512, Avx512Bf16};
#[cfg(target_arch = "x86_64")]
use super::simd::pair::Pair;
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
        next: Next,
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
                b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize, next: Next,
            ) {
                // Inlined at its four callers, its many tiles would be compiled four times.
                #[inline(never)]
                $(#[$features])*
                #[allow(clippy::too_many_arguments)]
                unsafe fn go<S: Lanes, const LOW: bool>(
                    rows: usize, vectors: usize, k: usize, a: *const f32, lda: usize,
                    b: *const f32, vs: usize, ks: usize, c: *mut f32, ldc: usize, next: Next,
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { any_tile::<S, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc, next) }
                }
                // SAFETY: the caller's promise.
                unsafe { go::<Self, LOW>(rows, vectors, k, a, lda, b, vs, ks, c, ldc, next) }
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
machine!([] Pair<Avx2>, #[target_feature(enable = "avx2,fma")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]);
#[cfg(target_arch = "x86_64")]
machine!([] Avx512Bf16, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]);

/// What a model is computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    F32,
    Bf16,
    Int8,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

/// Which instructions to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    Portable,
    Avx2,
    Avx512,
    /// `vdpbf16ps`: only for bf16, and the only kernel whose sums run in that instruction's order.
    Avx512Bf16,
    /// `vpdpbusd` on 256 bits: only for int8.
    AvxVnni,
    /// `vpdpbusd` on 512 bits: only for int8.
    Avx512Vnni,
    /// Tiles: for bf16 and, where they multiply bytes, int8.
    Amx,
}

/// Every kernel there is, the plainest first.
const KERNELS: [Kernel; 7] = [
    Kernel::Portable,
    Kernel::Avx2,
    Kernel::AvxVnni,
    Kernel::Avx512,
    Kernel::Avx512Vnni,
    Kernel::Avx512Bf16,
    Kernel::Amx,
];

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
            let avx2 = || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            match self {
                Self::Portable => true,
                Self::Avx2 => avx2(),
                Self::AvxVnni => avx2() && is_x86_feature_detected!("avxvnni"),
                Self::Avx512Vnni => avx512() && is_x86_feature_detected!("avx512vnni"),
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
            Self::AvxVnni => "avx-vnni",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Amx => "amx",
        }
    }

    /// What the hardware multiplies, the first its own choice. Kernels without bf16 compute in it what the
    /// tiles do, more slowly than in f32.
    pub fn forms(self) -> &'static [Form] {
        match self {
            Self::Portable | Self::Avx2 | Self::Avx512 => &[Form::F32, Form::Int8],
            Self::AvxVnni | Self::Avx512Vnni => &[Form::Int8],
            Self::Avx512Bf16 => &[Form::Bf16],
            #[cfg(target_arch = "x86_64")]
            Self::Amx if crate::tiles::byte_tiles() => &[Form::Bf16, Form::Int8],
            Self::Amx => &[Form::Bf16],
        }
    }

    /// Whether it computes in `form` at all.
    pub fn serves(self, form: Form) -> bool {
        let any = matches!(self, Self::Portable | Self::Avx2 | Self::Avx512);
        self.forms().contains(&form) || (form == Form::Bf16 && any)
    }

    /// How this kernel wants its operands.
    pub fn layout(self, form: Form) -> Layout {
        fn of_bytes<B: super::bytes::machine::Bytes>() -> Layout {
            Layout::of::<B::Lanes>(false)
        }
        match (self, form) {
            (_, Form::Int8) => super::bytes::machine::on_bytes!(self, of_bytes,),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512Bf16, _) => Layout::of::<Avx512Bf16>(true),
            (_, Form::Bf16) => Layout::tiles(),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx2, _) => Layout::of::<Avx2>(false),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, _) => Layout::of::<Avx512>(false),
            _ => Layout::of::<super::simd::plain::Portable>(false),
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
            (Kernel::Avx512, false) => $call::<Avx512, false>($($arg),*),
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
