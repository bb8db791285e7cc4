//! Element types of arrays.

use bytemuck::Pod;

/// The element types that an index uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    U8,
    I8,
    U32,
    U64,
    F32,
    F64,
}

impl Kind {
    /// Parse NumPy's name of a type.
    pub fn parse(descr: &str) -> Option<Self> {
        Some(match descr {
            "|u1" => Self::U8,
            "|i1" => Self::I8,
            "<u4" => Self::U32,
            "<u8" => Self::U64,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => return None,
        })
    }

    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U32 | Self::F32 => 4,
            Self::U64 | Self::F64 => 8,
        }
    }
}

/// Rust types that correspond to a [`Kind`].
pub trait Item: Pod {
    const KIND: Kind;
}

macro_rules! items {
    ($($rust:ty => $kind:ident),*) => {$(impl Item for $rust { const KIND: Kind = Kind::$kind; })*};
}
items!(u8 => U8, i8 => I8, u32 => U32, u64 => U64, f32 => F32, f64 => F64);
