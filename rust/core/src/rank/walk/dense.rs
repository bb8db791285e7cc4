//! Vectors in the walk, and its stage 3, which moves the query vector towards the best sentences.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::sparse::{top_k, Scored};
use crate::vector::{reference_dot, Asked, Rows, SignQuery, Signs};

/// Units that are scored together.
const BLOCK: usize = 256;
const ANCHORS: usize = 4;
const ANCHOR_STEP: f64 = 0.5;
const ANCHOR_WEIGHT: f64 = 3.0;
const ANCHOR_GAP: f64 = 0.1;

/// Vectors of units and sentences, normalised to length 1 (or zero), and the query's vector.
#[derive(Debug, Clone)]
pub struct Dense<'a> {
    units: Rows<'a>,
    sentences: Signs<'a>,
    query: &'a [f32],
    asked: Asked<'a>,
    asked_signs: SignQuery,
}

impl<'a> Dense<'a> {
    /// Prepare the query for comparison with the rows of units and of sentences.
    pub fn new(units: Rows<'a>, sentences: Signs<'a>, query: &'a [f32]) -> Result<Self> {
        if units.dim() != sentences.dim() {
            let (one, other) = (units.dim(), sentences.dim());
            return Err(Error::input(format!(
                "vectors of units have {one} values, those of sentences {other}"
            )));
        }
        let asked = units.ask(query)?;
        Ok(Self { units, sentences, query, asked, asked_signs: SignQuery::of(query) })
    }

    pub(crate) fn check(&self, links: &LinksView<'_>) -> Result<()> {
        let wanted = (links.units(), links.sentence_keywords.rows());
        let found = (self.units.len(), self.sentences.len());
        match wanted == found {
            true => Ok(()),
            false => {
                Err(Error::input(format!("vectors of {found:?} units and sentences; expected {wanted:?}")))
            }
        }
    }

    /// Return whether the query's vector is zero.
    pub(crate) fn is_blind(&self) -> bool {
        self.query.iter().all(|&x| x == 0.0)
    }

    /// Return the length of the query's vector.
    pub(crate) fn length(&self) -> f64 {
        reference_dot(self.query, self.query).sqrt()
    }

    /// Return the similarity of the query to a unit.
    pub(crate) fn unit(&self, unit: u32) -> f64 {
        self.asked.near(unit)
    }

    /// Compute the similarity of the query to every unit.
    pub(crate) fn every_unit(&self, out: &mut Vec<f64>, progress: &Progress) -> Result<()> {
        out.clear();
        out.resize(self.units.len(), 0.0);
        for (start, some) in (0..self.units.len()).step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
            progress.check()?;
            self.asked.near_all(start..start + some.len(), some);
            if let Some(at) = some.iter().position(|x| !x.is_finite()) {
                return Err(Error::input(format!("the vector of unit {} is not finite", start + at)));
            }
        }
        Ok(())
    }

    /// Return the vector of one unit, prepared as a query for the other units.
    pub(crate) fn ask_unit(&self, unit: u32) -> Asked<'a> {
        self.units.ask_row(unit)
    }

    /// Return the similarity of the query to a sentence.
    pub(crate) fn sentence(&self, sentence: usize) -> f64 {
        self.sentences.score(&self.asked_signs, sentence)
    }

    /// Return the similarity of two sentences.
    pub(crate) fn sentences(&self, a: usize, b: usize) -> f64 {
        self.sentences.between(a, b)
    }
}

/// Stage 3: for each of the best units in turn, move the query vector half-way towards the unit's nearest
/// sentence. Every candidate gains by its similarity to the moved vectors, except those that it caused
/// itself.
pub(crate) fn move_question(
    links: &LinksView<'_>,
    dense: &Dense<'_>,
    pool: &[Scored],
    scores: &mut [f64],
) -> Result<()> {
    if pool.len() < 2 {
        return Ok(());
    }
    let numbered = scores.iter().enumerate().map(|(k, &score)| Scored { id: k as u32, score });
    let anchors = top_k(numbered.collect(), ANCHORS);
    let mut gain = vec![f64::NEG_INFINITY; pool.len()];
    for anchor in &anchors {
        let unit = pool[anchor.id as usize].id as usize;
        let mut nearest: Option<(usize, f64)> = None;
        for sentence in links.sentences(unit) {
            let near = dense.sentence(sentence);
            if nearest.is_none_or(|(_, best)| near > best) {
                nearest = Some((sentence, near));
            }
        }
        let mut moved = dense.query.to_vec();
        if let Some((sentence, _)) = nearest {
            let towards = dense.sentences.decode(sentence);
            moved.iter_mut().zip(towards).for_each(|(q, s)| *q += ANCHOR_STEP as f32 * s);
        }
        let length = moved.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        moved.iter_mut().for_each(|x| *x = (f64::from(*x) / length.max(1e-12)) as f32);
        let moved = dense.units.ask(&moved)?;
        let gap = ANCHOR_GAP * (anchors[0].score - anchor.score);
        for (k, candidate) in pool.iter().enumerate() {
            if k != anchor.id as usize {
                gain[k] = gain[k].max(moved.near(candidate.id) - gap);
            }
        }
    }
    scores.iter_mut().zip(gain).for_each(|(score, gain)| *score += ANCHOR_WEIGHT * gain);
    Ok(())
}
