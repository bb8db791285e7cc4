//! The tile kernels compiled for each processor.

use super::attention::{attend, Scratch};
use super::block::Tiles;
use super::product::{Linear, Part, Then};
use super::{Panels, PanelsMut};
use crate::attention::{Distances, Heads};
use crate::norm::Norm;
use crate::simd::plain::PortableWide;

/// The kernels as separate functions, compiled for the instructions of `Self`.
pub trait Machine: Tiles {
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn linear(layer: &Linear, part: &Part, rows: usize, input: Panels<'_>, then: Then<'_>);
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn norm(norm: &Norm, rows: usize, x: &mut [f32], out: PanelsMut<'_>);
    /// # Safety
    /// The instructions of `Self`.
    unsafe fn attend(
        heads: Heads,
        length: usize,
        projected: Panels<'_>,
        distances: Option<&Distances>,
        scratch: &mut Scratch,
        out: &mut PanelsMut<'_>,
    );
}

macro_rules! machine {
    ($lanes:ty, $(#[$features:meta])*) => {
        impl Machine for $lanes {
            unsafe fn linear(layer: &Linear, part: &Part, rows: usize, input: Panels<'_>, then: Then<'_>) {
                $(#[$features])*
                unsafe fn go(layer: &Linear, part: &Part, rows: usize, input: Panels<'_>, then: Then<'_>) {
                    layer.run::<$lanes>(part, rows, input, then)
                }
                go(layer, part, rows, input, then)
            }
            unsafe fn norm(norm: &Norm, rows: usize, x: &mut [f32], out: PanelsMut<'_>) {
                $(#[$features])*
                unsafe fn go(norm: &Norm, rows: usize, x: &mut [f32], out: PanelsMut<'_>) {
                    norm.panels::<$lanes>(rows, x, out)
                }
                go(norm, rows, x, out)
            }
            unsafe fn attend(
                heads: Heads,
                length: usize,
                projected: Panels<'_>,
                distances: Option<&Distances>,
                scratch: &mut Scratch,
                out: &mut PanelsMut<'_>,
            ) {
                $(#[$features])*
                unsafe fn go(
                    heads: Heads,
                    length: usize,
                    projected: Panels<'_>,
                    distances: Option<&Distances>,
                    scratch: &mut Scratch,
                    out: &mut PanelsMut<'_>,
                ) {
                    attend::<$lanes>(heads, length, projected, distances, scratch, out)
                }
                go(heads, length, projected, distances, scratch, out)
            }
        }
    };
}

machine!(PortableWide,);
#[cfg(target_arch = "aarch64")]
machine!(crate::simd::pair::Pair<crate::simd::pair::Pair<crate::simd::neon::Neon>>,);
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::simd::{avx2::Avx2, avx512::Avx512, pair::Pair};
    use crate::tiles::amx::Amx;

    machine!(Pair<Avx2>, #[target_feature(enable = "avx2,fma")]);
    machine!(Avx512, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]);
    machine!(Amx, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]);
}
