//! Packed strings, spliced rows, and patterns that are matched against lines of strings.

use crate::arrays::{matrix, slice, strings_out, Array, CsrArrays, CsrIn, Matrix, Out, Packed, StringArrays};
use crate::door::quick;
use ketrag_base::error::Error;
use ketrag_base::sparse::{splice, Source, ANY};
use ketrag_text::grep::{Pattern, Reading};
use ketrag_text::merged::merge;
use ketrag_text::strings::{gaps, restore};
use ketrag_text::strings::{joined, slices, take, Strings};
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// Return the strings with these ids, in this order.
#[pyfunction]
pub fn take_strings<'py>(
    py: Python<'py>,
    strings: Packed<'py>,
    ids: Array<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    let ids = slice(&ids, "ids")?;
    let out = quick(py, || take(Strings::new(blob, offsets)?, ids))?;
    Ok(strings_out(py, out))
}

/// Return substrings: bytes `spans[i]` of string `owners[i]`.
#[pyfunction]
pub fn slice_strings<'py>(
    py: Python<'py>,
    strings: Packed<'py>,
    owners: Array<'py, u32>,
    spans: Matrix<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    let (owners, (spans, _, _)) = (slice(&owners, "owners")?, matrix(&spans, "spans")?);
    let out = quick(py, || slices(Strings::new(blob, offsets)?, owners, spans))?;
    Ok(strings_out(py, out))
}

/// Return the strings of two lists of equal length, each of the second after that of the first.
#[pyfunction]
pub fn append_strings<'py>(
    py: Python<'py>,
    first: Packed<'py>,
    second: Packed<'py>,
) -> PyResult<StringArrays<'py>> {
    let one = (slice(&first.0, "blob")?, slice(&first.1, "offsets")?);
    let two = (slice(&second.0, "blob")?, slice(&second.1, "offsets")?);
    let out = quick(py, || {
        let (one, two) = (Strings::new(one.0, one.1)?, Strings::new(two.0, two.1)?);
        if one.len() != two.len() {
            return Err(Error::input(format!("{} strings for {}", two.len(), one.len())));
        }
        Ok((0..one.len()).map(|at| [one.get(at), two.get(at)].concat()).collect())
    })?;
    Ok(strings_out(py, out))
}

/// Return, for each string, the parts that no span covers. Span `i` covers bytes `spans[i]` of string
/// `owners[i]`.
#[pyfunction]
pub fn string_gaps<'py>(
    py: Python<'py>,
    strings: Packed<'py>,
    owners: Array<'py, u32>,
    spans: Matrix<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    let (owners, (spans, _, _)) = (slice(&owners, "owners")?, matrix(&spans, "spans")?);
    let out = quick(py, || gaps(Strings::new(blob, offsets)?, owners, spans))?;
    Ok(strings_out(py, out))
}

/// Rebuild strings from the pieces that `slice_strings` returned and the gaps that `string_gaps` returned.
#[pyfunction]
pub fn restore_strings<'py>(
    py: Python<'py>,
    pieces: Packed<'py>,
    owners: Array<'py, u32>,
    spans: Matrix<'py, u32>,
    rests: Packed<'py>,
) -> PyResult<StringArrays<'py>> {
    let (blob, offsets) = (slice(&pieces.0, "blob")?, slice(&pieces.1, "offsets")?);
    let (rest, ends) = (slice(&rests.0, "blob")?, slice(&rests.1, "offsets")?);
    let (owners, (spans, _, _)) = (slice(&owners, "owners")?, matrix(&spans, "spans")?);
    let out = quick(py, || restore(Strings::new(blob, offsets)?, owners, spans, Strings::new(rest, ends)?))?;
    Ok(strings_out(py, out))
}

/// Return the positions of the `count` strings of smallest BLAKE3 hash, ascending.
#[pyfunction]
pub fn smallest_hashes<'py>(py: Python<'py>, strings: Packed<'py>, count: usize) -> PyResult<Out<'py, u32>> {
    let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
    Ok(quick(py, || Ok(ketrag_text::strings::smallest_hashes(Strings::new(blob, offsets)?, count)))?
        .into_pyarray(py))
}

/// Return the strings with these ids from two concatenated lists, in this order.
#[pyfunction]
pub fn splice_strings<'py>(
    py: Python<'py>,
    first: Packed<'py>,
    second: Packed<'py>,
    ids: Array<'py, u32>,
) -> PyResult<StringArrays<'py>> {
    let one = (slice(&first.0, "blob")?, slice(&first.1, "offsets")?);
    let two = (slice(&second.0, "blob")?, slice(&second.1, "offsets")?);
    let ids = slice(&ids, "ids")?;
    let out = quick(py, || joined(Strings::new(one.0, one.1)?, Strings::new(two.0, two.1)?, ids))?;
    Ok(strings_out(py, out))
}

type Merged<'py> = (StringArrays<'py>, Out<'py, u32>, Out<'py, u32>);

/// Merge two sorted lists of strings and return the position of each string in the result; of the first only
/// those that are `used`. 2^32 - 1 means that a string was removed.
#[pyfunction]
pub fn merge_strings<'py>(
    py: Python<'py>,
    first: Packed<'py>,
    used: Array<'py, u8>,
    second: Packed<'py>,
) -> PyResult<Merged<'py>> {
    let one = (slice(&first.0, "blob")?, slice(&first.1, "offsets")?);
    let two = (slice(&second.0, "blob")?, slice(&second.1, "offsets")?);
    let used = slice(&used, "used")?;
    let out = quick(py, || merge(Strings::new(one.0, one.1)?, used, Strings::new(two.0, two.1)?))?;
    Ok((strings_out(py, out.strings), out.first.into_pyarray(py), out.second.into_pyarray(py)))
}

/// Return the wanted rows of two concatenated graphs, in this order. `first_numbers` and `second_numbers`
/// renumber the values; empty ones keep them.
#[pyfunction]
pub fn splice_rows<'py>(
    py: Python<'py>,
    first: CsrIn<'py>,
    first_numbers: Array<'py, u32>,
    second: CsrIn<'py>,
    second_numbers: Array<'py, u32>,
    rows: Array<'py, u32>,
) -> PyResult<CsrArrays<'py>> {
    let one =
        (slice(&first.0, "indptr")?, slice(&first.1, "indices")?, slice(&first_numbers, "first_numbers")?);
    let two = (
        slice(&second.0, "indptr")?,
        slice(&second.1, "indices")?,
        slice(&second_numbers, "second_numbers")?,
    );
    let rows = slice(&rows, "rows")?;
    let out = quick(py, || {
        let columns = if one.2.is_empty() { ANY } else { u32::MAX as usize };
        splice(Source::new(one.0, one.1, one.2)?, Source::new(two.0, two.1, two.2)?, rows, columns)
    })?;
    Ok((out.indptr.into_pyarray(py), out.indices.into_pyarray(py)))
}

/// String, line, start and end, text, code points cut before it, matches in the text.
type Line = (usize, usize, usize, usize, String, usize, Vec<(usize, usize)>);

/// A regular expression that is matched in linear time, line by line.
#[pyclass(frozen, name = "Pattern", module = "ketrag_fast._core")]
pub struct PyPattern(Pattern);

#[pymethods]
impl PyPattern {
    #[new]
    #[pyo3(signature = (pattern, *, any_case=false, words=false, literal=false))]
    fn new(py: Python<'_>, pattern: String, any_case: bool, words: bool, literal: bool) -> PyResult<Self> {
        quick(py, || Pattern::new(&pattern, Reading { any_case, words, literal })).map(Self)
    }

    /// Return the matching lines, at most `each` of one string and `most` in all.
    fn lines(&self, py: Python<'_>, strings: Packed<'_>, each: usize, most: usize) -> PyResult<Vec<Line>> {
        let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
        let found = quick(py, || Ok(self.0.lines(Strings::new(blob, offsets)?, each, most)))?;
        Ok(found
            .into_iter()
            .map(|one| (one.string, one.line, one.span.0, one.span.1, one.text, one.cut, one.marks))
            .collect())
    }

    /// Return the number of matching lines of each string, counted up to `each`.
    fn counts<'py>(&self, py: Python<'py>, strings: Packed<'py>, each: usize) -> PyResult<Out<'py, u32>> {
        let (blob, offsets) = (slice(&strings.0, "blob")?, slice(&strings.1, "offsets")?);
        Ok(quick(py, || Ok(self.0.counts(Strings::new(blob, offsets)?, each)))?.into_pyarray(py))
    }
}
