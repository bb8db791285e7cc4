//! The kernels by name, and their availability on this machine.

use super::buffer::Layout;
#[cfg(target_arch = "aarch64")]
use super::simd::neon::Neon;
#[cfg(target_arch = "x86_64")]
use super::simd::{avx2::Avx2, avx512::Avx512, avx512::Avx512Bf16};
use crate::error::{Error, Result};
use ketrag_base::tiles::{tiles, Tiles};

/// The number format in which a model is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// The instructions that a kernel uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    Portable,
    /// 64-bit ARM.
    Neon,
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

/// All kernels, the plainest first.
const KERNELS: [Kernel; 8] = [
    Kernel::Portable,
    Kernel::Neon,
    Kernel::Avx2,
    Kernel::AvxVnni,
    Kernel::Avx512,
    Kernel::Avx512Vnni,
    Kernel::Avx512Bf16,
    Kernel::Amx,
];

impl Kernel {
    /// Return whether this process can run it.
    pub fn here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use crate::cpu::has;
            let avx512 = || has!("avx512f", "avx512bw", "avx512dq", "avx512vl");
            let avx2 = || has!("avx2", "fma");
            match self {
                Self::Portable => true,
                Self::Neon => false,
                Self::Avx2 => avx2(),
                Self::AvxVnni => avx2() && has!("avxvnni"),
                Self::Avx512Vnni => avx512() && has!("avx512vnni"),
                Self::Avx512 => avx512(),
                Self::Avx512Bf16 => avx512() && has!("avx512bf16"),
                Self::Amx => tiles() == Tiles::Granted,
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            self == Self::Portable || (self == Self::Neon && crate::cpu::has!("neon"))
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            self == Self::Portable
        }
    }

    /// Return every kernel that this process can run, the plainest first.
    pub fn all() -> Vec<Self> {
        KERNELS.into_iter().filter(|kernel| kernel.here()).collect()
    }

    /// Return the kernel called `name`. Errors: it is unknown, or not available on this machine.
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
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512-bf16",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Amx => "amx",
        }
    }

    /// Return the formats that the hardware multiplies, the preferred one first. Kernels without bf16 compute
    /// it with the same result as the tiles, more slowly than f32.
    pub fn forms(self) -> &'static [Form] {
        match self {
            Self::Portable | Self::Neon | Self::Avx2 | Self::Avx512 => &[Form::F32, Form::Int8],
            Self::AvxVnni | Self::Avx512Vnni => &[Form::Int8],
            Self::Avx512Bf16 => &[Form::Bf16],
            #[cfg(target_arch = "x86_64")]
            Self::Amx if ketrag_base::tiles::byte_tiles() => &[Form::Bf16, Form::Int8],
            Self::Amx => &[Form::Bf16],
        }
    }

    /// Return whether it supports `form` at all.
    pub fn serves(self, form: Form) -> bool {
        let any = matches!(self, Self::Portable | Self::Neon | Self::Avx2 | Self::Avx512);
        self.forms().contains(&form) || (form == Form::Bf16 && any)
    }

    /// Return the layout of operands for this kernel.
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
            #[cfg(target_arch = "aarch64")]
            (Self::Neon, _) => Layout::of::<Neon>(false),
            _ => Layout::of::<super::simd::plain::Portable>(false),
        }
    }
}

/// `on_rows!(kernel, low, F, args)`: `F::<S, LOW>(args)` for the machine of a [`Kernel`]. Use it only for
/// kernels that [`Kernel::all`] lists.
macro_rules! on_rows {
    ($kernel:expr, $low:expr, $call:ident, $($arg:expr),*) => {{
        use $crate::kernel::Kernel;
        #[cfg(target_arch = "x86_64")]
        use $crate::simd::{avx2::Avx2, avx512::{Avx512, Avx512Bf16}};
        use $crate::simd::plain::Portable;
        match ($kernel, $low) {
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, false) => $call::<Avx2, false>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512Bf16, true) => $call::<Avx512Bf16, true>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx512, false) => $call::<Avx512, false>($($arg),*),
            #[cfg(target_arch = "aarch64")]
            (Kernel::Neon, false) => $call::<$crate::simd::neon::Neon, false>($($arg),*),
            _ => $call::<Portable, false>($($arg),*),
        }
    }};
}
pub(crate) use on_rows;

/// `on_tiles!(kernel, F, args)`: `F::<S>(args)` likewise for the kernels of `encode::tiles`.
macro_rules! on_tiles {
    ($kernel:expr, $call:ident, $($arg:expr),*) => {{
        #[cfg(target_arch = "x86_64")]
        use $crate::{simd::{avx2::Avx2, avx512::Avx512, pair::Pair}, tiles::amx::Amx};
        use $crate::{kernel::Kernel, simd::plain::PortableWide};
        match $kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => $call::<Pair<Avx2>>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => $call::<Avx512>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => $call::<Amx>($($arg),*),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => $call::<$crate::simd::pair::Pair<$crate::simd::pair::Pair<$crate::simd::neon::Neon>>>(
                $($arg),*
            ),
            _ => $call::<PortableWide>($($arg),*),
        }
    }};
}
pub(crate) use on_tiles;
