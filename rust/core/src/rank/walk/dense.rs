//! Vectors in the walk, and its stage 3: the query vector is moved towards the best sentences.

use crate::error::{Error, Result};
use crate::rank::links_view::LinksView;
use crate::sparse::{top_k, Scored};

const ANCHORS: usize = 4;
const ANCHOR_STEP: f64 = 0.5;
const ANCHOR_WEIGHT: f64 = 3.0;
const ANCHOR_GAP: f64 = 0.1;

/// Vectors of length 1 (or zero): `n` units and `s` sentences of `dim` values, row after row, and the
/// query's.
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

/// Sum of products in sixteen f32 lanes, always in the same order, so the bits are the same on every machine.
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

/// Stage 3: move the query's vector half-way towards the nearest sentence of each of the best units, one at a
/// time; every candidate gains by its similarity to a vector that it did not move itself.
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
