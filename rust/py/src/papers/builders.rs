//! Concepts, their graph and the chunks that they select, and the merge of replies into a skeleton.

use crate::arrays::{csr_out, strings_out, Array, CsrOut, Matrix, Out, Packed};
use crate::door::{long, to_python, Report};
use ketrag_base::sparse::{Csr, CsrView};
use ketrag_papers::g2cons::concept_graph::choose_chunks;
use ketrag_papers::g2cons::concept_graph::{self as graph, pairs};
use ketrag_papers::ket_rag::skeleton::{fold, ChunkUnits, Options, PrintedRows, Replies, Skeleton};
use ketrag_text::bpe::Encoding;
use ketrag_text::strings::StringsBuf;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// (words that are concepts, the concepts of each chunk).
#[pyfunction]
#[pyo3(signature = (indptr, indices, counts, vocabulary, *, most=50, threads=0, report=None))]
pub fn concepts(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    counts: Array<'_, u32>,
    vocabulary: Packed<'_>,
    most: usize,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<(Out<u32>, CsrOut)> {
    let found = long(py, report, |progress| {
        let vocabulary = vocabulary.view()?;
        let words = CsrView::new(&indptr, &indices, vocabulary.len())?;
        graph::concepts(words, &counts, vocabulary, most, threads, progress)
    })?;
    Ok((Out(found.words), csr_out(found.named)))
}

/// (rows of edges, shared chunks, cosines, weights, the similarity threshold).
type GraphArrays = (CsrOut, Out<u32>, Out<f32>, Out<f64>, f64);

#[pyfunction]
#[pyo3(signature = (indptr, indices, vectors, *, theta_co=3, theta_sem=0.65, threads=0, report=None))]
pub fn concept_graph(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    vectors: Matrix<'_, f32>,
    theta_co: u32,
    theta_sem: f64,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<GraphArrays> {
    let made = long(py, report, |progress| {
        let chunks = CsrView::new(&indptr, &indices, vectors.rows())?;
        let bounds = (theta_co, pairs::MOST_EDGES);
        pairs::concept_graph(chunks, &vectors.vectors()?, bounds, theta_sem, threads, progress)
    })?;
    Ok((csr_out(made.edges), Out(made.shared), Out(made.cosines), Out(made.weights), made.threshold))
}

/// Return the chunks selected by concepts with these ranks, best first.
#[pyfunction]
#[pyo3(signature = (indptr, indices, ranks, count, *, report=None))]
pub fn select_by_concepts(
    py: Python<'_>,
    indptr: Array<'_, u64>,
    indices: Array<'_, u32>,
    ranks: Array<'_, f64>,
    count: usize,
    report: Report<'_, '_>,
) -> PyResult<Out<u32>> {
    long(py, report, |progress| {
        choose_chunks(CsrView::new(&indptr, &indices, ranks.len())?, &ranks, count, progress)
    })
    .map(Out)
}

/// Tokens of the rows of entities, and of relations.
type Counts = (Out<u32>, Out<u32>);

#[pyfunction]
#[pyo3(signature = (chunks, entities, names, types, descriptions, relations, sources, targets,
                    relation_descriptions, strengths, chunk_units, unit_texts, unit_spans, encoding, *,
                    description_tokens=500, threads=0, report=None))]
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
    report: Report<'_, '_>,
) -> PyResult<Bound<'py, PyDict>> {
    let encoding = Encoding::by_name(encoding).map_err(to_python)?;
    let options = Options { description_tokens, encoding };
    let skeleton = long(py, report, |progress| {
        let replies = Replies {
            chunks: &chunks,
            entities: &entities,
            names: names.view()?,
            types: types.view()?,
            descriptions: descriptions.view()?,
            relations: &relations,
            sources: sources.view()?,
            targets: targets.view()?,
            relation_descriptions: relation_descriptions.view()?,
            strengths: &strengths,
        };
        let units = ChunkUnits { units: &chunk_units, texts: unit_texts.view()?, spans: &unit_spans };
        fold(&replies, &units, options, threads, progress)
    })?;
    skeleton_out(py, skeleton)
}

fn skeleton_out(py: Python<'_>, s: Skeleton) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let strings = |name: &str, value: StringsBuf| -> PyResult<()> {
        let (blob, offsets) = strings_out(value);
        out.set_item(format!("{name}_blob"), blob)?;
        out.set_item(format!("{name}_offsets"), offsets)
    };
    let rows = |name: &str, value: Csr| -> PyResult<()> {
        let (indptr, indices) = csr_out(value);
        out.set_item(format!("{name}_indptr"), indptr)?;
        out.set_item(format!("{name}_indices"), indices)
    };
    strings("entity_name", s.names)?;
    strings("entity_type", s.types)?;
    strings("entity_description", s.descriptions)?;
    out.set_item("entity_rank", Out(s.ranks))?;
    rows("entity_chunks", s.chunks)?;
    rows("entity_units", s.units)?;
    out.set_item("entity_row_tokens", Out(s.row_tokens))?;
    out.set_item("relation_source", Out(s.sources))?;
    out.set_item("relation_target", Out(s.targets))?;
    strings("relation_description", s.relation_descriptions)?;
    out.set_item("relation_weight", Out(s.weights))?;
    out.set_item("relation_rank", Out(s.relation_ranks))?;
    rows("relation_chunks", s.relation_chunks)?;
    rows("relation_units", s.relation_units)?;
    out.set_item("relation_row_tokens", Out(s.relation_row_tokens))?;
    let column = |of: fn(&ketrag_papers::ket_rag::skeleton::Mention) -> u32| {
        Out(s.mentions.iter().map(of).collect::<Vec<u32>>())
    };
    out.set_item("mention_entity", column(|m| m.entity))?;
    out.set_item("mention_unit", column(|m| m.unit))?;
    out.set_item("mention_start", column(|m| m.start))?;
    out.set_item("mention_end", column(|m| m.end))?;
    out.set_item("fold_dropped", Out(vec![s.nameless, s.endless, s.loops]))?;
    Ok(out)
}

#[pyfunction]
#[pyo3(signature = (names, descriptions, ranks, sources, targets, relation_descriptions, weights,
                    relation_ranks, encoding, *, threads=0))]
pub fn skeleton_row_tokens(
    py: Python<'_>,
    names: Packed<'_>,
    descriptions: Packed<'_>,
    ranks: Array<'_, u32>,
    sources: Array<'_, u32>,
    targets: Array<'_, u32>,
    relation_descriptions: Packed<'_>,
    weights: Array<'_, f64>,
    relation_ranks: Array<'_, u32>,
    encoding: &str,
    threads: usize,
) -> PyResult<Counts> {
    let encoding = Encoding::by_name(encoding).map_err(to_python)?;
    let (entities, relations) = long(py, None, |progress| {
        let rows = PrintedRows {
            names: names.view()?,
            descriptions: descriptions.view()?,
            ranks: &ranks,
            sources: &sources,
            targets: &targets,
            relation_descriptions: relation_descriptions.view()?,
            weights: &weights,
            relation_ranks: &relation_ranks,
        };
        rows.tokens(encoding, threads, progress)
    })?;
    Ok((Out(entities), Out(relations)))
}
