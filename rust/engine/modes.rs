//! The ways to rank units for a question.

use super::answer::Request;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::{bm25, walk};
use crate::search::simd::Level;
use crate::search::vectors::{self, Filter};
use crate::search::{keyword, knng};
use crate::sparse::{top_k, Scored};

/// How units are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Words alone.
    Bm25,
    /// Vectors alone.
    Text,
    /// Reciprocal-rank fusion of the two.
    Fused,
    /// Text with the neighbours of each hit (KNNG-RAG).
    Knng,
    /// KET-RAG's text-keyword graph (Alg. 4).
    Keyword,
    /// Several hops over shared keywords, names and subjects.
    Walk,
    /// Local search over the skeleton alone.
    Skeleton,
    /// The skeleton, then the keyword channel (KET-RAG).
    Ket,
    /// The skeleton of all chunks alone: the name that the papers use.
    MsGraph,
    /// The skeleton, then units by vectors.
    Hybrid,
}

impl Mode {
    pub const ALL: [Self; 10] = [
        Self::Bm25,
        Self::Text,
        Self::Fused,
        Self::Knng,
        Self::Keyword,
        Self::Walk,
        Self::Skeleton,
        Self::Ket,
        Self::MsGraph,
        Self::Hybrid,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Text => "text",
            Self::Fused => "fused",
            Self::Knng => "knng",
            Self::Keyword => "keyword",
            Self::Walk => "walk",
            Self::Skeleton => "skeleton",
            Self::Ket => "ket",
            Self::MsGraph => "ms-graph",
            Self::Hybrid => "hybrid",
        }
    }

    pub fn by_name(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| Error::input(format!("there is no mode {name:?}")))
    }

    /// Whether the budget decides which units come into question, not only how many are printed.
    pub fn depends_on_budget(self) -> bool {
        matches!(self, Self::Keyword)
    }

    /// Whether its contexts have tables of the skeleton.
    pub fn is_combined(self) -> bool {
        matches!(self, Self::Skeleton | Self::Ket | Self::MsGraph | Self::Hybrid)
    }

    /// What the generation lacks for this mode.
    pub fn missing(self, parts: &Parts<'_>) -> Option<&'static str> {
        let links = (!parts.has_links()).then_some("the word index (stage links)");
        let vectors = (!parts.has_vectors()).then_some("vectors of the units (stage vectors)");
        let keywords = (!parts.has_keywords()).then_some("the keyword graph (stage keywords)");
        let skeleton = (!parts.has_skeleton()).then_some("an entity skeleton (index with --llm)");
        match self {
            Self::Bm25 | Self::Walk => links,
            Self::Skeleton | Self::MsGraph => skeleton,
            Self::Ket => skeleton.or(vectors).or(keywords),
            Self::Hybrid => skeleton.or(vectors),
            Self::Text => vectors,
            Self::Fused => links.or(vectors),
            Self::Knng => vectors.or((!parts.has_knn()).then_some("the KNN graph (stage knn)")),
            Self::Keyword => vectors.or(keywords),
        }
    }
}

/// Buffers of one thread, kept between questions.
#[derive(Debug, Default)]
pub struct Scratch {
    walk: walk::Scratch,
    bm25: bm25::Scratch,
    pub(super) vectors: vectors::Scratch,
    pub(super) keyword: keyword::PoolScratch,
}

/// Lists that are fused reach at least so deep.
const FUSED_DEPTH: usize = 1000;
/// The constant of reciprocal-rank fusion (Cormack, Clarke, Buettcher 2009).
const FUSION: f64 = 60.0;

/// The best `wanted` units for the request at `budget`, best first. An empty list says that nothing
/// matches.
pub fn rank(
    parts: &Parts<'_>,
    request: &Request<'_>,
    budget: u64,
    wanted: usize,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    match request.mode {
        Mode::Bm25 => by_words(parts, request, wanted, scratch, progress),
        Mode::Text => {
            by_vectors(parts, &question_vector(parts, request)?, request.near.texts, wanted, scratch)
        }
        Mode::Fused => {
            let depth = wanted.max(FUSED_DEPTH);
            let query = question_vector(parts, request)?;
            let words = by_words(parts, request, depth, scratch, progress)?;
            let vectors = by_vectors(parts, &query, None, depth, scratch)?;
            let mut fused = knng::fuse(&[&ids(&words), &ids(&vectors)], FUSION)?;
            fused.truncate(wanted);
            Ok(fused)
        }
        Mode::Knng => by_neighbours(parts, &question_vector(parts, request)?, budget, wanted, scratch),
        Mode::Keyword => {
            let query = question_vector(parts, request)?;
            let channel = need(parts.keywords()?)?;
            let pool = pool(&channel, &query, budget, request, scratch)?;
            Ok(pool.units.iter().take(wanted).map(|p| Scored { id: p.unit, score: p.score }).collect())
        }
        Mode::Walk => by_walk(parts, request, wanted, scratch, progress),
        Mode::Skeleton | Mode::Ket | Mode::MsGraph | Mode::Hybrid => {
            Err(Error::Internal("a mode of several tables was asked for one ranking".into()))
        }
    }
}

/// The keyword channel's pool for a budget, from the keywords near the question if these are enough.
pub(super) fn pool(
    channel: &keyword::KeywordChannel<'_>,
    query: &[f32],
    budget: u64,
    request: &Request<'_>,
    scratch: &mut Scratch,
) -> Result<keyword::Pool> {
    let (limit, most) = (budget.saturating_mul(2), request.most_seeds);
    let scratch = &mut scratch.keyword;
    let found = request.near.texts.map(|near| channel.pool_near(query, limit, most, near, scratch));
    match found.transpose()?.flatten() {
        Some(pool) => Ok(pool),
        None => channel.pool(query, limit, most, Level::best(), scratch),
    }
}

fn ids(ranked: &[Scored]) -> Vec<u32> {
    ranked.iter().map(|s| s.id).collect()
}

fn by_walk(
    parts: &Parts<'_>,
    request: &Request<'_>,
    wanted: usize,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let vectors = match request.vector {
        Some(_) => (parts.unit_vectors()?, parts.sentence_vectors()?),
        None => (None, None),
    };
    let dense = match (request.vector, vectors.0, vectors.1) {
        // The space fitted on the corpus does not help the walk (25-walk): it then runs without.
        (Some(query), Some(units), Some(sentences)) => Some(walk::Dense {
            unit_vectors: units.rows(0..units.len()),
            sentence_vectors: sentences.rows(0..sentences.len()),
            dim: units.dim(),
            query,
        }),
        _ => None,
    };
    let links = need(parts.links()?)?;
    let options = walk::Options::default();
    walk::rank(links, dense, request.question, wanted, options, &mut scratch.walk, progress)
}

/// KNNG-RAG (1.6): chunks and their neighbours; a chunk that is split stands for all of its units.
fn by_neighbours(
    parts: &Parts<'_>,
    query: &[f32],
    budget: u64,
    wanted: usize,
    scratch: &mut Scratch,
) -> Result<Vec<Scored>> {
    let (chunks, graph) = (need(parts.chunk_vectors()?)?, need(parts.knn()?)?);
    let best = (Level::best(), &mut scratch.vectors);
    let order = knng::knng_order(&chunks, None, graph, parts.chunk_costs()?, query, budget, best)?;
    let all = parts.chunks()?;
    let units = order.iter().flat_map(|visit| {
        let chunk = visit.unit as usize;
        all.units(chunk).map(|id| Scored { id, score: visit.score })
    });
    Ok(units.take(wanted).collect())
}

fn by_words(
    parts: &Parts<'_>,
    request: &Request<'_>,
    wanted: usize,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    bm25::rank(need(parts.links()?)?, request.question, wanted, &mut scratch.bm25, progress)
}

/// By vectors, among the units `near` if these are enough.
pub(super) fn by_vectors(
    parts: &Parts<'_>,
    query: &[f32],
    near: Option<&[u32]>,
    wanted: usize,
    scratch: &mut Scratch,
) -> Result<Vec<Scored>> {
    if silent(query) {
        return Ok(Vec::new());
    }
    let units = need(parts.unit_vectors()?)?;
    if let Some(near) = near.filter(|near| near.len() >= wanted) {
        units.check_query(query)?;
        Filter::Ids(near).check(units.len())?;
        return Ok(top_k(units.score_many(near, query), wanted));
    }
    let codes = parts.unit_codes()?;
    vectors::top_k(&units, codes, query, wanted, Filter::All, Level::best(), &mut scratch.vectors)
}

/// The question's vector: the caller's, or that of the space fitted on the corpus.
pub(super) fn question_vector(parts: &Parts<'_>, request: &Request<'_>) -> Result<Vec<f32>> {
    match (request.vector, parts.space()?) {
        (Some(vector), _) => Ok(vector.to_vec()),
        (None, Some(space)) => space.embed(request.question),
        (None, None) => {
            Err(Error::input(format!("mode {} needs the question's vector", request.mode.name())))
        }
    }
}

/// A zero vector is similar to nothing: there is no match, never the first ids (specs 0.6).
pub(super) fn silent(query: &[f32]) -> bool {
    query.iter().all(|&x| x == 0.0)
}

pub(super) fn need<T>(part: Option<T>) -> Result<T> {
    part.ok_or_else(|| Error::Internal("a mode ran without a part that it needs".into()))
}
