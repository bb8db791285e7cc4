//! The walk and its BM25: build the arrays, at once or in bounded memory, and rank one query or many.

use crate::arrays::{Array, Matrix, Out, Packed};
use crate::door::{long, quick, to_python, wrong, Report};
use ketrag_base::error::{Error, Result};
use ketrag_base::items::Items;
use ketrag_base::parallel::map_ranges_with;
use ketrag_base::progress::Progress;
use ketrag_base::sparse::{Mask, Scored};
use ketrag_core::graph::links::{self, Links, Texts};
use ketrag_core::graph::links_earlier::{Earlier, Part};
use ketrag_core::graph::links_runs::{build_in_runs, Bounds, Output, Units};
use ketrag_core::rank::links_view::{LinksView, Slice, ARRAYS, LANGUAGES, UNIT_LANGUAGE};
use ketrag_core::rank::links_weights::Weights;
use ketrag_core::rank::walk::{Dense, Plan};
use ketrag_core::rank::{bm25, walk};
use ketrag_core::vector::{signs, Signs};
use ketrag_text::detection::Choice;
use ketrag_text::languages::Language;
use ketrag_text::strings::Strings;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::OnceLock;

type Before<'py> = (Vec<Bound<'py, PyDict>>, Array<'py, u32>);

/// Return the arrays of the walk by name, from titles, texts and sentences. With `before`, the arrays before
/// a change or of the indexes that are merged, and for each unit its previous number, counting the units of one
/// index after another (2^32 - 1 for a new one), the same arrays in less time.
/// `language` is auto, a language, or none.
#[pyfunction]
#[pyo3(signature = (titles, title_offsets, texts, text_offsets, sentences, sentence_offsets, first_sentence, *, before=None, language="english", threads=0, report=None))]
pub fn links_build<'py>(
    py: Python<'py>,
    titles: Array<'py, u8>,
    title_offsets: Array<'py, u64>,
    texts: Array<'py, u8>,
    text_offsets: Array<'py, u64>,
    sentences: Array<'py, u8>,
    sentence_offsets: Array<'py, u64>,
    first_sentence: Array<'py, u64>,
    before: Option<Before<'py>>,
    language: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Bound<'py, PyDict>> {
    let language = Choice::by_name(language).map_err(to_python)?;
    let indexes = before.as_ref().map(|(indexes, _)| &indexes[..]).unwrap_or_default();
    let held = indexes.iter().map(hold).collect::<PyResult<Vec<_>>>()?;
    let found = held.iter().map(slices).collect::<Vec<_>>();
    let row = before.as_ref().map(|(_, row)| &row[..]);
    let arrays = long(py, report, |progress| {
        let input = Texts {
            titles: Strings::new(&titles, &title_offsets)?,
            texts: Strings::new(&texts, &text_offsets)?,
            sentences: Strings::new(&sentences, &sentence_offsets)?,
            first_sentence: &first_sentence,
            language,
        };
        let links = match row {
            Some(row) => update(&input, &found, row, threads, progress)?,
            None => Links::build(&input, threads, progress)?,
        };
        Ok(links.into_arrays())
    })?;
    let out = PyDict::new(py);
    for (name, array) in arrays {
        match array {
            links::Array::U8(x) => out.set_item(name, Out(x))?,
            links::Array::U32(x) => out.set_item(name, Out(x))?,
            links::Array::U64(x) => out.set_item(name, Out(x))?,
        }
    }
    Ok(out)
}

/// Compute the links from those of earlier indexes; see [`Links::update`].
fn update(
    input: &Texts<'_>,
    found: &[Named<Slice<'_>>],
    row: &[u32],
    threads: usize,
    progress: &Progress,
) -> Result<Links> {
    let weights: Vec<OnceLock<Weights>> = found.iter().map(|_| OnceLock::new()).collect();
    let views = found.iter().zip(&weights).map(|(found, weights)| view(found, weights));
    let views = views.collect::<Result<Vec<_>>>()?;
    let languages = found.iter().zip(&views).map(|(found, links)| {
        match found.iter().find(|(name, _)| *name == UNIT_LANGUAGE) {
            Some((_, Slice::U8(numbers))) => numbers.iter().copied().map(Language::numbered).collect(),
            _ => Ok(vec![Language::ENGLISH; links.units()]),
        }
    });
    let languages = languages.collect::<Result<Vec<Vec<Language>>>>()?;
    let each = views.into_iter().zip(&languages);
    let parts: Vec<Part<'_>> = each.map(|(links, language)| Part { links, language }).collect();
    Links::update(input, &Earlier::new(&parts, row), threads, progress)
}

/// Keeps the arrays of a dict alive while a view reads them.
enum Held<'py> {
    U8(Array<'py, u8>),
    U32(Array<'py, u32>),
    U64(Array<'py, u64>),
}

type Named<T> = Vec<(&'static str, T)>;

fn hold<'py>(links: &Bound<'py, PyDict>) -> PyResult<Named<Held<'py>>> {
    let mut names = ARRAYS.to_vec();
    for name in [LANGUAGES, UNIT_LANGUAGE] {
        if links.contains(name)? {
            names.push((name, "u8"));
        }
    }
    names
        .into_iter()
        .map(|(name, kind)| {
            let item = links.get_item(name)?.ok_or_else(|| wrong(format!("{name} is missing")))?;
            let refused = |_| wrong(format!("{name} must be a one-dimensional array of {kind}"));
            let held = match kind {
                "u8" => Held::U8(item.extract().map_err(refused)?),
                "u32" => Held::U32(item.extract().map_err(refused)?),
                _ => Held::U64(item.extract().map_err(refused)?),
            };
            Ok((name, held))
        })
        .collect()
}

fn slices<'a>(held: &'a Named<Held<'_>>) -> Named<Slice<'a>> {
    let slice = |held: &'a Held<'_>| match held {
        Held::U8(x) => Slice::U8(x),
        Held::U32(x) => Slice::U32(x),
        Held::U64(x) => Slice::U64(x),
    };
    held.iter().map(|(name, held)| (*name, slice(held))).collect()
}

fn view<'a>(slices: &[(&str, Slice<'a>)], weights: &'a OnceLock<Weights>) -> Result<LinksView<'a>> {
    let find = |name: &str| {
        let found = slices.iter().find(|(known, _)| *known == name);
        found.map(|(_, slice)| *slice).ok_or_else(|| Error::input(format!("the walk has no array {name}")))
    };
    LinksView::new(find, weights)
}

/// Return the weights that follow from the counts of the links, by name.
#[pyfunction]
pub fn links_weights<'py>(py: Python<'py>, links: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let held = hold(links)?;
    let slices = slices(&held);
    let (norms, weights) = quick(py, || {
        let cell = OnceLock::new();
        let links = view(&slices, &cell)?;
        let norms: Vec<f64> =
            links.unit_length.iter().map(|&length| links.saturations.norm(length)).collect();
        let weights = cell.into_inner().ok_or_else(|| Error::Internal("weights were not computed".into()))?;
        Ok((norms, weights))
    })?;
    let out = PyDict::new(py);
    for (name, values) in [
        ("unit_norm", norms),
        ("keyword_idf", weights.keyword_idf.values().all().to_vec()),
        ("name_idf", weights.name_idf.values().all().to_vec()),
        ("subject_idf", weights.subject_idf.values().all().to_vec()),
    ] {
        out.set_item(name, Out(values))?;
    }
    Ok(out)
}

type Ranked = (Out<u64>, Out<u32>, Out<f64>);

/// Return rows of results: offsets, ids, scores.
fn rows_out(rows: Vec<Vec<Scored>>) -> Ranked {
    let mut indptr = vec![0u64];
    let total = rows.iter().map(Vec::len).sum();
    let (mut ids, mut scores) = (Vec::with_capacity(total), Vec::with_capacity(total));
    for row in rows {
        ids.extend(row.iter().map(|s| s.id));
        scores.extend(row.iter().map(|s| s.score));
        indptr.push(ids.len() as u64);
    }
    (Out(indptr), Out(ids), Out(scores))
}

/// Process queries independently on several threads, in order.
fn each_question<S>(
    count: usize,
    threads: usize,
    progress: &Progress,
    scratch: impl Fn() -> S + Sync,
    one: impl Fn(&mut S, usize) -> Result<Vec<Scored>> + Sync,
) -> Result<Vec<Vec<Scored>>> {
    progress.expect(count as u64);
    let rows = map_ranges_with(count, 1, threads, progress, scratch, |own, range| {
        range.map(|q| one(own, q)).collect::<Result<Vec<_>>>()
    })?;
    Ok(rows.into_iter().flatten().collect())
}

/// Rank by BM25 with the words of the walk: for each query the best `top` units.
#[pyfunction]
#[pyo3(signature = (links, questions, question_offsets, top, *, threads=0, report=None))]
pub fn links_bm25<'py>(
    py: Python<'py>,
    links: &Bound<'py, PyDict>,
    questions: Array<'py, u8>,
    question_offsets: Array<'py, u64>,
    top: usize,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Ranked> {
    let held = hold(links)?;
    let slices = slices(&held);
    let rows = long(py, report, |progress| {
        let weights = OnceLock::new();
        let view = view(&slices, &weights)?;
        let questions = Strings::new(&questions, &question_offsets)?;
        each_question(questions.len(), threads, progress, bm25::Scratch::default, |own, q| {
            bm25::rank(&view, questions.get(q), top, None, own, progress)
        })
    })?;
    Ok(rows_out(rows))
}

/// Rank by the walk: for each query the best `top` units. With vectors (all three) they are used. Optional:
/// the logarithms of the units' lengths, parameters by name, for each unit whether it may be returned, and the paths of
/// the documents with the texts of the units.
#[pyfunction]
#[pyo3(signature = (links, questions, question_offsets, top, *, unit_vectors=None, sentence_vectors=None, question_vectors=None, exact=false, lengths=None, documents=None, numbers=None, wanted=None, paths=None, texts=None, threads=0, report=None))]
pub fn walk_rank<'py>(
    py: Python<'py>,
    links: &Bound<'py, PyDict>,
    questions: Array<'py, u8>,
    question_offsets: Array<'py, u64>,
    top: usize,
    unit_vectors: Option<Matrix<'py, f32>>,
    sentence_vectors: Option<Matrix<'py, f32>>,
    question_vectors: Option<Matrix<'py, f32>>,
    exact: bool,
    lengths: Option<Array<'py, f64>>,
    documents: Option<Array<'py, u32>>,
    numbers: Option<Vec<(String, f64)>>,
    wanted: Option<Array<'py, u8>>,
    paths: Option<Packed<'py>>,
    texts: Option<Packed<'py>>,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Ranked> {
    let held = hold(links)?;
    let slices = slices(&held);
    let vectors = match (&unit_vectors, &sentence_vectors, &question_vectors) {
        (None, None, None) => None,
        (Some(units), Some(sentences), Some(asked)) => Some((units, sentences, asked)),
        _ => return Err(wrong("give vectors of units, sentences and questions, or none of them")),
    };
    let mask = wanted.as_deref().map(|units| Mask::from_fn(units.len(), |unit| units[unit] != 0));
    let mut plan = Plan::new(exact);
    for (name, value) in numbers.unwrap_or_default() {
        plan.set(&name, value).map_err(to_python)?;
    }
    let rows = long(py, report, |progress| {
        let weights = OnceLock::new();
        let view = view(&slices, &weights)?;
        let mask = mask.as_ref();
        mask.map_or(Ok(()), |mask| mask.check(view.units()))?;
        let questions = Strings::new(&questions, &question_offsets)?;
        let files = match (&paths, &texts) {
            (Some(paths), Some(texts)) => Some(walk::Files { ids: paths.view()?, texts: texts.view()? }),
            (None, None) => None,
            _ => return Err(Error::input("give paths and texts, or neither")),
        };
        let signs;
        let rows = match vectors {
            None => None,
            Some((units, sentences, asked)) => {
                let needed = (view.units(), view.sentence_keywords.rows(), questions.len());
                let found = (units.rows(), sentences.rows(), asked.rows());
                let widths = [units.columns(), sentences.columns(), asked.columns()];
                let d = widths[0];
                if needed != found || d == 0 || widths != [d; 3] {
                    return Err(Error::input(format!(
                        "vectors of units, sentences and questions have {found:?} rows and {widths:?} columns, \
                         expected {needed:?} rows and equal columns"
                    )));
                }
                sentences.vectors()?; // finite
                signs = signs::pack(sentences, d);
                Some((units.vectors()?.into(), Signs::new(&signs, d)?, &asked[..]))
            }
        };
        each_question(questions.len(), threads, progress, walk::Scratch::default, |own, q| {
            let dense = match rows {
                None => None,
                Some((units, signs, asked)) => {
                    Some(Dense::new(units, signs, &asked[q * signs.dim()..][..signs.dim()])?)
                }
            };
            let question = questions.get(q);
            walk::rank(
                &view,
                walk::Units {
                    lengths: lengths.as_deref().map_or(walk::Lengths::Keywords, walk::Lengths::Given),
                    documents: documents.as_deref().map(Items::from),
                    files,
                },
                dense,
                None,
                question,
                top,
                mask,
                &plan,
                own,
                progress,
            )
        })
    })?;
    Ok(rows_out(rows))
}

/// Return the arrays of `links_build` from those of the stage "units": arrays, or paths of files in `folder` (an empty
/// one), which hold the values alone. Every sentence must lie within its unit. `run` bounds the units that are read
/// together, `entries` the entries of a transpose that are placed together.
#[pyfunction]
#[pyo3(signature = (titles, owners, texts, spans, sentence_units, sentence_spans, sentence_titles, folder, *, before, run, entries, language="english", threads=0, report=None))]
pub fn links_build_runs<'py>(
    py: Python<'py>,
    titles: Packed<'py>,
    owners: Array<'py, u32>,
    texts: Packed<'py>,
    spans: Matrix<'py, u32>,
    sentence_units: Array<'py, u32>,
    sentence_spans: Matrix<'py, u32>,
    sentence_titles: Array<'py, u8>,
    folder: PathBuf,
    before: Packed<'py>,
    run: usize,
    entries: usize,
    language: &str,
    threads: usize,
    report: Report<'_, '_>,
) -> PyResult<Bound<'py, PyDict>> {
    let language = Choice::by_name(language).map_err(to_python)?;
    let made = long(py, report, |progress| {
        let units = Units {
            titles: titles.view()?,
            owners: &owners,
            texts: texts.view()?,
            before: before.view()?,
            spans: &spans,
            sentence_units: &sentence_units,
            sentence_spans: &sentence_spans,
            sentence_titles: &sentence_titles,
            language,
        };
        build_in_runs(&units, Bounds { units: run, entries }, &folder, threads, progress)
    })?;
    let out = PyDict::new(py);
    for (name, output) in made {
        match output {
            Output::Memory(links::Array::U8(x)) => out.set_item(name, Out(x))?,
            Output::Memory(links::Array::U32(x)) => out.set_item(name, Out(x))?,
            Output::Memory(links::Array::U64(x)) => out.set_item(name, Out(x))?,
            Output::File(path) => out.set_item(name, path)?,
        }
    }
    Ok(out)
}
