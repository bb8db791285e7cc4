//! Bindings of rankings over several indexes. What a shard receives and returns is plain values, apart from
//! bundles of units, so that a shard may be in another process.

use super::arrays::Array;
use super::door::{of_index, quick, to_python, wrong};
use super::request::{PyMask, PyReply, PyRequest, AGES};
use super::searcher::PySearcher;
use ketrag_base::error::Result;
use ketrag_base::progress::Progress;
use ketrag_core::assemble::Searcher;
use ketrag_core::channels::Question;
use ketrag_core::rank::links_weights::Whole;
use ketrag_core::shards::bundle::Bundle;
use ketrag_core::shards::candidates::{candidates, Weighting};
use ketrag_core::shards::lookup::{looked_up, Leads, Limits, Node, Seed};
use ketrag_core::shards::print::{merge, print, Sheet};
use ketrag_core::shards::terms::{languages_of, summed, totals, Frequencies, Terms};
use ketrag_core::shards::union::{weights_of, Masks, Preferred, Union};
use ketrag_core::shards::wire;
use ketrag_text::lexical::Lexer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// (units, documents, length in keywords, units of each language)
type TotalsIn = (usize, usize, u64, BTreeMap<u8, u64>);
/// (keywords, names, subjects)
type TermsIn = (Vec<String>, Vec<String>, Vec<String>);
type CountsIn = (Vec<u64>, Vec<u64>, Vec<u64>);
/// Keywords, names and subjects, each with its number of units
type FrequenciesIn = (Vec<(String, u64)>, Vec<(String, u64)>, Vec<(String, u64)>);
/// (text, mass, number of units)
type NodesIn = Vec<(String, f64, u64)>;
/// (keywords, names, subjects, (text, mass) of seeds, the query, weights of the uncovered keywords, mean and deviation of
/// all scores)
type LeadsIn = (NodesIn, NodesIn, NodesIn, Vec<(String, f64)>, String, Vec<(String, f64)>, [f64; 2]);
/// (shards, units, scores, relevance, whether nothing is relevant enough)
type RankedOut = (Vec<u32>, Vec<u32>, Vec<f64>, Vec<f64>, bool);

fn whole_of((units, documents, length, languages): TotalsIn) -> Whole {
    Whole { units, documents, length, languages, ..Whole::default() }
}

fn totals_out(whole: Whole) -> TotalsIn {
    (whole.units, whole.documents, whole.length, whole.languages)
}

fn terms_of((keywords, names, subjects): TermsIn) -> Terms {
    Terms { keywords, names, subjects }
}

fn terms_out(terms: Terms) -> TermsIn {
    (terms.keywords, terms.names, terms.subjects)
}

fn frequencies_of((mut keywords, mut names, mut subjects): FrequenciesIn) -> Frequencies {
    for list in [&mut keywords, &mut names, &mut subjects] {
        list.sort_unstable();
        list.dedup_by(|a, b| a.0 == b.0);
    }
    Frequencies { keywords, names, subjects }
}

fn nodes_of(nodes: NodesIn) -> Vec<Node> {
    nodes.into_iter().map(|(text, mass, frequency)| Node { text, mass, frequency }).collect()
}

fn nodes_out(nodes: Vec<Node>) -> NodesIn {
    nodes.into_iter().map(|node| (node.text, node.mass, node.frequency)).collect()
}

fn progress_of(seconds: Option<f64>) -> PyResult<Progress> {
    match seconds.map(Duration::try_from_secs_f64) {
        None => Ok(Progress::none()),
        Some(Ok(left)) => Ok(Progress::with_deadline(Instant::now() + left.min(AGES))),
        Some(Err(_)) => Err(wrong("seconds must not be negative")),
    }
}

/// Return the sum of the statistics of several shards.
#[pyfunction]
pub fn sum_totals(totals: Vec<TotalsIn>) -> TotalsIn {
    totals_out(summed(&totals.into_iter().map(whole_of).collect::<Vec<_>>()))
}

/// Return every keyword, name and subject that a query may contain in an index with these totals.
#[pyfunction]
pub fn question_terms(question: &str, whole: TotalsIn) -> PyResult<TermsIn> {
    let languages = languages_of(&whole_of(whole)).map_err(to_python)?;
    Ok(terms_out(Terms::of_question(question, &languages)))
}

/// Return whether a query has only function words, which no index has as keywords.
#[pyfunction]
pub fn has_only_function_words(question: &str, whole: TotalsIn) -> PyResult<bool> {
    let languages = languages_of(&whole_of(whole)).map_err(to_python)?;
    Ok(ketrag_core::rank::function_words::are_all(question, &languages))
}

/// Return whether a query in an index with these totals is compared with other forms of its words, too.
#[pyfunction]
pub fn reads_forms(question: &str, whole: TotalsIn) -> PyResult<bool> {
    let languages = languages_of(&whole_of(whole)).map_err(to_python)?;
    let mut lexer = Lexer::default();
    lexer.read(question);
    Ok(ketrag_core::rank::question::reads_forms(&lexer, &languages))
}

/// Return the position of the passage that comes first because it has a phrase that a question quotes, given scores in
/// descending order and whether each passage has one; `None` if no passage with it is good enough.
#[pyfunction]
pub fn first_preferred(scores: Vec<f64>, flags: Vec<bool>) -> Option<usize> {
    ketrag_core::search::preferred::first_preferred(scores.into_iter().zip(flags))
}

/// The keywords of a query with their weights over all shards.
#[pyclass(frozen, name = "Weighting", module = "ketrag_fast._core")]
pub struct PyWeighting(Weighting);

#[pymethods]
impl PyWeighting {
    /// `keywords` are (keyword, weight); `units` units have `length` keywords, counting repetitions.
    #[new]
    fn new(mut keywords: Vec<(String, f64)>, length: u64, units: usize) -> PyResult<Self> {
        if keywords.iter().any(|one| !one.1.is_finite()) {
            return Err(wrong("weights of keywords must be finite"));
        }
        keywords.sort_by(|a, b| a.0.cmp(&b.0));
        keywords.dedup_by(|a, b| a.0 == b.0);
        Ok(Self(Weighting::new(keywords, length, units).map_err(to_python)?))
    }

    /// Return the weights of a query's keywords from the numbers of units of all shards that have them.
    #[staticmethod]
    fn of(py: Python<'_>, question: &str, whole: TotalsIn, known: FrequenciesIn) -> PyResult<Self> {
        let (whole, known) = (whole_of(whole), frequencies_of(known));
        let made = quick(py, || {
            let keywords = weights_of(&whole, &known, question)?;
            Weighting::new(keywords, whole.length, whole.units)
        });
        Ok(Self(made?))
    }

    #[getter]
    fn keywords(&self) -> Vec<(String, f64)> {
        self.0.keywords.clone()
    }
}

/// Units of one shard with everything that a ranking reads of them.
#[pyclass(frozen, name = "Bundle", module = "ketrag_fast._core")]
pub struct PyBundle(Bundle);

#[pymethods]
impl PyBundle {
    /// Return the number of units.
    fn __len__(&self) -> usize {
        self.0.units.len()
    }

    #[getter]
    fn units(&self) -> Vec<u32> {
        self.0.units.clone()
    }

    /// Return the bundle as bytes, for another process.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &wire::encode(&self.0))
    }

    /// Return the bundle that `to_bytes` has written. Raises InputError for any other bytes.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        wire::decode(data).map(Self).map_err(to_python)
    }
}

/// Candidates of several shards as one collection.
#[pyclass(frozen, name = "Union", module = "ketrag_fast._core")]
pub struct PyUnion(Union);

#[pymethods]
impl PyUnion {
    /// `bundles` are (number of the shard, bundle), in ascending order of the numbers. `known` has the number of units
    /// of all shards for each term of the query, and for any other terms. The final union
    /// also searches units for mentions of the subjects of other shards.
    #[new]
    fn new(
        py: Python<'_>,
        bundles: Vec<(u32, PyRef<'_, PyBundle>)>,
        whole: TotalsIn,
        known: FrequenciesIn,
        is_final: bool,
    ) -> PyResult<Self> {
        let bundles: Vec<(u32, &Bundle)> = bundles.iter().map(|(shard, own)| (*shard, &own.0)).collect();
        let (whole, known) = (whole_of(whole), frequencies_of(known));
        let made = quick(py, || Union::new(&bundles, &whole, &known, is_final));
        Ok(Self(made?))
    }

    /// Join all units of some shards, numbered in this order, for any number of queries.
    #[staticmethod]
    #[pyo3(signature = (shards, *, seconds=None))]
    fn complete(py: Python<'_>, shards: Vec<PyRef<'_, PyShard>>, seconds: Option<f64>) -> PyResult<Self> {
        let progress = progress_of(seconds)?;
        let searchers: Vec<&Searcher> = shards.iter().map(|shard| &shard.0.get().inner).collect();
        quick(py, || Union::complete(&searchers, &progress)).map(Self).map_err(|e| of_index(py, e))
    }

    /// Return the number of units.
    fn __len__(&self) -> usize {
        self.0.origins.len()
    }

    /// Return the best `count` units as (shards, units, scores, relevance, nothing_fits). `preferred` are pairs of a shard
    /// and a unit that come first among the best `depth` units. `masks` are the filters of shards whose units were
    /// all joined.
    #[pyo3(signature = (request, question, count, *, preferred=Vec::new(), depth=0, masks=Vec::new(), vector=None))]
    fn rank(
        &self,
        py: Python<'_>,
        request: &PyRequest,
        question: &str,
        count: usize,
        preferred: Vec<(u32, u32)>,
        depth: usize,
        masks: Vec<(u32, PyRef<'_, PyMask>)>,
        vector: Option<Array<'_, f32>>,
    ) -> PyResult<RankedOut> {
        let preferred = Preferred { units: preferred.into_iter().collect(), depth };
        let question = Question { text: question, vector: vector.as_deref(), ..Question::default() };
        let progress = Progress::with_deadline(Instant::now() + request.deadline);
        let masks: Vec<_> = masks.iter().map(|(shard, mask)| (*shard, mask.0.clone())).collect();
        let found = quick(py, || {
            let masks: Masks<'_> = masks.iter().map(|(shard, mask)| (*shard, &**mask)).collect();
            self.0.rank(&request.inner, question, count, (&preferred, &masks), &progress)
        })?;
        let (shards, units) = found.origins.iter().map(|one| (one.shard, one.unit)).unzip();
        Ok((shards, units, found.scores, found.relevance, found.nothing_fits))
    }

    /// Return where the best candidates lead: see `Searcher.look_up`.
    #[pyo3(signature = (request, question, *, vector=None))]
    fn leads(
        &self,
        py: Python<'_>,
        request: &PyRequest,
        question: &str,
        vector: Option<Array<'_, f32>>,
    ) -> PyResult<LeadsIn> {
        let question = Question { text: question, vector: vector.as_deref(), ..Question::default() };
        let progress = Progress::with_deadline(Instant::now() + request.deadline);
        let leads = quick(py, || self.0.leads(&request.inner, question, &progress))?;
        let Leads { keywords, names, subjects, seeds, question, rest, standard } = leads;
        let seeds = seeds.into_iter().map(|seed| (seed.text, seed.mass)).collect();
        let nodes = [keywords, names, subjects].map(nodes_out);
        let [keywords, names, subjects] = nodes;
        Ok((keywords, names, subjects, seeds, question, rest, standard))
    }
}

/// (searcher, request, units, scores, minimum relevance) of a shard
type SheetIn<'py> = (PyRef<'py, PySearcher>, PyRef<'py, PyRequest>, Vec<u32>, Vec<f64>, f64);
/// (text, tokens, (shard, row there, place in the ranking) of each row, shard whose budget holds)
type MergedOut = (String, u64, Vec<(usize, usize, usize)>, Option<usize>);

/// Print units of several shards as one context. `ranking` has the shard and the unit of each place of the common
/// ranking, and `relevance` is parallel to it; `channel` is the channel of the requests. Returns the reply of each
/// shard, whose rows have no relevance, and the context.
#[pyfunction]
pub fn print_shards(
    py: Python<'_>,
    channel: &str,
    shards: Vec<SheetIn<'_>>,
    ranking: Vec<(usize, u32)>,
    relevance: Vec<f64>,
    question: &str,
) -> PyResult<(Vec<PyReply>, MergedOut)> {
    if ranking.len() != relevance.len() || ranking.iter().any(|one| one.0 >= shards.len()) {
        return Err(wrong("a ranking needs the shard, the unit and the relevance of each place"));
    }
    let deadline = shards.iter().map(|one| one.1.deadline).min().unwrap_or(AGES);
    let sheets: Vec<Sheet<'_>> = shards
        .iter()
        .map(|(searcher, request, units, scores, min_score)| Sheet {
            searcher: &searcher.inner,
            request: &request.inner,
            channel,
            units,
            scores,
            min_score: *min_score,
        })
        .collect();
    let began = Instant::now();
    let found = quick(py, || {
        let replies = print(&sheets, question, &Progress::with_deadline(began + deadline))?;
        let merged = merge(&sheets, &replies, &ranking, &relevance);
        Ok((replies, merged))
    });
    let (replies, merged) = found.map_err(|e| of_index(py, e))?;
    let taken = began.elapsed().as_secs_f64() * 1000.0;
    let replies = replies.into_iter().map(|reply| PyReply::new(py, reply, taken)).collect::<PyResult<_>>()?;
    Ok((replies, (merged.text, merged.tokens, merged.rows, merged.first)))
}

/// One opened generation as a part of a ranking over several.
#[pyclass(frozen, name = "Shard", module = "ketrag_fast._core")]
pub struct PyShard(Py<PySearcher>);

#[pymethods]
impl PyShard {
    #[new]
    fn new(searcher: Py<PySearcher>) -> Self {
        Self(searcher)
    }

    /// Return (units, documents, length in keywords, units of each language), for sums over several indexes.
    fn totals(&self, py: Python<'_>) -> PyResult<TotalsIn> {
        let found = quick(py, || self.0.get().inner.with_parts(totals)).map_err(|e| of_index(py, e))?;
        Ok(totals_out(found))
    }

    /// Return the number of units that have each of (keywords, names, subjects).
    fn term_counts(&self, py: Python<'_>, terms: TermsIn) -> PyResult<CountsIn> {
        let terms = terms_of(terms);
        let counts = quick(py, || {
            self.0.get().inner.with_parts(|parts| {
                let none =
                    || [&terms.keywords, &terms.names, &terms.subjects].map(|list| vec![0; list.len()]);
                Ok(parts.links()?.map_or_else(none, |links| terms.counted(links)))
            })
        });
        let [keywords, names, subjects] = counts.map_err(|e| of_index(py, e))?;
        Ok((keywords, names, subjects))
    }

    /// Return the best `count` units by weighted keywords with everything that a ranking reads of them; with `narrow`, a
    /// ranking that follows no links and searches for no forms of words.
    #[pyo3(signature = (weighting, count, *, narrow=false, mask=None, seconds=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        weighting: &PyWeighting,
        count: usize,
        narrow: bool,
        mask: Option<PyRef<'_, PyMask>>,
        seconds: Option<f64>,
    ) -> PyResult<PyBundle> {
        let (mask, progress) = (mask.map(|mask| mask.0.clone()), progress_of(seconds)?);
        self.bundled(py, |parts| candidates(parts, &weighting.0, (count, narrow), mask.as_deref(), &progress))
    }

    /// Return the units to which the best candidates of all shards lead. `limits` are the numbers of units reached,
    /// reached in one step, and found by the uncovered part of the query.
    #[pyo3(signature = (weighting, leads, limits, *, mask=None, seconds=None))]
    fn look_up(
        &self,
        py: Python<'_>,
        weighting: &PyWeighting,
        leads: LeadsIn,
        limits: (usize, usize, usize),
        mask: Option<PyRef<'_, PyMask>>,
        seconds: Option<f64>,
    ) -> PyResult<PyBundle> {
        let (mask, progress) = (mask.map(|mask| mask.0.clone()), progress_of(seconds)?);
        let (keywords, names, subjects, seeds, question, mut rest, standard) = leads;
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        rest.dedup_by(|a, b| a.0 == b.0);
        let leads = Leads {
            keywords: nodes_of(keywords),
            names: nodes_of(names),
            subjects: nodes_of(subjects),
            seeds: seeds.into_iter().map(|(text, mass)| Seed { text, mass }).collect(),
            question,
            rest,
            standard,
        };
        let limits = Limits { reached: limits.0, stepped: limits.1, rest: limits.2 };
        self.bundled(py, |parts| looked_up(parts, &weighting.0, &leads, limits, mask.as_deref(), &progress))
    }
}

impl PyShard {
    fn bundled(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&ketrag_core::generation::Parts<'_>) -> Result<Bundle> + Send,
    ) -> PyResult<PyBundle> {
        quick(py, || self.0.get().inner.with_parts(work)).map(PyBundle).map_err(|e| of_index(py, e))
    }
}
