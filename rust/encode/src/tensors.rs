//! A mapped `model.safetensors` file, whose header is checked against the file before it is used.
//!
//! Format: eight bytes with the header's length, a JSON object with each tensor's type, shape and position,
//! then the bytes of all tensors (github.com/huggingface/safetensors, "Format").

use crate::error::{Error, Result};
use memmap2::Mmap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Longer headers are rejected: real ones take a few hundred bytes per tensor.
const LONGEST_HEADER: u64 = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    F16,
    Bf16,
}

/// Position of a tensor. Non-float types are recorded only by position, so that reading one reports its type.
#[derive(Debug)]
struct Entry {
    kind: Option<Kind>,
    shape: Vec<usize>,
    start: usize,
    end: usize,
}

/// The tensors of one file. The file must not change while it is mapped.
#[derive(Debug)]
pub struct Tensors {
    map: Mmap,
    entries: BTreeMap<String, Entry>,
    path: String,
}

/// One float tensor whose position has been checked.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    kind: Kind,
    bytes: &'a [u8],
    /// Length of the last dimension.
    columns: usize,
}

impl Tensors {
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| Error::io(format!("{name}: {e}")).caused_by(e);
        let file = File::open(path).map_err(failed)?;
        // SAFETY: this package never writes to a model's folder; a program that alters its files while they
        // are open violates the contract of the mapping.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let entries = header(&map).map_err(|what| Error::damaged(format!("{name}: {what}")))?;
        Ok(Self { map, entries, path: name })
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Return the tensor `name`, if it is of floats and has exactly this shape.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor<'_>> {
        let wrong = |what: String| Error::damaged(format!("{}: tensor {name} {what}", self.path));
        let entry = self.entries.get(name).ok_or_else(|| wrong("is missing".into()))?;
        if entry.shape != shape {
            return Err(wrong(format!("has shape {:?}, the configuration requires {shape:?}", entry.shape)));
        }
        let kind = entry.kind.ok_or_else(|| wrong("is not of f32, f16 or bf16".into()))?;
        let bytes = &self.map[entry.start..entry.end];
        Ok(Tensor { kind, bytes, columns: shape.last().copied().unwrap_or(1) })
    }

    /// Like [`Tensors::get`], and every value is finite.
    pub fn finite(&self, name: &str, shape: &[usize]) -> Result<Tensor<'_>> {
        let tensor = self.get(name, shape)?;
        if tensor.is_finite() {
            Ok(tensor)
        } else {
            Err(Error::damaged(format!("{}: tensor {name} holds NaN or an infinity", self.path)))
        }
    }
}

impl Tensor<'_> {
    /// Read row `row` of the last dimension as f32.
    ///
    /// # Panics
    /// If the row does not exist or `out` has another length.
    pub fn row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.columns);
        let size = self.kind.size() * self.columns;
        self.kind.read(&self.bytes[row * size..(row + 1) * size], out);
    }

    /// Return every value.
    pub fn to_vec(self) -> Vec<f32> {
        let mut out = vec![0.0; self.bytes.len() / self.kind.size()];
        self.kind.read(self.bytes, &mut out);
        out
    }

    fn is_finite(&self) -> bool {
        // Non-finite values have all exponent bits set. Blocks, so that it vectorises.
        match self.kind {
            Kind::F32 => self.bytes.chunks(4096).all(|block| {
                block.chunks_exact(4).fold(true, |fine, b| {
                    fine & (u32::from_le_bytes([b[0], b[1], b[2], b[3]]) & 0x7f80_0000 != 0x7f80_0000)
                })
            }),
            Kind::F16 | Kind::Bf16 => {
                let mask = if self.kind == Kind::F16 { 0x7c00 } else { 0x7f80 };
                self.bytes.chunks(4096).all(|block| {
                    block
                        .chunks_exact(2)
                        .fold(true, |fine, b| fine & (u16::from_le_bytes([b[0], b[1]]) & mask != mask))
                })
            }
        }
    }
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    fn read(self, bytes: &[u8], out: &mut [f32]) {
        match self {
            // A row of the word table is read for every token.
            Self::F32 if cfg!(target_endian = "little") && bytes.len() == 4 * out.len() => {
                bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
            }
            Self::F32 => {
                for (x, b) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                    *x = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                }
            }
            Self::F16 => {
                for (x, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *x = half(u16::from_le_bytes([b[0], b[1]]));
                }
            }
            Self::Bf16 => {
                for (x, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                    *x = f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
                }
            }
        }
    }
}

/// Convert an f16 to f32, exactly.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = if magnitude >= 0x7c00 {
        f32::from_bits(magnitude << 13 | 0x7f80_0000)
    } else if magnitude < 0x0400 {
        magnitude as f32 / 16_777_216.0 // 2^-24: below the normal numbers
    } else {
        f32::from_bits((magnitude << 13) + (112 << 23))
    };
    f32::from_bits(value.to_bits() | sign)
}

fn header(bytes: &[u8]) -> std::result::Result<BTreeMap<String, Entry>, String> {
    let length = bytes.first_chunk::<8>().ok_or("too short for a header")?;
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER || length > bytes.len() as u64 - 8 {
        return Err(format!("a header of {length} bytes does not fit the file of {}", bytes.len()));
    }
    let data = 8 + length as usize;
    let value: Value = serde_json::from_slice(&bytes[8..data]).map_err(|e| format!("header: {e}"))?;
    let Value::Object(object) = value else { return Err("the header is not a JSON object".into()) };
    let mut entries = BTreeMap::new();
    for (name, value) in object {
        if name != "__metadata__" {
            let entry = entry(&value, data, bytes.len())
                .ok_or_else(|| format!("tensor {name}: the header lies about its place or shape"))?;
            entries.insert(name, entry);
        }
    }
    let mut places: Vec<(usize, usize)> = entries.values().map(|e| (e.start, e.end)).collect();
    places.sort_unstable();
    if places.windows(2).any(|w| w[1].0 < w[0].1) {
        return Err("tensors overlap".into());
    }
    Ok(entries)
}

fn entry(value: &Value, data: usize, end_of_file: usize) -> Option<Entry> {
    let whole = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    let shape: Vec<usize> = value.get("shape")?.as_array()?.iter().map(whole).collect::<Option<_>>()?;
    let offsets = value.get("data_offsets")?.as_array()?;
    let [start, end] = offsets.as_slice() else { return None };
    let (start, end) = (whole(start)?.checked_add(data)?, whole(end)?.checked_add(data)?);
    if start > end || end > end_of_file {
        return None;
    }
    let kind = match value.get("dtype")?.as_str()? {
        "F32" => Some(Kind::F32),
        "F16" => Some(Kind::F16),
        "BF16" => Some(Kind::Bf16),
        _ => None,
    };
    let count = shape.iter().try_fold(1usize, |n, &x| n.checked_mul(x))?;
    if let Some(kind) = kind {
        if count.checked_mul(kind.size())? != end - start {
            return None;
        }
    }
    Some(Entry { kind, shape, start, end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Tensors> {
        let id = std::thread::current().id();
        let path = std::env::temp_dir().join(format!("ketrag-tensors-{}-{id:?}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let tensors = Tensors::open(&path);
        std::fs::remove_file(&path).unwrap();
        tensors
    }

    #[test]
    fn the_three_types_are_read() {
        let header = r#"{"__metadata__":{"format":"pt"},
        "a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
        "b":{"dtype":"F16","shape":[5],"data_offsets":[16,26]},
        "c":{"dtype":"BF16","shape":[2],"data_offsets":[26,30]},
        "d":{"dtype":"I64","shape":[1],"data_offsets":[30,38]}}"#;
        let mut data: Vec<u8> = [1.0f32, -2.5, 3.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
        data.extend([0x3c00u16, 0xc100, 0x0001, 0x7c00, 0x8000].iter().flat_map(|x| x.to_le_bytes()));
        data.extend([0x3f80u16, 0xc040].iter().flat_map(|x| x.to_le_bytes()));
        data.extend([0; 8]);
        let tensors = open(&file(header, &data)).unwrap();
        let mut row = [0.0; 2];
        tensors.get("a", &[2, 2]).unwrap().row(0, &mut row);
        assert_eq!(row, [1.0, -2.5]);
        let halves = tensors.get("b", &[5]).unwrap().to_vec();
        assert_eq!(halves, [1.0, -2.5, 2f32.powi(-24), f32::INFINITY, 0.0]);
        assert_eq!(tensors.finite("c", &[2]).unwrap().to_vec(), [1.0, -3.0]);
        for (name, shape) in [("a", vec![2, 2]), ("b", vec![5])] {
            assert!(matches!(tensors.finite(name, &shape), Err(Error::Damaged(_))), "{name} is not finite");
        }
        for (name, shape) in [("a", vec![4]), ("d", vec![1]), ("e", vec![1])] {
            assert!(matches!(tensors.get(name, &shape), Err(Error::Damaged(_))), "{name}");
        }
        assert!(tensors.has("c") && !tensors.has("e"));
    }

    #[test]
    fn lying_headers_are_refused() {
        let one = |entry: &str| file(&format!("{{\"a\":{entry}}}"), &[0; 16]);
        let cases = [
            vec![],
            vec![1, 2, 3],
            u64::MAX.to_le_bytes().to_vec(),
            file("", &[]),
            file("[]", &[]),
            file("{\"a\":", &[]),
            file(&"[".repeat(100_000), &[]),
            one("1"),
            one(r#"{"dtype":"F32","shape":[4]}"#),
            one(r#"{"dtype":"F32","shape":[4],"data_offsets":[0,20]}"#),
            one(r#"{"dtype":"F32","shape":[4],"data_offsets":[16,0]}"#),
            one(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,16]}"#),
            one(r#"{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}"#),
            one(r#"{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}"#),
            one(r#"{"dtype":"F32","shape":[4],"data_offsets":[18446744073709551600,18446744073709551615]}"#),
            file(
                r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
                &[0; 16],
            ),
        ];
        for bytes in cases {
            assert!(matches!(open(&bytes), Err(Error::Damaged(_) | Error::Io(_))), "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), small: bool) {
            if small && bytes.len() > 8 {
                bytes[1..8].fill(0);
            }
            if let Ok(tensors) = open(&bytes) {
                prop_assert!(tensors.get("a", &[1]).is_err());
            }
        }
    }
}
