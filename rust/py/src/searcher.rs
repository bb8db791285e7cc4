//! Bindings of an opened generation: queries in, contexts out, with the interpreter released in between.

use super::arrays::{Array, Matrix, Out};
use super::context_json::printed_place;
use super::door::{long, of_index, quick, to_python, wrong, Report};
use super::extensions::EXTENSIONS;
use super::files::FileIn;
use super::request::{PyMask, PyReply, PyRequest, AGES};
use ketrag_base::error::Result;
use ketrag_base::parallel::{self, map_ranges};
use ketrag_base::progress::Progress;
use ketrag_core::assemble::{Reply, Searcher, Term};
use ketrag_core::channels::{Question, Ranking};
use ketrag_core::generation::{Arrays, Parts, Place};
use ketrag_core::rank::relevance::Evidence;
use ketrag_core::rank::terms::QueryTerms;
use ketrag_core::rank::walk::explain::{Bridge, Reason, Step};
use ketrag_core::search::render::Row;
use ketrag_text::bpe::Encoding;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// An opened generation. `ketrag_fast.index.Index` is the user-friendly form.
#[pyclass(frozen, name = "Searcher", module = "ketrag_fast._core")]
pub struct PySearcher {
    pub inner: Searcher,
}

/// (ids, scores), best first
type RankingIn<'py> = (Array<'py, u32>, Array<'py, f64>);
/// (terms, weights), terms ascending
type TermsIn<'py> = (Array<'py, u32>, Array<'py, f32>);
/// (chunk, document, title, start, end, text) of a row
type PlaceOut = (u32, String, String, u32, u32, String, String);

/// (kind, text, units that have it, rarity)
type BridgeOut = (&'static str, String, u32, f64);
/// (unit, score, bridges)
type StepOut = (u32, f64, Vec<BridgeOut>);
/// The partner; and of a pair the one to which the unit is linked, the other one, and the bridges between the
/// two
type ReasonOut = (Option<StepOut>, Option<(StepOut, u32, Vec<BridgeOut>)>);

/// (units, keywords, numbers of keywords that were looked up and that there are)
type MatchingOut = (Out<u32>, Vec<String>, Option<(usize, usize)>);
/// (words and their nearest words, text)
type CorrectedOut = (Vec<(String, Option<String>)>, String);

fn bridges_out(bridges: Vec<Bridge>) -> Vec<BridgeOut> {
    bridges.into_iter().map(|b| (b.kind.name(), b.text, b.units, b.rarity)).collect()
}

fn reason_out(reason: Reason) -> ReasonOut {
    let step = |step: Step| (step.unit, step.worth, bridges_out(step.bridges));
    let chain = reason.chain.map(|chain| (step(chain.near), chain.far, bridges_out(chain.between)));
    (reason.partner.map(step), chain)
}

fn ranking<'a>(channel: &'a str, (ids, scores): &'a RankingIn<'_>) -> Ranking<'a> {
    Ranking { channel, ids, scores }
}

fn query_terms<'a>((terms, weights): &'a TermsIn<'_>) -> QueryTerms<'a> {
    QueryTerms { terms, weights }
}

impl PySearcher {
    /// Answer one query and measure its time.
    fn ask(&self, request: &PyRequest, question: Question<'_>) -> Result<(Reply, f64)> {
        let started = Instant::now();
        let progress = Progress::with_deadline(started + request.deadline);
        let reply = self.inner.answer(&request.inner, question, &progress)?;
        Ok((reply, started.elapsed().as_secs_f64() * 1000.0))
    }
}

#[pymethods]
impl PySearcher {
    /// `arrays` are named `stage.array`, each a `.npy` file, mapped or a path. With `by_blocks` they are
    /// verified as they are read, otherwise their values are checked when a query first needs them.
    #[new]
    #[pyo3(signature = (files, encoding, language, *, by_blocks=false))]
    fn new(
        py: Python<'_>,
        files: BTreeMap<String, FileIn<'_>>,
        encoding: &str,
        language: &str,
        by_blocks: bool,
    ) -> PyResult<Self> {
        let files = files.into_iter().map(|(name, file)| Ok((name, file.held()?)));
        let files = files.collect::<Result<Vec<_>>>().map_err(to_python)?;
        let inner = quick(py, || {
            let arrays = Arrays::new(files, by_blocks);
            Searcher::open(arrays, Encoding::by_name(encoding)?, language, &EXTENSIONS)
        })
        .map_err(|e| of_index(py, e))?;
        Ok(Self { inner })
    }

    /// Return the number of units.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Return for each channel the part that the generation lacks, or None.
    fn missing(&self) -> BTreeMap<String, Option<&'static str>> {
        self.inner.missing()
    }

    /// Answer one query on this thread; `vector` is None if the index has the built-in space. `near` are the
    /// ids that an approximate search found in the lists "units", "keywords" and "entities", `given` rankings
    /// (ids, scores) for channels that the core does not implement; `terms` are those of the question in an index
    /// with learned weights.
    #[pyo3(signature = (request, question, *, vector=None, terms=None, near=None, given=None))]
    fn answer(
        &self,
        py: Python<'_>,
        request: &PyRequest,
        question: &str,
        vector: Option<Array<'_, f32>>,
        terms: Option<TermsIn<'_>>,
        near: Option<BTreeMap<String, Array<'_, u32>>>,
        given: Option<BTreeMap<String, RankingIn<'_>>>,
    ) -> PyResult<PyReply> {
        let (near, given) = (near.unwrap_or_default(), given.unwrap_or_default());
        let near: Vec<(&str, &[u32])> = near.iter().map(|(list, ids)| (list.as_str(), &ids[..])).collect();
        let given: Vec<Ranking<'_>> = given.iter().map(|(channel, given)| ranking(channel, given)).collect();
        let terms = terms.as_ref().map(query_terms);
        let question =
            Question { text: question, vector: vector.as_deref(), terms, near: &near, given: &given };
        let reply = quick(py, || self.ask(request, question));
        let (reply, milliseconds) = reply.map_err(|e| of_index(py, e))?;
        PyReply::new(py, reply, milliseconds)
    }

    /// Answer many queries on several threads, in order. `vectors` and each array of `near` have one row per
    /// query, each list of `given` one ranking, and `terms` the terms of each.
    #[pyo3(signature = (request, questions, *, vectors=None, terms=None, near=None, given=None, threads=0, report=None))]
    fn answer_many(
        &self,
        py: Python<'_>,
        request: &PyRequest,
        questions: Vec<String>,
        vectors: Option<Matrix<'_, f32>>,
        terms: Option<Vec<TermsIn<'_>>>,
        near: Option<BTreeMap<String, Matrix<'_, u32>>>,
        given: Option<BTreeMap<String, Vec<RankingIn<'_>>>>,
        threads: usize,
        report: Report<'_, '_>,
    ) -> PyResult<Vec<PyReply>> {
        let (near, given) = (near.unwrap_or_default(), given.unwrap_or_default());
        let count = questions.len();
        let each = |rows: usize, what: &str| match rows == count {
            true => Ok(()),
            false => Err(wrong(format!("{what} must have one row for each question"))),
        };
        each(vectors.as_ref().map_or(count, Matrix::rows), "vectors")?;
        each(terms.as_ref().map_or(count, Vec::len), "terms")?;
        near.iter().try_for_each(|(list, ids)| each(ids.rows(), &format!("near {list}")))?;
        let mut rankings: Vec<Vec<Ranking<'_>>> = vec![Vec::new(); count];
        for (channel, rows) in &given {
            each(rows.len(), &format!("the rankings of channel {channel}"))?;
            for (all, row) in rankings.iter_mut().zip(rows) {
                all.push(ranking(channel, row));
            }
        }
        let replies = long(py, report, |progress| {
            progress.expect(count as u64);
            map_ranges(count, 4, threads, progress, |range| {
                range
                    .map(|i| {
                        let near: Vec<(&str, &[u32])> =
                            near.iter().map(|(list, ids)| (list.as_str(), ids.row(i))).collect();
                        let vector = vectors.as_ref().map(|vectors| vectors.row(i));
                        let terms = terms.as_ref().map(|terms| query_terms(&terms[i]));
                        let text = &questions[i];
                        let given = &rankings[i];
                        self.ask(request, Question { text, vector, terms, near: &near, given })
                    })
                    .collect::<Result<Vec<_>>>()
            })
        })
        .map_err(|e| of_index(py, e))?;
        replies.into_iter().flatten().map(|(reply, taken)| PyReply::new(py, reply, taken)).collect()
    }

    /// For each unit, return why a channel of the request gave it its rank for the same query: the partner of
    /// its best pair and the pair that it extends, or None. The list is empty if the channel has no
    /// explanations.
    #[pyo3(signature = (request, channel, question, units, *, vector=None, terms=None))]
    fn explain(
        &self,
        py: Python<'_>,
        request: &PyRequest,
        channel: &str,
        question: &str,
        units: Vec<u32>,
        vector: Option<Array<'_, f32>>,
        terms: Option<TermsIn<'_>>,
    ) -> PyResult<Vec<ReasonOut>> {
        let terms = terms.as_ref().map(query_terms);
        let question = Question { text: question, vector: vector.as_deref(), terms, ..Question::default() };
        let found =
            quick(py, || self.inner.explain(&request.inner, channel, question, &units, &Progress::none()));
        Ok(found.map_err(|e| of_index(py, e))?.into_iter().map(reason_out).collect())
    }

    /// Return the evidence about a query and each of the given ranked units: one row per unit with the terms
    /// of the logistic function of its relevance.
    #[pyo3(signature = (question, units, *, vector=None))]
    fn evidence(
        &self,
        py: Python<'_>,
        question: &str,
        units: Vec<u32>,
        vector: Option<Array<'_, f32>>,
    ) -> PyResult<Vec<[f64; 8]>> {
        let question = Question { text: question, vector: vector.as_deref(), ..Question::default() };
        let found = quick(py, || self.inner.evidence(question, &units)).map_err(|e| of_index(py, e))?;
        let terms = |(rank, one): (usize, Option<Evidence>)| one.unwrap_or_default().terms(rank);
        Ok(found.into_iter().enumerate().map(terms).collect())
    }

    /// Return the number of units that have each of some keywords; 0 for an unknown keyword, and for all of them in an index
    /// without links.
    fn keyword_units(&self, py: Python<'_>, keywords: Vec<String>) -> PyResult<Vec<usize>> {
        let count = |parts: &Parts<'_>| {
            let Some(links) = parts.links()? else { return Ok(vec![0; keywords.len()]) };
            let count =
                |word: &String| links.keywords.position(word).map_or(0, |at| links.keyword_units.len_of(at));
            Ok(keywords.iter().map(count).collect())
        };
        quick(py, || self.inner.with_parts(count)).map_err(|e| of_index(py, e))
    }

    /// Return (units, keywords, cut) of a phrase, or of a word with a prefix: the units that have it, ascending; the most
    /// frequent keywords of a prefix; and how many of its keywords were looked up and how many there are, if not all were
    /// looked up. None if the index has no keywords.
    /// With `titles`, only titles are searched.
    #[pyo3(signature = (text, *, prefix=false, titles=false, mask=None, threads=0, seconds=None))]
    fn matching(
        &self,
        py: Python<'_>,
        text: &str,
        prefix: bool,
        titles: bool,
        mask: Option<PyRef<'_, PyMask>>,
        threads: usize,
        seconds: Option<f64>,
    ) -> PyResult<Option<MatchingOut>> {
        let progress = match seconds.map(Duration::try_from_secs_f64) {
            None => Progress::none(),
            Some(Ok(left)) => Progress::with_deadline(Instant::now() + left.min(AGES)),
            Some(Err(_)) => return Err(wrong("seconds must not be negative")),
        };
        let mask = mask.map(|mask| mask.0.clone());
        let term = Term { text, is_prefix: prefix, in_title: titles };
        let found = quick(py, || self.inner.matching(term, mask.as_deref(), threads, &progress));
        let found = found.map_err(|e| of_index(py, e))?;
        Ok(found.map(|found| (Out(found.units), found.keywords, found.cut)))
    }

    /// Return the words of a query that no document has, each with its nearest word or None, and the text with these.
    /// None if all words are known.
    fn correct(&self, py: Python<'_>, query: &str) -> PyResult<Option<CorrectedOut>> {
        let found = quick(py, || self.inner.correct(query)).map_err(|e| of_index(py, e))?;
        Ok(found.map(|found| (found.words, found.text)))
    }

    /// Return all words of a query that the index does not contain, without similar ones. `correct` returns some of them.
    fn missing_words(&self, py: Python<'_>, query: &str) -> PyResult<Vec<String>> {
        quick(py, || self.inner.missing_words(query)).map_err(|e| of_index(py, e))
    }

    /// Return the first `length` characters of the first unit; None if there are no units.
    fn sample(&self, py: Python<'_>, length: usize) -> PyResult<Option<String>> {
        let text = quick(py, || {
            let first = |parts: &Parts<'_>| {
                Ok(parts.place(0)?.map(|place| place.text.chars().take(length).collect()))
            };
            self.inner.with_parts(first)
        });
        text.map_err(|e| of_index(py, e))
    }

    /// Read the rest of the arrays that queries have read from, up to `most` bytes, so that later queries do
    /// not wait for it. Returns the number of bytes. The reading thread yields to queries.
    #[pyo3(signature = (most, *, report=None))]
    fn read_ahead(&self, py: Python<'_>, most: usize, report: Report<'_, '_>) -> PyResult<usize> {
        let read = long(py, report, |progress| {
            parallel::lower_priority();
            self.inner.read_ahead(most, progress)
        });
        read.map_err(|e| of_index(py, e))
    }

    /// Return the source locations of units. `lengths` are the printed bytes of each unit's text; `runs` the first
    /// unit and the number of units, if neighbours are joined.
    #[pyo3(signature = (units, lengths, runs=None))]
    fn places(
        &self,
        py: Python<'_>,
        units: Vec<u32>,
        lengths: Vec<usize>,
        runs: Option<Vec<(u32, u32)>>,
    ) -> PyResult<Vec<PlaceOut>> {
        let runs = runs.unwrap_or_else(|| units.iter().map(|&unit| (unit, 1)).collect());
        if units.len() != lengths.len() || units.len() != runs.len() {
            return Err(wrong("units, lengths and runs must have equal length"));
        }
        let place = |parts: &Parts<'_>, row: Row| {
            let (place, text) = printed_place(parts, &row)?;
            let Place { chunk, document, title, start, end, before, .. } = place;
            let context = before.to_owned();
            Ok((chunk, document.to_owned(), title.to_owned(), start, end, text.into_owned(), context))
        };
        let rows = units.iter().zip(&lengths).zip(&runs);
        let rows = rows.map(|((&unit, &end), &(first, count))| {
            let last = first.checked_add(count.saturating_sub(1));
            match first <= unit && last.is_some_and(|last| unit <= last) {
                true => Ok(Row { first, count, end, ..Row::of(unit, 0) }),
                false => Err(wrong(format!("unit {unit} is not among the {count} units from {first} on"))),
            }
        });
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        quick(py, || self.inner.with_parts(|parts| rows.into_iter().map(|row| place(parts, row)).collect()))
            .map_err(|e| of_index(py, e))
    }
}

/// Unpack no more of small arrays than a few queries read, from now on in this process. It changes no result.
#[pyfunction]
pub fn expect_few_queries() {
    ketrag_core::generation::expect_few_queries();
}
