//! NumPy `.npy` files, mapped read-only: every process that opens an index shares its arrays, and any tool
//! that reads NumPy files can inspect them. Packed arrays ([`super::pack`]) look the same from outside.

use super::mapped::MappedFile;
use super::pack::MAGIC;
use super::pack::{Item, Kind};
use super::unpacked::{Changes, Compose, Unpacked};
use crate::error::{caught, Error, Result};
use crate::guard::Guard;
use crate::items::Items;
use crate::progress::Progress;
use std::sync::Arc;

/// An array of one or two dimensions in a mapped file.
#[derive(Debug)]
pub struct MappedArray {
    kind: Kind,
    rows: usize,
    columns: Option<usize>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// The values from an offset on.
    Plain(Arc<MappedFile>, usize),
    Packed(Unpacked),
}

impl MappedArray {
    /// Verify the block of the header and check the header against the file size.
    pub fn new(file: Arc<MappedFile>) -> Result<Self> {
        const LONGEST: usize = 1 << 10;
        if let Some(guard) = file.guard(0, 1) {
            caught(|| {
                guard.check(0..LONGEST.min(file.bytes().len()).max(1));
                Ok(())
            })?;
        }
        if file.bytes().starts_with(&MAGIC[..6]) {
            let body = Unpacked::new(file)?;
            let shape = body.shape();
            let (kind, rows, columns) = (shape.kind, shape.rows, shape.columns);
            return Ok(Self { kind, rows, columns, body: Body::Packed(body) });
        }
        let name = file.name();
        let (start, kind, rows, columns) =
            header(file.bytes()).map_err(|what| Error::damaged(format!("{name}: {what}")))?;
        let bytes = rows
            .checked_mul(columns.unwrap_or(1))
            .and_then(|n| n.checked_mul(kind.size()))
            .and_then(|n| n.checked_add(start));
        if bytes != Some(file.bytes().len()) {
            return Err(Error::damaged(format!(
                "{name}: {} bytes, but its header promises {rows} x {} values of {kind:?}",
                file.bytes().len(),
                columns.unwrap_or(1),
            )));
        }
        Ok(Self { kind, rows, columns, body: Body::Plain(file, start) })
    }

    /// Return an array whose values are assembled when they are read.
    pub fn composed(array: Box<dyn Compose>) -> Result<Self> {
        let body = Unpacked::composed(array)?;
        let shape = body.shape();
        let (kind, rows, columns) = (shape.kind, shape.rows, shape.columns);
        Ok(Self { kind, rows, columns, body: Body::Packed(body) })
    }

    /// Return whether the values are assembled when they are read.
    pub fn is_composed(&self) -> bool {
        matches!(&self.body, Body::Packed(unpacked) if unpacked.is_composed())
    }

    /// Return the changes if this array is stored as changes to an earlier array.
    pub fn changes(&self) -> Option<Changes<'_>> {
        match &self.body {
            Body::Plain(..) => None,
            Body::Packed(unpacked) => unpacked.changes(),
        }
    }

    /// Return the number of columns of an array of two dimensions.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Return all values in row order, verified and unpacked.
    pub fn values<T: Item>(&self) -> Result<&[T]> {
        self.expect(T::KIND)?;
        match &self.body {
            Body::Plain(file, start) => {
                file.ensure(0)?;
                plain(file, *start)
            }
            Body::Packed(unpacked) => unpacked.values(),
        }
    }

    /// Return the values with their guard, or without one if everything is verified. Not for packed arrays.
    pub fn guarded<T: Item>(&self) -> Result<(&[T], Option<Guard<'_>>)> {
        self.expect(T::KIND)?;
        match &self.body {
            Body::Plain(file, start) => Ok((plain(file, *start)?, file.guard(*start, self.kind.size()))),
            Body::Packed(_) => Err(Error::Internal("a packed array cannot be read in place".into())),
        }
    }

    /// Return the values, which are verified and unpacked individually when they are read.
    pub fn items<T: Item>(&self) -> Result<Items<'_, T>> {
        self.expect(T::KIND)?;
        match &self.body {
            Body::Plain(file, start) => {
                Ok(Items::guarded(plain(file, *start)?, file.guard(*start, self.kind.size())))
            }
            Body::Packed(unpacked) => Ok(unpacked.items()),
        }
    }

    /// Verify and unpack everything that no query has read yet.
    pub fn read_ahead(&self, progress: &Progress) -> Result<()> {
        match &self.body {
            Body::Plain(file, _) => file.read_ahead(progress),
            Body::Packed(unpacked) => unpacked.read_ahead(progress),
        }
    }

    /// Return the size of the values in bytes.
    pub fn size(&self) -> usize {
        match &self.body {
            Body::Plain(file, start) => file.bytes().len() - start,
            Body::Packed(unpacked) => unpacked.size(),
        }
    }

    fn expect(&self, kind: Kind) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        let name = match &self.body {
            Body::Plain(file, _) => file.name(),
            Body::Packed(unpacked) => unpacked.name(),
        };
        Err(Error::damaged(format!("{name}: holds {:?}, but {kind:?} is expected", self.kind)))
    }

    /// Return the type of the values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Return (rows, columns); a vector has one column.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns.unwrap_or(1))
    }
}

fn plain<T: Item>(file: &MappedFile, start: usize) -> Result<&[T]> {
    bytemuck::try_cast_slice(&file.bytes()[start..])
        .map_err(|e| Error::damaged(format!("{}: {e}", file.name())))
}

type Header = (usize, Kind, usize, Option<usize>);

/// Parse a header of format 1.0 or 2.0: offset of the data, kind and shape.
fn header(bytes: &[u8]) -> std::result::Result<Header, String> {
    if bytes.len() < 12 || &bytes[..6] != b"\x93NUMPY" {
        return Err("not a NumPy array file".into());
    }
    let (start, length) = match bytes[6] {
        1 => (10, u16::from_le_bytes([bytes[8], bytes[9]]) as usize),
        2 => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
        version => return Err(format!("NumPy format {version} is not supported")),
    };
    let text = bytes
        .get(start..start + length)
        .and_then(|b| std::str::from_utf8(b).ok())
        .ok_or("the header is cut short or not text")?;
    let after = |key: &str| text.split_once(key).map(|(_, rest)| rest.trim_start());
    let descr = after("'descr':")
        .and_then(|rest| rest.strip_prefix('\''))
        .and_then(|rest| rest.split_once('\''))
        .map(|(descr, _)| descr)
        .ok_or("the header names no type")?;
    let kind = Kind::parse(descr).ok_or_else(|| format!("type {descr} is not used in an index"))?;
    if !after("'fortran_order':").is_some_and(|rest| rest.starts_with("False")) {
        return Err("the array is not in C order".into());
    }
    let shape = after("'shape':")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'))
        .map(|(shape, _)| shape)
        .ok_or("the header names no shape")?;
    let sizes: std::result::Result<Vec<usize>, _> =
        shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::parse).collect();
    match sizes.map_err(|_| format!("shape ({shape}) is not understood"))?[..] {
        [rows] => Ok((start + length, kind, rows, None)),
        [rows, columns] => Ok((start + length, kind, rows, Some(columns))),
        _ => Err(format!("shape ({shape}) has neither one nor two dimensions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + text.len() + 1) % 64 != 0 {
            text.push(' ');
        }
        text.push('\n');
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(data);
        file
    }

    fn open(bytes: &[u8], name: &str) -> Result<MappedArray> {
        let path = std::env::temp_dir().join(format!("ketrag-npy-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let file = MappedFile::open(&path, None, Some(blake3::hash(bytes)), None).unwrap();
        let array = MappedArray::new(Arc::new(file));
        std::fs::remove_file(&path).unwrap();
        array
    }

    #[test]
    fn values_and_shapes_come_back() {
        let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let array = open(&npy("<f4", "(2, 3)", &data), "good").unwrap();
        assert_eq!(array.shape(), (2, 3));
        assert_eq!(array.values::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(array.values::<u32>().is_err());
        assert_eq!(open(&npy("|u1", "(0,)", &[]), "empty").unwrap().values::<u8>().unwrap(), [0u8; 0]);
    }

    #[test]
    fn lies_are_refused() {
        let good = npy("<u4", "(2,)", &[0; 8]);
        assert!(open(&good[..good.len() - 1], "short").is_err());
        assert!(open(&[&good[..], &[0]].concat(), "long").is_err());
        assert!(open(&npy("|O", "(1,)", &[0; 8]), "object").is_err());
        assert!(open(&npy("<u4", "(2, 1, 1)", &[0; 8]), "cube").is_err());
        assert!(open(&npy("<u8", "(18446744073709551615, 9)", &[0; 8]), "huge").is_err());
        assert!(open(&[], "none").is_err());
    }

    proptest! {
        #[test]
        fn no_header_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), keep in 0usize..120) {
            let mut file = npy("<u4", "(2,)", &[0; 8]);
            let _ = header(&bytes);
            file.truncate(keep);
            file.extend(&bytes);
            let _ = header(&file);
        }
    }
}
