//! The mapped arrays of one generation by name, each loaded when a query first needs it.

use crate::error::{caught, Error, Result};
use crate::guard::Guard;
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::links_weights::{SharedStrings, Weights};
use crate::sparse::CsrView;
use crate::store::{Changes, Item, MappedArray, MappedFile};
use crate::text::strings::Strings;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Offsets and other arrays of small values up to this size in bytes are verified and unpacked as a whole.
/// This takes milliseconds, and later reads need no check. Larger arrays are unpacked as they are read, so
/// the first query is not slower in a large index.
const SMALL: usize = 1 << 22;
/// The same limit in a process that answers one query and ends, and for arrays with changes, whose merged form is used
/// only until the next change.
const SMALL_ONCE: usize = 1 << 16;
/// The limit in this process for arrays without changes.
static LIMIT: AtomicUsize = AtomicUsize::new(SMALL);

/// Unpack no more than a few queries read, from now on in this process. It changes no result.
pub fn expect_few_queries() {
    LIMIT.store(SMALL_ONCE, Ordering::Relaxed);
}

fn small(is_composed: bool) -> usize {
    match is_composed {
        true => SMALL_ONCE,
        false => LIMIT.load(Ordering::Relaxed),
    }
}

/// Mapped arrays under names such as `units.unit_tokens` (stage, dot, array).
///
/// If files are verified as they are read, their values were already checked when they were written: whole
/// arrays are verified first, and sparsely read ones come with a [`Guard`] or as [`Items`]. If nothing is verified, or
/// everything was verified on opening, values are checked when a view is created. In both cases slices check
/// all reads: a corrupt file can make a query fail, but never cause a read out of bounds.
#[derive(Debug, Default)]
pub struct Arrays {
    by_name: BTreeMap<String, (Held, OnceLock<Arc<MappedArray>>)>,
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
    /// `by_blocks`: whether files are verified as they are read.
    pub fn new<H: Into<Held>>(files: impl IntoIterator<Item = (String, H)>, by_blocks: bool) -> Self {
        let by_name = files.into_iter().map(|(name, file)| (name, (file.into(), OnceLock::new()))).collect();
        Self { by_name, by_blocks, weights: OnceLock::new() }
    }

    /// Return arrays in memory, of units whose rarities are counted over a larger collection.
    pub fn weighted(arrays: Vec<(String, Held)>, weights: Weights) -> Self {
        Self { weights: OnceLock::from(weights), ..Self::new(arrays, false) }
    }

    pub fn by_blocks(&self) -> bool {
        self.by_blocks
    }

    /// Verify and unpack the rest of the arrays that queries have read from, smallest first, up to `most`
    /// bytes. Returns the number of bytes.
    pub fn read_ahead(&self, most: usize, progress: &Progress) -> Result<usize> {
        let mut arrays: Vec<&Arc<MappedArray>> =
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

    /// Return the weights of the walk's links if they are already computed.
    pub(super) fn weights(&self) -> &OnceLock<Weights> {
        &self.weights
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn array(&self, name: &str) -> Result<&Arc<MappedArray>> {
        let (file, made) =
            self.by_name.get(name).ok_or_else(|| Error::damaged(format!("the index has no array {name}")))?;
        match (file, made.get()) {
            (Held::Array(array), _) => Ok(array),
            (_, Some(array)) => Ok(array),
            (Held::File(file), None) => {
                let array = Arc::new(MappedArray::new(file.clone())?);
                Ok(made.get_or_init(|| array))
            }
        }
    }

    /// Return the changes if the array is stored as changes to an earlier array.
    pub fn changes(&self, name: &str) -> Result<Option<Changes<'_>>> {
        Ok(self.array(name)?.changes())
    }

    /// Return all values, verified.
    pub fn values<T: Item>(&self, name: &str) -> Result<&[T]> {
        self.array(name)?.values()
    }

    /// Return whether an array can be read in place and is verified as it is read. An array with changes
    /// cannot.
    pub fn is_mapped(&self, name: &str) -> bool {
        self.by_blocks && self.array(name).is_ok_and(|array| !array.is_composed())
    }

    /// Return values of which only a few will be read, with their guard.
    pub fn sparse<T: Item>(&self, name: &str) -> Result<Sparse<'_, T>> {
        self.array(name)?.guarded()
    }

    /// Return values that are verified and unpacked individually when they are read.
    pub fn items<T: Item>(&self, name: &str) -> Result<Items<'_, T>> {
        match self.by_blocks {
            true => self.array(name)?.items(),
            false => Ok(Items::from(self.values(name)?)),
        }
    }

    /// Return values of which a query may read a few or most. Values of a large array are verified and
    /// unpacked when they are read, and those of a small array immediately.
    pub fn lazy<T: Item>(&self, name: &str) -> Result<Items<'_, T>> {
        match self.is_lazy(name)? {
            true => self.array(name)?.items(),
            false => Ok(Items::from(self.values(name)?)),
        }
    }

    fn is_lazy(&self, name: &str) -> Result<bool> {
        let array = self.array(name)?;
        Ok(self.by_blocks && array.size() > small(array.is_composed()))
    }

    /// Return an array that [`Arrays::lazy`] does not unpack. It is shared with values that are computed from
    /// it as they are read.
    pub fn shared(&self, name: &str) -> Result<Option<Arc<MappedArray>>> {
        Ok(if self.is_lazy(name)? { Some(self.array(name)?.clone()) } else { None })
    }

    /// Return `NAME_blob` and `NAME_offsets`, if files are verified as they are read.
    pub fn shared_strings(&self, name: &str) -> Result<Option<SharedStrings>> {
        let of = |part: &str| Ok(self.array(&format!("{name}_{part}"))?.clone());
        Ok(if self.by_blocks { Some([of("blob")?, of("offsets")?]) } else { None })
    }

    /// Return the values as [`Arrays::lazy`] does. There must be exactly `length` of them.
    pub fn lazy_exactly<T: Item>(&self, name: &str, length: usize) -> Result<Items<'_, T>> {
        let values = self.lazy(name)?;
        self.require(name, values.len(), length)?;
        Ok(values)
    }

    fn require(&self, name: &str, found: usize, length: usize) -> Result<()> {
        match found == length {
            true => Ok(()),
            false => Err(Error::damaged(format!("{name} has {found} values, not {length}"))),
        }
    }

    /// Return the values. There must be exactly `length` of them.
    pub fn exactly<T: Item>(&self, name: &str, length: usize) -> Result<&[T]> {
        let values = self.values::<T>(name)?;
        self.require(name, values.len(), length)?;
        Ok(values)
    }

    /// Return `length` ids, all less than `limit`.
    pub fn ids(&self, name: &str, length: usize, limit: usize) -> Result<Items<'_, u32>> {
        if self.by_blocks {
            return self.lazy_exactly(name, length);
        }
        let values = self.exactly::<u32>(name, length)?;
        match values.iter().max() {
            Some(&most) if most as usize >= limit => {
                Err(Error::damaged(format!("{name} holds {most}, which is not below {limit}")))
            }
            _ => Ok(Items::from(values)),
        }
    }

    /// Return (rows, columns); a vector has one column.
    pub fn shape(&self, name: &str) -> Result<(usize, usize)> {
        Ok(self.array(name)?.shape())
    }

    /// Return `NAME_indptr` and `NAME_indices` as rows of ids less than `columns`.
    pub fn csr(&self, name: &str, rows: usize, columns: usize) -> Result<CsrView<'_>> {
        let indptr = format!("{name}_indptr");
        self.require(&indptr, self.shape(&indptr)?.0, rows + 1)?;
        self.rows(name, columns)
    }

    /// Like [`Arrays::csr`], with as many rows as `indptr` has.
    pub fn rows(&self, name: &str, columns: usize) -> Result<CsrView<'_>> {
        let (indptr, indices) = (format!("{name}_indptr"), format!("{name}_indices"));
        match self.by_blocks {
            true => {
                let (indptr, indices) = (self.lazy(&indptr)?, self.lazy(&indices)?);
                caught(|| CsrView::stored(indptr, indices, columns))
            }
            false => CsrView::new(self.values(&indptr)?, self.values(&indices)?, columns),
        }
        .map_err(|e| damaged(name, e))
    }

    /// Return rows with `NAME_tf`: a count parallel to each id.
    pub fn counted_rows(&self, name: &str, columns: usize) -> Result<(CsrView<'_>, Items<'_, u32>)> {
        Ok((self.rows(name, columns)?, self.lazy(&format!("{name}_tf"))?))
    }

    /// Return `NAME_blob` and `NAME_offsets` as strings.
    pub fn strings(&self, name: &str) -> Result<Strings<'_>> {
        let (blob, offsets) = (format!("{name}_blob"), format!("{name}_offsets"));
        match self.by_blocks {
            true => {
                let (blob, offsets) = (self.items(&blob)?, self.lazy(&offsets)?);
                caught(|| Strings::stored(blob, offsets))
            }
            false => Strings::new(self.values(&blob)?, self.values(&offsets)?),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{file_tree, pack, Shape, Tree};
    use std::path::{Path, PathBuf};

    const COUNT: usize = SMALL / size_of::<u64>() + 10;

    /// Write an array in the format of an index, with the hashes of its blocks. If `damaged`, flip a bit in
    /// its middle.
    fn stored<T: Item>(folder: &Path, name: &str, values: &[T], damaged: bool) -> Arc<MappedFile> {
        let shape = Shape { kind: T::KIND, rows: values.len(), columns: None };
        let mut packed = pack(shape, bytemuck::cast_slice(values), 2, &Progress::none()).unwrap().unwrap();
        let (path, side) = (folder.join(name), folder.join(format!("{name}.b3")));
        std::fs::write(&path, &packed).unwrap();
        let (digest, hashes) = file_tree(&path, &Progress::none()).unwrap();
        std::fs::write(&side, hashes.concat()).unwrap();
        if damaged {
            let middle = packed.len() / 2;
            packed[middle] ^= 1;
            std::fs::write(&path, packed).unwrap();
        }
        let file = Arc::new(MappedFile::open(&side, None, None, None).unwrap());
        Arc::new(MappedFile::open(&path, None, Some(digest), Some(Tree { file, start: 0 })).unwrap())
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ketrag-arrays-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn arrays<const N: usize>(files: [(&str, Arc<MappedFile>); N]) -> Arrays {
        Arrays::new(files.map(|(name, file)| (name.to_owned(), file)), true)
    }

    /// Return ends of rows whose lengths are 0 to 3.
    fn ends() -> Vec<u64> {
        let lengths = (0..COUNT).map(|at| (at * 7_919 % 4) as u64);
        let ends = lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    #[test]
    fn large_rows_and_strings_are_read_in_any_part_as_they_were_written() {
        let (folder, ends) = (folder("lazy"), ends());
        let ids: Vec<u32> = (0..ends[COUNT] as u32).map(|id| id % 1_000).collect();
        let blob: Vec<u8> = ids.iter().map(|&id| b'a' + (id % 26) as u8).collect();
        let arrays = arrays([
            ("x.rows_indptr", stored(&folder, "indptr", &ends, false)),
            ("x.rows_indices", stored(&folder, "indices", &ids, false)),
            ("x.words_blob", stored(&folder, "blob", &blob, false)),
            ("x.words_offsets", stored(&folder, "offsets", &ends, false)),
        ]);
        assert!(
            arrays.is_lazy("x.rows_indptr").unwrap() && arrays.shared("x.words_offsets").unwrap().is_some()
        );
        let (rows, words) = (arrays.rows("x.rows", 1_000).unwrap(), arrays.strings("x.words").unwrap());
        assert_eq!((rows.rows(), words.len()), (COUNT, COUNT));
        for at in (0..COUNT).rev().step_by(997).chain([0, COUNT - 1]) {
            let range = ends[at] as usize..ends[at + 1] as usize;
            assert_eq!((rows.range(at), rows.len_of(at)), (range.clone(), range.len()));
            assert_eq!(rows.row(at), &ids[range.clone()]);
            assert_eq!(words.get(at).as_bytes(), &blob[range]);
        }
        assert_eq!(rows.indptr.all(), ends);
        drop(arrays);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn damaged_offsets_are_an_error_where_they_are_read() {
        let (folder, ends) = (folder("damaged"), ends());
        let ids = vec![3u32; ends[COUNT] as usize];
        let arrays = arrays([
            ("x.rows_indptr", stored(&folder, "indptr", &ends, true)),
            ("x.rows_indices", stored(&folder, "indices", &ids, false)),
        ]);
        let rows = arrays.rows("x.rows", 10).unwrap();
        assert_eq!(rows.len_of(0) as u64, ends[1]);
        assert_eq!(rows.len_of(COUNT - 1) as u64, ends[COUNT] - ends[COUNT - 1]);
        let read = caught(|| Ok((0..COUNT).map(|at| rows.len_of(at)).sum::<usize>()));
        assert!(matches!(&read, Err(Error::Damaged(text)) if text.contains("indptr")), "{read:?}");
        drop(arrays);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
