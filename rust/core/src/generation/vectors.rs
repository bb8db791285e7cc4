//! Views of vectors, of their eight-bit copies, and of vectors stored only as codes.

use super::arrays::{damaged, Arrays};
use crate::error::{Error, Result};
use crate::vector::quantised::QuantisedView;
use crate::vector::{Coded, Rows, Signs, Vectors};

/// With codes, a query reads only a few of the vectors, and the codes bound their lengths. Without codes it
/// reads all vectors.
pub fn vectors<'a>(
    arrays: &'a Arrays,
    name: &str,
    rows: usize,
    codes: Option<&QuantisedView<'a>>,
) -> Result<Vectors<'a>> {
    let dimension = arrays.shape(name)?.1;
    let made = match codes.filter(|_| arrays.is_mapped(name)) {
        Some(codes) => {
            let (values, guard) = arrays.sparse::<f32>(name)?;
            Vectors::trusted(values, dimension, codes.norm_bound(dimension)).map(|v| v.guarded(guard))
        }
        None => Vectors::new(arrays.values(name)?, dimension),
    };
    let made = made.map_err(|e| damaged(name, e))?;
    if made.len() != rows {
        return Err(Error::damaged(format!("{name} has {} rows, not {rows}", made.len())));
    }
    Ok(made)
}

/// Return `NAME_codes`, `NAME_scale` and `NAME_residual`. A search reads all of them.
pub fn codes<'a>(arrays: &'a Arrays, name: &str) -> Result<QuantisedView<'a>> {
    let codes = format!("{name}_codes");
    let (values, dimension) = (arrays.values(&codes)?, arrays.shape(&codes)?.1);
    let scale = arrays.values(&format!("{name}_scale"))?;
    let residual = arrays.values(&format!("{name}_residual"))?;
    match arrays.by_blocks() {
        true => QuantisedView::stored(values, scale, residual, dimension),
        false => QuantisedView::new(values, scale, residual, dimension),
    }
    .map_err(|e| damaged(&codes, e))
}

/// Return stored rows in their own format: `NAME_vectors` in f32, otherwise `NAME_nibbles` or `NAME_codes`
/// with `NAME_scale`. The dimension of packed rows is stored in `vectors.dimension`.
pub fn rows<'a>(arrays: &'a Arrays, name: &str, count: usize) -> Result<Rows<'a>> {
    let floats = format!("{name}_vectors");
    if arrays.has(&floats) {
        let codes = match arrays.has(&format!("{name}_codes")) {
            true => Some(codes(arrays, name)?),
            false => None,
        };
        return Ok(Rows::Floats(vectors(arrays, &floats, count, codes.as_ref())?, codes));
    }
    let scale = arrays.exactly(&format!("{name}_scale"), count)?;
    let nibbles = format!("{name}_nibbles");
    let made = match arrays.has(&nibbles) {
        true => Coded::nibbles(arrays.values(&nibbles)?, scale, dimension(arrays)?),
        false => {
            let bytes = format!("{name}_codes");
            Coded::bytes(arrays.values(&bytes)?, scale, arrays.shape(&bytes)?.1)
        }
    };
    Ok(Rows::Coded(made.map_err(|e| damaged(&nibbles, e))?))
}

/// Return the signs of `count` vectors.
pub fn signs<'a>(arrays: &'a Arrays, name: &str, count: usize) -> Result<Signs<'a>> {
    let made = Signs::new(arrays.values(name)?, dimension(arrays)?).map_err(|e| damaged(name, e))?;
    match made.len() == count {
        true => Ok(made),
        false => Err(Error::damaged(format!("{name} has {} rows, not {count}", made.len()))),
    }
}

/// Return the number of values of a model's vectors.
fn dimension(arrays: &Arrays) -> Result<usize> {
    Ok(arrays.exactly::<u32>("vectors.dimension", 1)?[0] as usize)
}
