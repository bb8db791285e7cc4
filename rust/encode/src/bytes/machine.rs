//! The byte kernels compiled for each processor.

use super::dot::{Dot, Portable};
use super::product::Linear;
use super::rows::Rows;
use crate::machine::Machine;
use crate::product::Then;
use crate::simd::plain::PortableWide;
use crate::simd::wide::Wide;

/// A processor: its sixteen lanes, and its byte multiplication.
pub trait Bytes {
    type Lanes: Machine + Wide;

    /// # Safety
    /// The instructions of the type.
    unsafe fn quantise(out: &mut Rows, rows: usize, x: &[f32], factors: &[f32]);
    /// # Safety
    /// The instructions of the type.
    unsafe fn linear(layer: &Linear, rows: usize, input: &Rows, then: Then<'_>);
}

macro_rules! bytes {
    ($name:ident, $lanes:ty, $dot:ty, $(#[$features:meta])*) => {
        pub struct $name;

        impl Bytes for $name {
            type Lanes = $lanes;

            unsafe fn quantise(out: &mut Rows, rows: usize, x: &[f32], factors: &[f32]) {
                $(#[$features])*
                unsafe fn go(out: &mut Rows, rows: usize, x: &[f32], factors: &[f32]) {
                    out.quantise::<$lanes>(rows, x, factors)
                }
                go(out, rows, x, factors)
            }
            unsafe fn linear(layer: &Linear, rows: usize, input: &Rows, then: Then<'_>) {
                $(#[$features])*
                unsafe fn go<D: Dot>(layer: &Linear, rows: usize, input: &Rows, then: Then<'_>) {
                    layer.run::<$lanes, D>(rows, input, then)
                }
                go::<$dot>(layer, rows, input, then)
            }
        }
    };
}

bytes!(PortableBytes, PortableWide, Portable,);
#[cfg(target_arch = "x86_64")]
pub use on_x86::*;
#[cfg(target_arch = "x86_64")]
mod on_x86 {
    use super::*;
    use crate::bytes::{amx, x86};
    use crate::simd::{avx2::Avx2, avx512::Avx512, pair::Pair};

    bytes!(Avx2Bytes, Pair<Avx2>, x86::Avx2, #[target_feature(enable = "avx2,fma")]);
    bytes!(AvxVnniBytes, Pair<Avx2>, x86::AvxVnni, #[target_feature(enable = "avx2,fma,avxvnni")]);
    bytes!(
        Avx512Bytes,
        Avx512,
        x86::Avx512,
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    );
    bytes!(
        Avx512VnniBytes,
        Avx512,
        x86::Avx512Vnni,
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    );
    bytes!(AmxBytes, Avx512, amx::Amx, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]);
}

#[cfg(target_arch = "aarch64")]
pub use on_arm::*;
#[cfg(target_arch = "aarch64")]
mod on_arm {
    use super::*;
    use crate::bytes::arm;
    use crate::simd::{neon::Neon, pair::Pair};

    bytes!(NeonBytes, Pair<Pair<Neon>>, arm::Neon,);
}

/// `on_bytes!(kernel, F, args)`: `F::<B>(args)` for the [`Bytes`] of a kernel.
macro_rules! on_bytes {
    ($kernel:expr, $call:ident, $($arg:expr),*) => {{
        #[allow(unused_imports)]
        use $crate::bytes::machine::*;
        use $crate::kernel::Kernel;
        match $kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => $call::<Avx2Bytes>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::AvxVnni => $call::<AvxVnniBytes>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => $call::<Avx512Bytes>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Vnni => $call::<Avx512VnniBytes>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => $call::<AmxBytes>($($arg),*),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => $call::<NeonBytes>($($arg),*),
            _ => $call::<PortableBytes>($($arg),*),
        }
    }};
}
pub(crate) use on_bytes;
