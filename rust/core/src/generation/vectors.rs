//! Views of vectors and of their eight-bit copies.

use super::arrays::{damaged, Arrays};
use crate::error::{Error, Result};
use crate::vector::quantised::QuantisedView;
use crate::vector::Vectors;

/// With codes, a query reads only a few of the vectors, and the codes bound their lengths; without codes it
/// reads all of them.
pub(super) fn vectors<'a>(
    arrays: &'a Arrays,
    name: &str,
    rows: usize,
    codes: Option<&QuantisedView<'a>>,
) -> Result<Vectors<'a>> {
    let dimension = arrays.shape(name)?.1;
    let made = match codes.filter(|_| arrays.by_blocks()) {
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
pub(super) fn codes<'a>(arrays: &'a Arrays, name: &str) -> Result<QuantisedView<'a>> {
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
