//! Packed strings, spliced rows, and patterns that are matched against lines of strings.

use crate::arrays::{csr_out, strings_out, Array, CsrIn, CsrOut, Matrix, Out, Packed, StringsOut};
use crate::door::quick;
use ketrag_base::error::{Error, Result};
use ketrag_base::sparse::{splice, Source, ANY};
use ketrag_text::grep::{Pattern, Reading};
use ketrag_text::labels::label_of;
use ketrag_text::merged::merge;
use ketrag_text::strings::{gaps, joined, restore, slices, take, StringsBuf};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Return the strings with these ids, in this order.
#[pyfunction]
pub fn take_strings(py: Python<'_>, strings: Packed<'_>, ids: Array<'_, u32>) -> PyResult<StringsOut> {
    quick(py, || take(strings.view()?, &ids)).map(strings_out)
}

/// Return titles, each with the label of its document ([`label_of`]), for `links_build`. A row without metadata has those of
/// the row before it if both have the same id, as the sections of a document do.
#[pyfunction]
#[pyo3(signature = (titles, ids, metadata=None))]
pub fn label_titles(
    py: Python<'_>,
    titles: Packed<'_>,
    ids: Packed<'_>,
    metadata: Option<Packed<'_>>,
) -> PyResult<StringsOut> {
    let label = || -> Result<StringsBuf> {
        let (titles, ids) = (titles.view()?, ids.view()?);
        let metadata = metadata.as_ref().map(|metadata| metadata.view()).transpose()?;
        let counts = [titles.len(), metadata.map_or(ids.len(), |metadata| metadata.len())];
        if counts.iter().any(|&count| count != ids.len()) {
            return Err(Error::input(format!("{counts:?} titles and metadata do not fit {} ids", ids.len())));
        }
        let mut found = StringsBuf::default();
        let mut label = String::new();
        for row in 0..ids.len() {
            let own = metadata.map_or("", |metadata| metadata.get(row));
            if row == 0 || !own.is_empty() || ids.bytes(row) != ids.bytes(row - 1) {
                label = label_of(ids.get(row), own);
            }
            found.push(&[titles.get(row), &label].concat());
        }
        Ok(found)
    };
    quick(py, label).map(strings_out)
}

/// Return substrings: bytes `spans[i]` of string `owners[i]`.
#[pyfunction]
pub fn slice_strings(
    py: Python<'_>,
    strings: Packed<'_>,
    owners: Array<'_, u32>,
    spans: Matrix<'_, u32>,
) -> PyResult<StringsOut> {
    quick(py, || slices(strings.view()?, &owners, &spans)).map(strings_out)
}

/// Return the strings of two lists of equal length, each of the second after that of the first.
#[pyfunction]
pub fn append_strings(py: Python<'_>, first: Packed<'_>, second: Packed<'_>) -> PyResult<StringsOut> {
    quick(py, || {
        let (one, two) = (first.view()?, second.view()?);
        if one.len() != two.len() {
            return Err(Error::input(format!("the lists have {} and {} strings", two.len(), one.len())));
        }
        Ok((0..one.len()).map(|at| [one.get(at), two.get(at)].concat()).collect())
    })
    .map(strings_out)
}

/// Return, for each string, the parts that no span covers. Span `i` covers bytes `spans[i]` of string
/// `owners[i]`.
#[pyfunction]
pub fn string_gaps(
    py: Python<'_>,
    strings: Packed<'_>,
    owners: Array<'_, u32>,
    spans: Matrix<'_, u32>,
) -> PyResult<StringsOut> {
    quick(py, || gaps(strings.view()?, &owners, &spans)).map(strings_out)
}

/// Rebuild strings from the pieces that `slice_strings` returned and the gaps that `string_gaps` returned.
#[pyfunction]
pub fn restore_strings(
    py: Python<'_>,
    pieces: Packed<'_>,
    owners: Array<'_, u32>,
    spans: Matrix<'_, u32>,
    rests: Packed<'_>,
) -> PyResult<StringsOut> {
    quick(py, || restore(pieces.view()?, &owners, &spans, rests.view()?)).map(strings_out)
}

/// Return the positions of the `count` strings of smallest BLAKE3 hash, ascending.
#[pyfunction]
pub fn smallest_hashes(py: Python<'_>, strings: Packed<'_>, count: usize) -> PyResult<Out<u32>> {
    quick(py, || Ok(ketrag_text::strings::smallest_hashes(strings.view()?, count))).map(Out)
}

/// Return the strings with these ids from two concatenated lists, in this order.
#[pyfunction]
pub fn splice_strings(
    py: Python<'_>,
    first: Packed<'_>,
    second: Packed<'_>,
    ids: Array<'_, u32>,
) -> PyResult<StringsOut> {
    quick(py, || joined(first.view()?, second.view()?, &ids)).map(strings_out)
}

type Merged = (StringsOut, Out<u32>, Out<u32>);

/// Merge two sorted lists of strings and return the position of each string in the result; of the first only
/// those that are `used`. 2^32 - 1 means that a string was removed.
#[pyfunction]
pub fn merge_strings(
    py: Python<'_>,
    first: Packed<'_>,
    used: Array<'_, u8>,
    second: Packed<'_>,
) -> PyResult<Merged> {
    let out = quick(py, || merge(first.view()?, &used, second.view()?))?;
    Ok((strings_out(out.strings), Out(out.first), Out(out.second)))
}

/// Return the wanted rows of two concatenated graphs, in this order. `first_numbers` and `second_numbers`
/// renumber the values; empty ones keep them.
#[pyfunction]
pub fn splice_rows(
    py: Python<'_>,
    first: CsrIn<'_>,
    first_numbers: Array<'_, u32>,
    second: CsrIn<'_>,
    second_numbers: Array<'_, u32>,
    rows: Array<'_, u32>,
) -> PyResult<CsrOut> {
    quick(py, || {
        let first = Source::new(&first.0, &first.1, &first_numbers)?;
        let second = Source::new(&second.0, &second.1, &second_numbers)?;
        let columns = if first.numbers.is_empty() { ANY } else { u32::MAX as usize };
        splice(first, second, &rows, columns)
    })
    .map(csr_out)
}

/// String, line, start and end, text, code points cut before it, matches in the text.
type Line = (usize, usize, usize, usize, String, usize, Vec<(usize, usize)>);

/// A regular expression that is matched in linear time, line by line.
#[pyclass(frozen, name = "Pattern", module = "ketrag_fast._core")]
pub struct PyPattern(pub Pattern);

#[pymethods]
impl PyPattern {
    #[new]
    #[pyo3(signature = (pattern, *, any_case=false, words=false, literal=false))]
    fn new(py: Python<'_>, pattern: String, any_case: bool, words: bool, literal: bool) -> PyResult<Self> {
        quick(py, || Pattern::new(&pattern, Reading { any_case, words, literal })).map(Self)
    }

    /// Return the matching lines, at most `each` of one string and `most` in all.
    fn lines(&self, py: Python<'_>, strings: Packed<'_>, each: usize, most: usize) -> PyResult<Vec<Line>> {
        let found = quick(py, || Ok(self.0.lines(strings.view()?, each, most)))?;
        Ok(found
            .into_iter()
            .map(|one| (one.string, one.line, one.span.0, one.span.1, one.text, one.cut, one.marks))
            .collect())
    }

    /// Return, for each text, one byte: 1 if it has a matching line.
    fn mask<'py>(&self, py: Python<'py>, texts: Vec<String>) -> PyResult<Bound<'py, PyBytes>> {
        let mask =
            quick(py, || Ok(texts.iter().map(|text| u8::from(self.0.is_in(text))).collect::<Vec<_>>()))?;
        Ok(PyBytes::new(py, &mask))
    }

    /// Return the number of matching lines of each string, counted up to `each`.
    fn counts(&self, py: Python<'_>, strings: Packed<'_>, each: usize) -> PyResult<Out<u32>> {
        quick(py, || Ok(self.0.counts(strings.view()?, each))).map(Out)
    }
}
