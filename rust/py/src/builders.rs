//! Concepts, their graph and the chunks that they select, and the merge of replies into a skeleton.

use crate::arrays::{csr_out, matrix, slice, strings_out, Array, CsrArrays, Matrix, Out, Packed};
use crate::door::{long, to_python};
use ketrag_base::sparse::{Csr, CsrView};
use ketrag_core::graph::concepts::select::choose_chunks;
use ketrag_core::graph::concepts::{extract, pairs};
use ketrag_core::graph::skeleton::{fold, ChunkUnits, Options, PrintedRows, Replies, Skeleton};
use ketrag_core::vector::Vectors;
use ketrag_text::bpe::Encoding;
use ketrag_text::strings::{Strings, StringsBuf};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// (words that are concepts, the concepts of each chunk).
#[pyfunction]
#[pyo3(signature = (indptr, indices, counts, vocabulary, *, most=50, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn concepts<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    counts: Array<'py, u32>,
    vocabulary: (Array<'py, u8>, Array<'py, u64>),
    most: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Out<'py, u32>, CsrArrays<'py>)> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let counts = slice(&counts, "counts")?;
    let (blob, offsets) = (slice(&vocabulary.0, "blob")?, slice(&vocabulary.1, "offsets")?);
    let found = long(py, report, |progress| {
        let vocabulary = Strings::new(blob, offsets)?;
        let words = CsrView::new(indptr, indices, vocabulary.len())?;
        extract::concepts(words, counts, vocabulary, most, threads, progress)
    })?;
    Ok((found.words.into_pyarray(py), csr_out(py, found.named)))
}

/// (rows of edges, shared chunks, cosines, weights, the similarity threshold).
type GraphArrays<'py> = (CsrArrays<'py>, Out<'py, u32>, Out<'py, f32>, Out<'py, f64>, f64);

#[pyfunction]
#[pyo3(signature = (indptr, indices, vectors, *, theta_co=3, theta_sem=0.65, threads=0, report=None))]
#[allow(clippy::too_many_arguments)]
pub fn concept_graph<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    vectors: Matrix<'py, f32>,
    theta_co: u32,
    theta_sem: f64,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<GraphArrays<'py>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let (values, rows, dim) = matrix(&vectors, "vectors")?;
    let made = long(py, report, |progress| {
        let chunks = CsrView::new(indptr, indices, rows)?;
        let bounds = (theta_co, pairs::MOST_EDGES);
        pairs::concept_graph(chunks, &Vectors::new(values, dim)?, bounds, theta_sem, threads, progress)
    })?;
    Ok((
        csr_out(py, made.edges),
        made.shared.into_pyarray(py),
        made.cosines.into_pyarray(py),
        made.weights.into_pyarray(py),
        made.threshold,
    ))
}

/// Return the chunks selected by concepts with these ranks, best first.
#[pyfunction]
#[pyo3(signature = (indptr, indices, ranks, count, *, report=None))]
pub fn select_by_concepts<'py>(
    py: Python<'py>,
    indptr: Array<'py, u64>,
    indices: Array<'py, u32>,
    ranks: Array<'py, f64>,
    count: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Out<'py, u32>> {
    let (indptr, indices) = (slice(&indptr, "indptr")?, slice(&indices, "indices")?);
    let ranks = slice(&ranks, "ranks")?;
    let chosen = long(py, report, |progress| {
        choose_chunks(CsrView::new(indptr, indices, ranks.len())?, ranks, count, progress)
    })?;
    Ok(chosen.into_pyarray(py))
}

/// Tokens of the rows of entities, and of relations.
type Counts<'py> = (Out<'py, u32>, Out<'py, u32>);

/// Return blob and offsets, converted to strings once the interpreter is released.
fn packed<'a>(strings: &'a Packed<'_>, name: &str) -> PyResult<(&'a [u8], &'a [u64])> {
    Ok((slice(&strings.0, name)?, slice(&strings.1, name)?))
}

#[pyfunction]
#[pyo3(signature = (chunks, entities, names, types, descriptions, relations, sources, targets,
                    relation_descriptions, strengths, chunk_units, unit_texts, unit_spans, encoding, *,
                    description_tokens=500, threads=0, report=None))]
#[allow(clippy::too_many_arguments)] // a table's columns, one by one
pub fn fold_skeleton<'py>(
    py: Python<'py>,
    chunks: Array<'py, u32>,
    entities: Array<'py, u64>,
    names: Packed<'py>,
    types: Packed<'py>,
    descriptions: Packed<'py>,
    relations: Array<'py, u64>,
    sources: Packed<'py>,
    targets: Packed<'py>,
    relation_descriptions: Packed<'py>,
    strengths: Array<'py, f64>,
    chunk_units: Array<'py, u64>,
    unit_texts: Packed<'py>,
    unit_spans: Matrix<'py, u32>,
    encoding: &str,
    description_tokens: usize,
    threads: usize,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let encoding = Encoding::by_name(encoding).map_err(to_python)?;
    let options = Options { description_tokens, encoding };
    let (chunks, strengths) = (slice(&chunks, "chunks")?, slice(&strengths, "strengths")?);
    let (entities, relations) = (slice(&entities, "entities")?, slice(&relations, "relations")?);
    let (names, types) = (packed(&names, "names")?, packed(&types, "types")?);
    let descriptions = packed(&descriptions, "descriptions")?;
    let (sources, targets) = (packed(&sources, "sources")?, packed(&targets, "targets")?);
    let relation_descriptions = packed(&relation_descriptions, "relation_descriptions")?;
    let (units, texts) = (slice(&chunk_units, "chunk_units")?, packed(&unit_texts, "unit_texts")?);
    let (spans, _, _) = matrix(&unit_spans, "unit_spans")?;
    let skeleton = long(py, report, |progress| {
        let of = |(blob, offsets)| Strings::new(blob, offsets);
        let replies = Replies {
            chunks,
            entities,
            names: of(names)?,
            types: of(types)?,
            descriptions: of(descriptions)?,
            relations,
            sources: of(sources)?,
            targets: of(targets)?,
            relation_descriptions: of(relation_descriptions)?,
            strengths,
        };
        let units = ChunkUnits { units, texts: of(texts)?, spans };
        fold(&replies, &units, options, threads, progress)
    })?;
    skeleton_out(py, skeleton)
}

fn skeleton_out(py: Python<'_>, s: Skeleton) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let strings = |name: &str, value: StringsBuf| -> PyResult<()> {
        let (blob, offsets) = strings_out(py, value);
        out.set_item(format!("{name}_blob"), blob)?;
        out.set_item(format!("{name}_offsets"), offsets)
    };
    let rows = |name: &str, value: Csr| -> PyResult<()> {
        let (indptr, indices) = csr_out(py, value);
        out.set_item(format!("{name}_indptr"), indptr)?;
        out.set_item(format!("{name}_indices"), indices)
    };
    strings("entity_name", s.names)?;
    strings("entity_type", s.types)?;
    strings("entity_description", s.descriptions)?;
    out.set_item("entity_rank", s.ranks.into_pyarray(py))?;
    rows("entity_chunks", s.chunks)?;
    rows("entity_units", s.units)?;
    out.set_item("entity_row_tokens", s.row_tokens.into_pyarray(py))?;
    out.set_item("relation_source", s.sources.into_pyarray(py))?;
    out.set_item("relation_target", s.targets.into_pyarray(py))?;
    strings("relation_description", s.relation_descriptions)?;
    out.set_item("relation_weight", s.weights.into_pyarray(py))?;
    out.set_item("relation_rank", s.relation_ranks.into_pyarray(py))?;
    rows("relation_chunks", s.relation_chunks)?;
    rows("relation_units", s.relation_units)?;
    out.set_item("relation_row_tokens", s.relation_row_tokens.into_pyarray(py))?;
    let column = |of: fn(&ketrag_core::graph::skeleton::Mention) -> u32| {
        s.mentions.iter().map(of).collect::<Vec<u32>>().into_pyarray(py)
    };
    out.set_item("mention_entity", column(|m| m.entity))?;
    out.set_item("mention_unit", column(|m| m.unit))?;
    out.set_item("mention_start", column(|m| m.start))?;
    out.set_item("mention_end", column(|m| m.end))?;
    out.set_item("fold_dropped", vec![s.nameless, s.endless, s.loops].into_pyarray(py))?;
    Ok(out)
}

#[pyfunction]
#[pyo3(signature = (names, descriptions, ranks, sources, targets, relation_descriptions, weights,
                    relation_ranks, encoding, *, threads=0))]
#[allow(clippy::too_many_arguments)] // a table's columns, one by one
pub fn skeleton_row_tokens<'py>(
    py: Python<'py>,
    names: Packed<'py>,
    descriptions: Packed<'py>,
    ranks: Array<'py, u32>,
    sources: Array<'py, u32>,
    targets: Array<'py, u32>,
    relation_descriptions: Packed<'py>,
    weights: Array<'py, f64>,
    relation_ranks: Array<'py, u32>,
    encoding: &str,
    threads: usize,
) -> PyResult<Counts<'py>> {
    let encoding = Encoding::by_name(encoding).map_err(to_python)?;
    let (names, descriptions) = (packed(&names, "names")?, packed(&descriptions, "descriptions")?);
    let told = packed(&relation_descriptions, "relation_descriptions")?;
    let (ranks, relation_ranks) = (slice(&ranks, "ranks")?, slice(&relation_ranks, "relation_ranks")?);
    let (sources, targets) = (slice(&sources, "sources")?, slice(&targets, "targets")?);
    let weights = slice(&weights, "weights")?;
    let (entities, relations) = long(py, None, |progress| {
        let of = |(blob, offsets)| Strings::new(blob, offsets);
        let rows = PrintedRows {
            names: of(names)?,
            descriptions: of(descriptions)?,
            ranks,
            sources,
            targets,
            relation_descriptions: of(told)?,
            weights,
            relation_ranks,
        };
        rows.tokens(encoding, threads, progress)
    })?;
    Ok((entities.into_pyarray(py), relations.into_pyarray(py)))
}
