//! An array stored as changes to an earlier one ([`crate::store::patch`]). It is assembled chunk by chunk
//! when it is read.

use super::npy::MappedArray;
use super::pack::Shape;
use super::pack::{Item, Kind};
use super::unpacked::{Changes, Compose};
use crate::error::{caught, Error, Result};
use crate::store::patch::{Numbering, Patch};
use std::sync::Arc;

/// An earlier array, its changes, and the current numbers of its values if they are ids.
#[derive(Debug)]
pub struct Patched {
    earlier: Arc<MappedArray>,
    patch: Patch,
    numbers: Option<Arc<Numbering>>,
    shape: Shape,
    name: String,
}

impl Patched {
    /// Check that the pieces are inside the earlier array and the new values, and that no value is used twice: a small file
    /// must not become a large array. Numbers are checked when they are read.
    pub fn new(
        earlier: Arc<MappedArray>,
        patch: Patch,
        numbers: Option<Arc<Numbering>>,
        name: String,
    ) -> Result<Self> {
        let wrong = || Error::damaged(format!("{name}: the changes do not fit the array"));
        let (kind, columns) = (earlier.kind(), earlier.columns());
        let (rows, width) = earlier.shape();
        let len = usize::try_from(patch.len).map_err(|_| wrong())?;
        let whole = rows.checked_mul(width).ok_or_else(wrong)? as u64;
        let rises = patch.pieces.windows(2).all(|two| two[0].at < two[1].at);
        let starts = patch.pieces.first().map_or(len == 0, |first| first.at == 0);
        if kind == Kind::F64 || len % width.max(1) != 0 || !rises || !starts {
            return Err(wrong());
        }
        let mut used = [0, 0];
        for (at, piece) in patch.pieces.iter().enumerate() {
            let end = patch.pieces.get(at + 1).map_or(patch.len, |next| next.at);
            let limit = if piece.is_new { patch.values.len() as u64 } else { whole };
            let count = end.checked_sub(piece.at).filter(|&count| count > 0);
            let last = count.and_then(|count| piece.start.checked_add(count)).filter(|&last| last <= limit);
            let Some(last) = last else { return Err(wrong()) };
            if piece.start < std::mem::replace(&mut used[usize::from(piece.is_new)], last) {
                return Err(Error::damaged(format!("pieces of {name} overlap")));
            }
        }
        let shape = Shape { kind, rows: len / width.max(1), columns };
        Ok(Self { earlier, patch, numbers, shape, name })
    }

    fn copy<T: Item>(
        &self,
        offset: usize,
        out: &mut [u8],
        wide: impl Fn(T) -> u64,
        narrow: impl Fn(u64) -> T,
    ) -> Result<()> {
        let size = size_of::<T>();
        let earlier = self.earlier.items::<T>()?;
        let (start, mut at) = ((offset / size) as u64, 0);
        let mut values: Vec<T> = vec![T::zeroed(); out.len() / size];
        caught(|| {
            self.patch.pieces_of(start..start + values.len() as u64, |piece, from| {
                let range = from.start as usize..from.end as usize;
                let into = &mut values[at..at + range.len()];
                at += range.len();
                if piece.is_new {
                    into.iter_mut().zip(&self.patch.values[range]).for_each(|(to, &x)| *to = narrow(x));
                    return;
                }
                let some = earlier.get(range);
                match (&self.numbers, piece.shift) {
                    (Some(numbers), _) => {
                        into.iter_mut().zip(some).for_each(|(to, &x)| *to = narrow(numbers.of(wide(x))));
                    }
                    (None, 0) => into.copy_from_slice(some),
                    (None, shift) => into
                        .iter_mut()
                        .zip(some)
                        .for_each(|(to, &x)| *to = narrow(wide(x).wrapping_add_signed(shift))),
                }
            });
            Ok(())
        })?;
        out.copy_from_slice(bytemuck::cast_slice(&values));
        Ok(())
    }
}

impl Compose for Patched {
    fn name(&self) -> &str {
        &self.name
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn changes(&self) -> Option<Changes<'_>> {
        Some((&self.patch, self.numbers.as_deref()))
    }

    fn fill(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        match self.shape.kind {
            Kind::U8 => self.copy::<u8>(offset, out, u64::from, |x| x as u8),
            // New values are bits.
            Kind::I8 => self.copy::<i8>(offset, out, |x| u64::from(x as u8), |x| x as i8),
            Kind::F32 => {
                self.copy::<f32>(offset, out, |x| u64::from(x.to_bits()), |x| f32::from_bits(x as u32))
            }
            Kind::U32 => self.copy::<u32>(offset, out, u64::from, |x| x as u32),
            Kind::U64 => self.copy::<u64>(offset, out, |x| x, |x| x),
            Kind::F64 => {
                Err(Error::Internal(format!("{}: arrays of this type cannot be patched", self.name)))
            }
        }
    }
}
