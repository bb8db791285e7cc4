//! Trace of a ranking of the walk for its explanation, recorded only on request.

use super::worth::Worth;

/// A pair of partners that candidates extend to a chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub units: [u32; 2],
    /// Distance of the pair's score from the best.
    pub loss: f64,
    /// The joint coverage of each counted keyword of the query.
    pub covered: Vec<f64>,
}

/// The partners of the last ranking, their contributions to a pair, and the pairs that chains extend.
#[derive(Debug, Default)]
pub struct Trace {
    pub wanted: bool,
    pub(crate) partners: Vec<u32>,
    pub(crate) bonus: Vec<f64>,
    pub(crate) worth: Option<Worth>,
    pub(crate) pairs: Vec<Pair>,
    /// Weight of the keywords that a third unit covers in addition to a pair.
    pub(crate) chain_cover: f64,
}

impl Trace {
    pub fn wanted() -> Self {
        Self { wanted: true, ..Self::default() }
    }

    pub(crate) fn keep(
        &mut self,
        partners: &[u32],
        bonus: &[f64],
        worth: Worth,
        pairs: impl FnOnce() -> Vec<Pair>,
    ) {
        if self.wanted {
            self.partners = partners.to_vec();
            self.bonus = bonus[..partners.len()].to_vec();
            self.worth = Some(worth);
            self.pairs = pairs();
        }
    }
}
