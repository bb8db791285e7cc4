//! The mapped arrays of one generation by name, each loaded when a query first needs it.

use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::links_weights::Weights;
use crate::sparse::CsrView;
use crate::store::{Item, MappedArray, MappedFile};
use crate::text::strings::Strings;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Mapped arrays under names such as `units.unit_tokens` (stage, dot, array).
///
/// If files are verified as they are read, their values were already checked when they were written: whole
/// arrays are verified first, and sparsely read ones come with a [`Guard`] or as [`Items`]. If nothing is verified, or
/// everything was verified on opening, values are checked when a view is created. In both cases slices check
/// all reads: a corrupt file can make a query fail, but never cause a read out of bounds.
#[derive(Debug, Default)]
pub struct Arrays {
    by_name: BTreeMap<String, (Held, OnceLock<MappedArray>)>,
    by_blocks: bool,
    weights: OnceLock<Weights>,
}

/// A stored array: a file that is opened when it is first read, or an array that others share.
#[derive(Debug, Clone)]
pub enum Held {
    File(Arc<MappedFile>),
    Array(Arc<MappedArray>),
}

impl From<Arc<MappedFile>> for Held {
    fn from(file: Arc<MappedFile>) -> Self {
        Self::File(file)
    }
}

/// An array of which a query reads only a few elements.
pub type Sparse<'a, T> = (&'a [T], Option<Guard<'a>>);

impl Arrays {
    /// `by_blocks`: the files are verified as they are read.
    pub fn new<H: Into<Held>>(files: impl IntoIterator<Item = (String, H)>, by_blocks: bool) -> Self {
        let by_name = files.into_iter().map(|(name, file)| (name, (file.into(), OnceLock::new()))).collect();
        Self { by_name, by_blocks, weights: OnceLock::new() }
    }

    pub fn by_blocks(&self) -> bool {
        self.by_blocks
    }

    /// Verify and unpack the rest of the arrays from which queries have read, the smallest first, up to `most`
    /// bytes. Return the number of bytes.
    pub fn read_ahead(&self, most: usize, progress: &Progress) -> Result<usize> {
        let mut arrays: Vec<&MappedArray> =
            self.by_name.values().filter_map(|(_, made)| made.get()).collect();
        arrays.sort_by_key(|array| array.size());
        let mut size = 0;
        for array in arrays {
            if size + array.size() > most {
                break;
            }
            array.read_ahead(progress)?;
            size += array.size();
        }
        Ok(size)
    }

    /// Return the weights of the walk's links, once they are computed.
    pub(super) fn weights(&self) -> &OnceLock<Weights> {
        &self.weights
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn array(&self, name: &str) -> Result<&MappedArray> {
        let (file, made) =
            self.by_name.get(name).ok_or_else(|| Error::damaged(format!("the index has no array {name}")))?;
        match (file, made.get()) {
            (Held::Array(array), _) => Ok(array),
            (_, Some(array)) => Ok(array),
            (Held::File(file), None) => {
                let array = MappedArray::new(file.clone())?;
                Ok(made.get_or_init(|| array))
            }
        }
    }

    /// Return all values, verified.
    pub fn values<T: Item>(&self, name: &str) -> Result<&[T]> {
        self.array(name)?.values()
    }

    /// Return values of which a few will be read, with their guard.
    pub fn sparse<T: Item>(&self, name: &str) -> Result<Sparse<'_, T>> {
        self.array(name)?.guarded()
    }

    /// Return values each of which is verified and unpacked when it is read.
    pub fn items<T: Item>(&self, name: &str) -> Result<Items<'_, T>> {
        match self.by_blocks {
            true => self.array(name)?.items(),
            false => Ok(Items::from(self.values(name)?)),
        }
    }

    /// Return the values; there must be exactly `length`.
    pub fn exactly<T: Item>(&self, name: &str, length: usize) -> Result<&[T]> {
        let values = self.values::<T>(name)?;
        if values.len() != length {
            return Err(Error::damaged(format!("{name} has {} values, not {length}", values.len())));
        }
        Ok(values)
    }

    /// Return `length` ids, all less than `limit`.
    pub fn ids(&self, name: &str, length: usize, limit: usize) -> Result<&[u32]> {
        let values = self.exactly::<u32>(name, length)?;
        match values.iter().max() {
            Some(&most) if !self.by_blocks && most as usize >= limit => {
                Err(Error::damaged(format!("{name} holds {most}, which is not below {limit}")))
            }
            _ => Ok(values),
        }
    }

    /// Return (rows, columns); a vector has one column.
    pub fn shape(&self, name: &str) -> Result<(usize, usize)> {
        Ok(self.array(name)?.shape())
    }

    /// Return `NAME_indptr` and `NAME_indices` as rows of ids less than `columns`.
    pub fn csr(&self, name: &str, rows: usize, columns: usize) -> Result<CsrView<'_>> {
        let indptr = self.exactly::<u64>(&format!("{name}_indptr"), rows + 1)?;
        self.rows_of(name, indptr, columns)
    }

    /// Like [`Arrays::csr`], with as many rows as `indptr` has.
    pub fn rows(&self, name: &str, columns: usize) -> Result<CsrView<'_>> {
        self.rows_of(name, self.values(&format!("{name}_indptr"))?, columns)
    }

    fn rows_of<'a>(&'a self, name: &str, indptr: &'a [u64], columns: usize) -> Result<CsrView<'a>> {
        let indices = format!("{name}_indices");
        match self.by_blocks {
            true => CsrView::stored(indptr, self.items(&indices)?, columns),
            false => CsrView::new(indptr, self.values(&indices)?, columns),
        }
        .map_err(|e| damaged(name, e))
    }

    /// Return rows with `NAME_tf`: a count parallel to each id.
    pub fn counted_rows(&self, name: &str, columns: usize) -> Result<(CsrView<'_>, Items<'_, u32>)> {
        Ok((self.rows(name, columns)?, self.items(&format!("{name}_tf"))?))
    }

    /// Return `NAME_blob` and `NAME_offsets` as strings.
    pub fn strings(&self, name: &str) -> Result<Strings<'_>> {
        let blob = format!("{name}_blob");
        let offsets = self.values(&format!("{name}_offsets"))?;
        match self.by_blocks {
            true => Strings::stored(self.items(&blob)?, offsets),
            false => Strings::new(self.values(&blob)?, offsets),
        }
        .map_err(|e| damaged(name, e))
    }
}

/// Turn an invalid-input error of a view over stored arrays into damage, with the array's name.
pub fn damaged(name: &str, error: Error) -> Error {
    match error {
        Error::Input(text) => Error::damaged(format!("{name}: {text}")),
        other => other,
    }
}
