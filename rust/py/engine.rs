//! The face of one opened generation: questions in, contexts out, the interpreter released between.

use super::arrays::{matrix, slice};
use super::door::{long, of_index, quick, to_python, wrong};
use super::files::FileIn;
use crate::engine::{Engine, Mode, Near, Reply, Request, Rollover, Section, TableOptions};
use crate::error::{Error, Result};
use crate::generation::{Arrays, Parts};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::search::fill::{FillPolicy, OversizePolicy};
use crate::text::bpe::Encoding;
use crate::text::lexical::Lexer;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A deadline so far away that it is none.
const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

/// An opened generation. See `ketrag_fast.index.Index` for the friendly form.
#[pyclass(frozen, module = "ketrag_fast._core")]
struct Searcher {
    engine: Engine,
}

/// (name, channel, tokens, start, end) of a table; start and end are bytes of the text
type SectionOut = (&'static str, &'static str, u64, usize, usize);
/// (text, tokens, unit ids, tokens of each row, bytes of each row's text, scores, tables)
type ContextOut<'py> = (
    String,
    u64,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u64>>,
    Vec<(usize, usize)>,
    Bound<'py, PyArray1<f64>>,
    Vec<SectionOut>,
);
/// (reason, a context for each budget, milliseconds, whether an empty skeleton gave its share away)
type ReplyOut<'py> = (Option<&'static str>, Vec<ContextOut<'py>>, f64, bool);

struct Options {
    mode: Mode,
    budgets: Vec<u64>,
    top: Option<usize>,
    policy: FillPolicy,
    oversize: OversizePolicy,
    deadline: Duration,
    most_seeds: Option<usize>,
    published: bool,
    tables: TableOptions,
}

/// (share of the budget, rollover, entities, published tables)
type TableOptionsIn<'a> = (f64, &'a str, usize, bool);

fn table_options((share, rollover, entities, published): TableOptionsIn<'_>) -> PyResult<TableOptions> {
    let rollover = match rollover {
        "none" => Rollover::None,
        "texts" => Rollover::Texts,
        "graph" => Rollover::Graph,
        other => return Err(wrong(format!("rollover must be none, texts or graph, not {other:?}"))),
    };
    Ok(TableOptions { share, rollover, entities, published })
}

impl Options {
    #[allow(clippy::too_many_arguments)]
    fn new(
        mode: &str,
        budgets: Vec<u64>,
        top: Option<usize>,
        skip: bool,
        truncate: bool,
        deadline: Option<f64>,
        (most_seeds, published): (Option<usize>, bool),
        tables: TableOptionsIn<'_>,
    ) -> PyResult<Self> {
        let deadline = match deadline {
            None => AGES,
            Some(s) => Duration::try_from_secs_f64(s).map_err(|_| wrong("deadline must not be negative"))?,
        };
        Ok(Self {
            mode: Mode::by_name(mode).map_err(to_python)?,
            budgets,
            top,
            policy: if skip { FillPolicy::SkipAndContinue } else { FillPolicy::FirstOverflowStops },
            oversize: if truncate { OversizePolicy::Truncate } else { OversizePolicy::Drop },
            deadline: deadline.min(AGES),
            most_seeds,
            published,
            tables: table_options(tables)?,
        })
    }
}

impl Searcher {
    /// One question, timed.
    fn ask(
        &self,
        question: &str,
        (vector, near): (Option<&[f32]>, Near<'_>),
        o: &Options,
    ) -> Result<(Reply, f64)> {
        let started = Instant::now();
        let request = Request {
            question,
            vector,
            near,
            mode: o.mode,
            budgets: &o.budgets,
            top: o.top,
            policy: o.policy,
            oversize: o.oversize,
            most_seeds: o.most_seeds,
            published: o.published,
            tables: o.tables,
        };
        let reply = self.engine.answer(&request, &Progress::with_deadline(started + o.deadline))?;
        Ok((reply, started.elapsed().as_secs_f64() * 1000.0))
    }
}

/// Ids near a question.
fn list<'a>(ids: &'a Option<PyReadonlyArray1<'_, u32>>) -> PyResult<Option<&'a [u32]>> {
    ids.as_ref().map(|ids| slice(ids, "near")).transpose()
}

/// Ids near each of so many questions, and how many each has.
fn table<'a>(
    ids: &'a Option<PyReadonlyArray2<'_, u32>>,
    questions: usize,
) -> PyResult<Option<(&'a [u32], usize)>> {
    let Some(ids) = ids else { return Ok(None) };
    let (ids, rows, columns) = matrix(ids, "near")?;
    if rows != questions {
        return Err(wrong("near must have one row for each question"));
    }
    Ok(Some((ids, columns)))
}

fn reply_out(py: Python<'_>, (reply, milliseconds): (Reply, f64)) -> ReplyOut<'_> {
    let contexts =
        reply.contexts.into_iter().zip(reply.scores).zip(reply.sections).map(|(printed, tables)| {
            let (context, scores) = printed;
            let units: Vec<u32> = context.rows.iter().map(|row| row.unit).collect();
            let tokens: Vec<u64> = context.rows.iter().map(|row| row.tokens).collect();
            let spans = context.rows.iter().map(|row| (row.start, row.end)).collect();
            let arrays = (units.into_pyarray(py), tokens.into_pyarray(py), scores.into_pyarray(py));
            let table = |s: &Section| (s.name, s.channel, s.tokens, s.start, s.end);
            let tables = tables.iter().map(table).collect();
            (context.text, context.tokens, arrays.0, arrays.1, spans, arrays.2, tables)
        });
    (reply.reason, contexts.collect(), milliseconds, reply.no_skeleton)
}

/// (chunk, document, title, start, end, text) of a row
type PlaceOut = (u32, String, String, u32, u32, String);

#[pymethods]
impl Searcher {
    /// The arrays named `stage.array`, each a `.npy` file, mapped or a path. With `by_blocks` they are
    /// verified as they are read, else their values are checked when a question first needs them.
    #[new]
    #[pyo3(signature = (files, encoding, language, *, by_blocks=false))]
    fn new(
        py: Python<'_>,
        files: BTreeMap<String, FileIn<'_>>,
        encoding: &str,
        language: &str,
        by_blocks: bool,
    ) -> PyResult<Self> {
        let files = files.into_iter().map(|(name, file)| Ok((name, file.mapped()?)));
        let files = files.collect::<Result<Vec<_>>>().map_err(to_python)?;
        let engine = quick(py, || {
            let arrays = Arrays::new(files, by_blocks);
            Engine::open(arrays, Encoding::by_name(encoding)?, language)
        })
        .map_err(|e| of_index(py, e))?;
        Ok(Self { engine })
    }

    /// The number of units.
    fn __len__(&self) -> usize {
        self.engine.len()
    }

    /// For each mode what the generation lacks for it, or None.
    fn missing(&self) -> BTreeMap<&'static str, Option<&'static str>> {
        Mode::ALL.into_iter().map(|mode| (mode.name(), self.engine.missing(mode))).collect()
    }

    /// One question on this thread; `vector` is None where the index has the built-in space. `near` are
    /// ids that an approximate search found: of units for `text` and `hybrid`, of keywords for `keyword` and
    /// `ket`; `near_entities` those of entities.
    #[pyo3(signature = (question, vector, mode, budgets, *, near=None, near_entities=None, top=None, skip=false, truncate=true, deadline=None, most_seeds=None, published=false, kg_share=0.4, rollover="texts", seed_entities=10, published_tables=false))]
    #[allow(clippy::too_many_arguments)]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        question: &str,
        vector: Option<PyReadonlyArray1<'py, f32>>,
        mode: &str,
        budgets: Vec<u64>,
        near: Option<PyReadonlyArray1<'py, u32>>,
        near_entities: Option<PyReadonlyArray1<'py, u32>>,
        top: Option<usize>,
        skip: bool,
        truncate: bool,
        deadline: Option<f64>,
        most_seeds: Option<usize>,
        published: bool,
        kg_share: f64,
        rollover: &str,
        seed_entities: usize,
        published_tables: bool,
    ) -> PyResult<ReplyOut<'py>> {
        let named = (most_seeds, published);
        let tables = (kg_share, rollover, seed_entities, published_tables);
        let options = Options::new(mode, budgets, top, skip, truncate, deadline, named, tables)?;
        let vector = match &vector {
            Some(vector) => Some(slice(vector, "vector")?),
            None => None,
        };
        let near = Near { texts: list(&near)?, entities: list(&near_entities)? };
        let reply = quick(py, || self.ask(question, (vector, near), &options));
        Ok(reply_out(py, reply.map_err(|e| of_index(py, e))?))
    }

    /// Many questions over threads, in order. `near` has one row for each.
    #[pyo3(signature = (questions, vectors, mode, budgets, *, near=None, near_entities=None, top=None, skip=false, truncate=true, deadline=None, most_seeds=None, published=false, kg_share=0.4, rollover="texts", seed_entities=10, published_tables=false, threads=0, report=None))]
    #[allow(clippy::too_many_arguments)]
    fn answer_many<'py>(
        &self,
        py: Python<'py>,
        questions: Vec<String>,
        vectors: Option<PyReadonlyArray2<'py, f32>>,
        mode: &str,
        budgets: Vec<u64>,
        near: Option<PyReadonlyArray2<'py, u32>>,
        near_entities: Option<PyReadonlyArray2<'py, u32>>,
        top: Option<usize>,
        skip: bool,
        truncate: bool,
        deadline: Option<f64>,
        most_seeds: Option<usize>,
        published: bool,
        kg_share: f64,
        rollover: &str,
        seed_entities: usize,
        published_tables: bool,
        threads: usize,
        report: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<ReplyOut<'py>>> {
        let named = (most_seeds, published);
        let tables = (kg_share, rollover, seed_entities, published_tables);
        let options = Options::new(mode, budgets, top, skip, truncate, deadline, named, tables)?;
        let vectors = match &vectors {
            Some(vectors) => Some(matrix(vectors, "vectors")?),
            None => None,
        };
        if vectors.is_some_and(|(_, rows, _)| rows != questions.len()) {
            return Err(wrong("vectors must have one row for each question"));
        }
        let near = [table(&near, questions.len())?, table(&near_entities, questions.len())?];
        let replies = long(py, report.as_ref(), |progress| {
            progress.expect(questions.len() as u64);
            map_ranges(questions.len(), 4, threads, progress, |range| {
                range
                    .map(|i| {
                        let vector = vectors.map(|(values, _, d)| &values[i * d..(i + 1) * d]);
                        let [texts, entities] = near.map(|t| t.map(|(ids, k)| &ids[i * k..(i + 1) * k]));
                        let near = Near { texts, entities };
                        self.ask(&questions[i], (vector, near), &options)
                    })
                    .collect::<Result<Vec<_>>>()
            })
        })
        .map_err(|e| of_index(py, e))?;
        Ok(replies.into_iter().flatten().map(|reply| reply_out(py, reply)).collect())
    }

    /// Where units come from. `lengths` (bytes) say how much of each unit's text was printed.
    fn places(&self, py: Python<'_>, units: Vec<u32>, lengths: Vec<usize>) -> PyResult<Vec<PlaceOut>> {
        if units.len() != lengths.len() {
            return Err(wrong("units and lengths must be equally many"));
        }
        let place = |parts: &Parts<'_>, unit: u32, length: usize| {
            let place = parts.place(unit)?.ok_or_else(|| Error::input(format!("there is no unit {unit}")))?;
            let text = place.text.get(..length).unwrap_or("");
            let end = match text.len() == place.text.len() {
                true => place.end,
                false => place.start.saturating_add(text.chars().count() as u32),
            };
            let (document, title) = (place.document.to_owned(), place.title.to_owned());
            Ok((place.chunk, document, title, place.start, end, text.to_owned()))
        };
        quick(py, || {
            self.engine.with_parts(|parts| {
                units.iter().zip(&lengths).map(|(&unit, &length)| place(parts, unit, length)).collect()
            })
        })
        .map_err(|e| of_index(py, e))
    }
}

/// The words of a text as the walk and BM25 see them, with repetitions.
#[pyfunction]
fn lexical_keywords(text: &str) -> Vec<String> {
    let mut lexer = Lexer::default();
    lexer.read(text);
    let mut words = Vec::new();
    lexer.keywords(|word| words.push(word.to_owned()));
    words
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Searcher>()?;
    m.add_function(wrap_pyfunction!(lexical_keywords, m)?)
}
