//! Bindings of local search: the tables around selected entities.

use super::arrays::slice;
use super::door::{quick, to_python};
use ketrag_base::progress::Progress;
use ketrag_base::sparse::CsrView;
use ketrag_core::search::fill::{FillPolicy, OversizePolicy};
use ketrag_core::search::local::graph::{EntityGraph, SkeletonArrays};
use ketrag_core::search::local::{Options, Tables};
use ketrag_core::search::render::Units;
use ketrag_text::bpe::Encoding;
use ketrag_text::strings::Strings;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

type Array<'py, T> = PyReadonlyArray1<'py, T>;
type Packed<'py> = (Array<'py, u8>, Array<'py, u64>);
type Rows<'py> = (Array<'py, u64>, Array<'py, u32>);
type Ids<'py> = Bound<'py, PyArray1<u32>>;
/// (text, tokens, tables (name, tokens, start, end), entities, relations, sources, tokens of each source)
type LocalOut<'py> = (
    String,
    u64,
    Vec<(&'static str, u64, usize, usize)>,
    Ids<'py>,
    Ids<'py>,
    Ids<'py>,
    Bound<'py, PyArray1<u64>>,
);

/// Return the arrays of packed strings, which are checked with the interpreter released.
fn text<'a>(packed: &'a Packed<'_>) -> PyResult<(&'a [u8], &'a [u64])> {
    Ok((slice(&packed.0, "blob")?, slice(&packed.1, "offsets")?))
}

/// `entities` is (names, descriptions, ranks, units, row tokens), `relations` (sources, targets,
/// descriptions, weights, ranks, units, row tokens), `units` (texts, tokens).
#[pyfunction]
#[pyo3(signature = (entities, relations, units, selected, budget, *, relations_per_entity=10, published=false,
                    rollover=false, skip=false, truncate=true, encoding="cl100k_base"))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn local_search<'py>(
    py: Python<'py>,
    entities: (Packed<'py>, Packed<'py>, Array<'py, u32>, Rows<'py>, Array<'py, u32>),
    relations: (
        Array<'py, u32>,
        Array<'py, u32>,
        Packed<'py>,
        Array<'py, f64>,
        Array<'py, u32>,
        Rows<'py>,
        Array<'py, u32>,
    ),
    units: (Packed<'py>, Array<'py, u32>),
    selected: Array<'py, u32>,
    budget: u64,
    relations_per_entity: usize,
    published: bool,
    rollover: bool,
    skip: bool,
    truncate: bool,
    encoding: &str,
) -> PyResult<LocalOut<'py>> {
    let encoding = Encoding::by_name(encoding).map_err(to_python)?;
    let (names, descriptions) = (text(&entities.0)?, text(&entities.1)?);
    let (relation_descriptions, texts) = (text(&relations.2)?, text(&units.0)?);
    let ranks = slice(&entities.2, "entity ranks")?;
    let entity_units = (slice(&entities.3 .0, "indptr")?, slice(&entities.3 .1, "indices")?);
    let row_tokens = slice(&entities.4, "entity row tokens")?;
    let (sources, targets) = (slice(&relations.0, "sources")?, slice(&relations.1, "targets")?);
    let weights = slice(&relations.3, "weights")?;
    let relation_ranks = slice(&relations.4, "relation ranks")?;
    let relation_units = (slice(&relations.5 .0, "indptr")?, slice(&relations.5 .1, "indices")?);
    let relation_row_tokens = slice(&relations.6, "relation row tokens")?;
    let unit_tokens = slice(&units.1, "unit tokens")?;
    let selected = slice(&selected, "selected")?;
    let options = Options {
        relations_per_entity,
        rollover,
        policy: if skip { FillPolicy::SkipAndContinue } else { FillPolicy::FirstOverflowStops },
        oversize: if truncate { OversizePolicy::Truncate } else { OversizePolicy::Drop },
        ..Options::default()
    };
    let found = quick(py, || {
        let n = unit_tokens.len();
        let graph = EntityGraph::new(SkeletonArrays {
            names: Strings::new(names.0, names.1)?,
            descriptions: Strings::new(descriptions.0, descriptions.1)?,
            ranks,
            units: CsrView::new(entity_units.0, entity_units.1, n)?,
            row_tokens,
            sources,
            targets,
            relation_descriptions: Strings::new(relation_descriptions.0, relation_descriptions.1)?,
            weights,
            relation_ranks,
            relation_units: CsrView::new(relation_units.0, relation_units.1, n)?,
            relation_row_tokens,
        })?;
        let units = Units::new(Strings::new(texts.0, texts.1)?, None, unit_tokens)?;
        let tables = Tables::new(encoding, published);
        tables.search(&graph, &units, selected, budget, options, &Progress::none())
    })?;
    let tables = found.sections.iter().map(|s| (s.name, s.tokens, s.start, s.end)).collect();
    let ids: Vec<u32> = found.sources.iter().map(|row| row.unit).collect();
    let tokens: Vec<u64> = found.sources.iter().map(|row| row.tokens).collect();
    Ok((
        found.text,
        found.tokens,
        tables,
        found.entities.into_pyarray(py),
        found.relations.into_pyarray(py),
        ids.into_pyarray(py),
        tokens.into_pyarray(py),
    ))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(local_search, m)?)
}
