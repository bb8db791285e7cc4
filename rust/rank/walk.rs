//! The walk: ranking over several hops without a language model.
//!
//! Source: this project's specification, section 2.5. Stage 1 (`walk_pool`) finds candidates over
//! what units share outside the question, stage 2 (`walk_pairs`) ranks them by the best linked pair
//! they form, stage 3 (with vectors) moves the question towards the best sentences.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::rank::walk_ahead::ask_ahead;
use crate::rank::walk_pairs::Pairs;
use crate::rank::walk_partners::{PairScratch, Worth};
use crate::rank::walk_pool::{pool, PoolScratch};
use crate::rank::walk_trace::Trace;
use crate::sparse::{top_k, Scored};

/// Candidates that are scored as pairs.
const POOL: usize = 200;
/// The first candidates, with which every candidate is paired.
const PARTNERS: usize = 30;
/// Weight of stage 1 beside the best pair.
const STAGE1_WEIGHT: f64 = 0.1;
/// Weights within a pair; a mention counts the same either way.
const WORTH: Worth = Worth {
    cover: 9.0,
    cover_dense: 6.0,
    link: 3.5,
    keyword: 0.7,
    name: 0.3,
    least: 0.0,
    mentions: 3.5 * 0.6,
    mentioned: 3.5 * 0.6,
};
/// Subtracted from the score of units that are not candidates.
pub(crate) const OUTSIDE_POOL: f64 = 1e4;
const ANCHORS: usize = 4;
const ANCHOR_STEP: f64 = 0.5;
const ANCHOR_WEIGHT: f64 = 3.0;
const ANCHOR_GAP: f64 = 0.1;

/// Which of the two walks ranks: this module's, or `walk2`'s with a second round and chains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    First,
    #[default]
    Second,
}

impl Form {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "first" => Ok(Self::First),
            "second" => Ok(Self::Second),
            _ => Err(Error::input(format!("the walk has the forms first and second, not {name:?}"))),
        }
    }
}

/// How stage 1 is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Every unit and node, as the specification writes it. Otherwise the local form, whose cost
    /// does not grow with the index: the fields below.
    pub exact: bool,
    /// Nodes with more units are not walked over.
    pub max_df: u64,
    /// Units that carry mass into the next step.
    pub keep: usize,
    pub steps: usize,
    /// Nodes of each graph that carry mass on: those that got most.
    pub nodes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { exact: false, max_df: 200, keep: 100, steps: 2, nodes: 100 }
    }
}

impl Options {
    pub fn exact() -> Self {
        Self { exact: true, steps: 3, ..Self::default() }
    }
}

/// Vectors of length 1 (or zero): `n` units and `s` sentences by `dim`, row after row, and the
/// question's.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a> {
    pub unit_vectors: &'a [f32],
    pub sentence_vectors: &'a [f32],
    pub dim: usize,
    pub query: &'a [f32],
}

impl<'a> Dense<'a> {
    pub(crate) fn unit(&self, unit: u32) -> &'a [f32] {
        &self.unit_vectors[unit as usize * self.dim..][..self.dim]
    }

    pub(crate) fn sentence(&self, sentence: usize) -> &'a [f32] {
        &self.sentence_vectors[sentence * self.dim..][..self.dim]
    }

    pub(crate) fn check(&self, links: &LinksView<'_>) -> Result<()> {
        let sentences = links.sentence_keywords.rows();
        let wanted = (links.units() * self.dim, sentences * self.dim, self.dim);
        let found = (self.unit_vectors.len(), self.sentence_vectors.len(), self.query.len());
        if self.dim == 0 || wanted != found {
            return Err(Error::input(format!(
                "vectors of {} units, {sentences} sentences and the question need {wanted:?} values \
                 (dim {}), not {found:?}",
                links.units(),
                self.dim
            )));
        }
        match self.query.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(Error::input(format!("value {at} of the question's vector is not finite"))),
            None => Ok(()),
        }
    }
}

/// Sum of products in sixteen f32 lanes, always in the same order: same bits on every machine.
#[inline]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0f32; 16];
    let (x, y) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    for (x, y) in x.zip(y) {
        for k in 0..16 {
            lanes[k] += x[k] * y[k];
        }
    }
    lanes.iter().map(|&x| f64::from(x)).sum::<f64>() + rest
}

/// Buffers of one thread, kept from question to question.
#[derive(Debug, Default)]
pub struct Scratch {
    question: Question,
    pool: PoolScratch,
    pairs: PairScratch,
    pub trace: Trace,
}

/// The best `top` units, best first: score descending, id ascending.
///
/// Without vectors, a question with no known keyword finds nothing (`no_match`); with vectors, one
/// with neither a known keyword nor a vector other than zero. Units outside the pool follow it in
/// the order of stage 1, with their stage-1 score less 10,000.
pub fn rank(
    links: &LinksView<'_>,
    dense: Option<Dense<'_>>,
    question: &str,
    top: usize,
    options: Options,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    if let Some(dense) = &dense {
        dense.check(links)?;
    }
    progress.check()?;
    scratch.question.read(links, question);
    let blind = dense.is_none_or(|d| d.query.iter().all(|&x| x == 0.0));
    if links.units() == 0 || top == 0 || (blind && scratch.question.keywords.is_empty()) {
        return Ok(Vec::new());
    }
    let (dense, question) = (dense.as_ref(), &scratch.question);
    let want = top.max(POOL);
    let mut found = pool(links, dense, question, want, options, &mut scratch.pool, progress)?;
    let rest = found.split_off(found.len().min(POOL));
    let partners: Vec<u32> = found.iter().take(PARTNERS).map(|p| p.id).collect();
    let mut pairs = Pairs::new(links, dense, question, &partners, WORTH, &mut scratch.pairs);
    let mut scores = Vec::with_capacity(found.len());
    for (at, candidate) in found.iter().enumerate() {
        ask_ahead(links, &found, at);
        scores.push(
            STAGE1_WEIGHT * candidate.score + pairs.best(candidate.id, 0.0, 0..partners.len(), progress)?,
        );
    }
    scratch.trace.keep(&partners, &pairs.bonus, WORTH, Vec::new);
    if let Some(dense) = dense {
        move_question(links, dense, &found, &mut scores);
    }
    for (candidate, score) in found.iter_mut().zip(scores) {
        candidate.score = score;
    }
    let mut best = top_k(found, POOL);
    best.extend(rest.iter().map(|r| Scored { id: r.id, score: r.score - OUTSIDE_POOL }));
    best.truncate(top);
    Ok(best)
}

/// Stage 3: the question's vector moved half-way towards the nearest sentence of each of the best
/// units, one at a time; every candidate gains by its nearness to one that was not moved by itself.
pub(crate) fn move_question(links: &LinksView<'_>, dense: &Dense<'_>, pool: &[Scored], scores: &mut [f64]) {
    if pool.len() < 2 {
        return;
    }
    let numbered = scores.iter().enumerate().map(|(k, &score)| Scored { id: k as u32, score });
    let anchors = top_k(numbered.collect(), ANCHORS);
    let mut gain = vec![f64::NEG_INFINITY; pool.len()];
    for anchor in &anchors {
        let unit = pool[anchor.id as usize].id as usize;
        let mut nearest: Option<(usize, f64)> = None;
        for sentence in links.sentences(unit) {
            let near = dot(dense.query, dense.sentence(sentence));
            if nearest.is_none_or(|(_, best)| near > best) {
                nearest = Some((sentence, near));
            }
        }
        let mut moved = dense.query.to_vec();
        if let Some((sentence, _)) = nearest {
            let towards = dense.sentence(sentence);
            moved.iter_mut().zip(towards).for_each(|(q, s)| *q += ANCHOR_STEP as f32 * s);
        }
        let length = moved.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        moved.iter_mut().for_each(|x| *x = (f64::from(*x) / length.max(1e-12)) as f32);
        let gap = ANCHOR_GAP * (anchors[0].score - anchor.score);
        for (k, candidate) in pool.iter().enumerate() {
            if k != anchor.id as usize {
                gain[k] = gain[k].max(dot(&moved, dense.unit(candidate.id)) - gap);
            }
        }
    }
    scores.iter_mut().zip(gain).for_each(|(score, gain)| *score += ANCHOR_WEIGHT * gain);
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
