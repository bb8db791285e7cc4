//! The arrays of one generation by name, and the checks that make later reads plain indexing.

use crate::error::{Error, Result};
use crate::sparse::CsrView;
use crate::store::{Item, MappedArray};
use crate::text::strings::Strings;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Mapped arrays under names such as `units.unit_tokens` (stage, dot, array).
#[derive(Debug, Default)]
pub struct Arrays {
    by_name: BTreeMap<String, MappedArray>,
}

impl Arrays {
    pub fn open(files: Vec<(String, PathBuf)>) -> Result<Self> {
        let by_name = files
            .into_iter()
            .map(|(name, path)| Ok((name, MappedArray::open(&path)?)))
            .collect::<Result<_>>()?;
        Ok(Self { by_name })
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn array(&self, name: &str) -> Result<&MappedArray> {
        self.by_name.get(name).ok_or_else(|| Error::damaged(format!("the index has no array {name}")))
    }

    pub fn values<T: Item>(&self, name: &str) -> Result<&[T]> {
        self.array(name)?.values()
    }

    /// Values that must be `length` in number.
    pub fn exactly<T: Item>(&self, name: &str, length: usize) -> Result<&[T]> {
        let values = self.values::<T>(name)?;
        if values.len() != length {
            return Err(Error::damaged(format!("{name} has {} values, not {length}", values.len())));
        }
        Ok(values)
    }

    /// Ids that must lie below `limit`, `length` in number.
    pub fn ids(&self, name: &str, length: usize, limit: usize) -> Result<&[u32]> {
        let values = self.exactly::<u32>(name, length)?;
        match values.iter().max() {
            Some(&most) if most as usize >= limit => {
                Err(Error::damaged(format!("{name} holds {most}, which is not below {limit}")))
            }
            _ => Ok(values),
        }
    }

    /// A matrix with its number of columns.
    pub fn matrix<T: Item>(&self, name: &str) -> Result<(&[T], usize)> {
        let array = self.array(name)?;
        Ok((array.values()?, array.shape().1))
    }

    /// `NAME_indptr` and `NAME_indices` as rows of ids below `columns`.
    pub fn csr(&self, name: &str, rows: usize, columns: usize) -> Result<CsrView<'_>> {
        let indptr = self.exactly::<u64>(&format!("{name}_indptr"), rows + 1)?;
        let indices = self.values(&format!("{name}_indices"))?;
        CsrView::new(indptr, indices, columns).map_err(|e| Error::damaged(format!("{name}: {e}")))
    }

    /// `NAME_blob` and `NAME_offsets` as strings.
    pub fn strings(&self, name: &str) -> Result<Strings<'_>> {
        let blob = self.values(&format!("{name}_blob"))?;
        let offsets = self.values(&format!("{name}_offsets"))?;
        Strings::new(blob, offsets).map_err(|e| Error::damaged(format!("{name}: {e}")))
    }
}
