//! Binding of the patches of an index whose documents changed.

use super::arrays::slice;
use super::door::{long, to_python};
use super::files::FileIn;
use ketrag_base::error::{Error, Result};
use ketrag_core::generation::delta::{from_below, patches, Documents, New, Patches};
use ketrag_core::generation::{Arrays, Parts};
use ketrag_core::graph::links_delta::Of;
use ketrag_text::detection::Choice;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Name, what the values number, number of pieces, number of new values, length.
type Entry = (String, &'static str, usize, usize, u64);
type Numbers = Vec<(&'static str, usize)>;
type Found<'py> =
    (Vec<Entry>, Numbers, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

fn name_of(of: Of) -> &'static str {
    match of {
        Of::Nothing => "",
        Of::Keywords => "keywords",
        Of::Names => "names",
        Of::Subjects => "subjects",
        Of::Units => "units",
        Of::Documents => "documents",
        Of::Chunks => "chunks",
        Of::Labels => "labels",
    }
}

/// Return how the arrays of the stages "units" and "links" change when documents do: a list of arrays (name, what its
/// values number, number of pieces and of new values, length), a list of numberings (what, number of steps), and the
/// pieces (4 numbers each), new values and steps (2 numbers each) of all of them; or None if the index must be computed
/// as a whole.
///
/// `files` are the published arrays, `gone` documents that go, `before` the documents before which others come,
/// and `new` the arrays of the stage "units" of these documents alone. `behind` lists arrays that are changes of others, the
/// published ones first: the result is the changes of those below the last.
#[pyfunction]
#[pyo3(signature = (files, gone, before, new, *, language, behind=Vec::new(), report=None))]
#[allow(clippy::too_many_arguments)]
fn delta_patches<'py>(
    py: Python<'py>,
    files: BTreeMap<String, FileIn<'py>>,
    gone: PyReadonlyArray1<'py, u32>,
    before: PyReadonlyArray1<'py, u32>,
    new: BTreeMap<String, PyReadonlyArray1<'py, u64>>,
    language: &str,
    behind: Vec<BTreeMap<String, FileIn<'py>>>,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Found<'py>>> {
    let choice = Choice::by_name(language).map_err(to_python)?;
    let arrays_of = |files: BTreeMap<String, FileIn<'py>>| -> Result<Arrays> {
        let held = files.into_iter().map(|(name, file)| Ok((name, file.held()?)));
        Ok(Arrays::new(held.collect::<Result<Vec<_>>>()?, true))
    };
    let arrays = arrays_of(files).map_err(to_python)?;
    let levels = behind.into_iter().map(arrays_of).collect::<Result<Vec<_>>>().map_err(to_python)?;
    let (gone, before) = (slice(&gone, "gone")?, slice(&before, "before")?);
    let new: New = new
        .iter()
        .map(|(name, values)| Ok((name.clone(), slice(values, name)?.to_vec())))
        .collect::<PyResult<_>>()?;
    let found: Option<Patches> = long(py, report, |progress| {
        let parts = Parts::new(&arrays, language)?;
        let links = parts.links()?.ok_or_else(|| Error::damaged("the index has no links".to_owned()))?;
        let documents = Documents { gone, before, new: &new, language: choice };
        let Some(found) = patches(&arrays, links, &documents, progress)? else { return Ok(None) };
        levels.iter().try_fold(found, |found, level| from_below(level, found)).map(Some)
    })?;
    let Some((arrays, numbers)) = found else { return Ok(None) };
    let (mut pieces, mut values, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let mut entries = Vec::new();
    for (name, of, patch) in arrays {
        entries.push((name, name_of(of), patch.pieces.len(), patch.values.len(), patch.len));
        for piece in &patch.pieces {
            pieces.extend([piece.at, piece.start, u64::from(piece.is_new), piece.shift as u64]);
        }
        values.extend(patch.values);
    }
    let mut numberings = Vec::new();
    for (of, numbering) in numbers {
        let (starts, shifts) = numbering.parts();
        numberings.push((name_of(of), starts.len()));
        starts.iter().zip(shifts).for_each(|(&start, &shift)| steps.extend([start, shift as u64]));
    }
    Ok(Some((entries, numberings, pieces.into_pyarray(py), values.into_pyarray(py), steps.into_pyarray(py))))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(delta_patches, m)?)
}
