//! What a ranking of the walk leaves for its explanation, where that is wanted; else nothing is kept.

use super::worth::Worth;

/// A pair of partners that candidates lengthen to a chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub units: [u32; 2],
    /// What the pair loses to the best.
    pub loss: f64,
    /// What the two cover together of each of the question's keywords that count.
    pub covered: Vec<f64>,
}

/// The partners of the last ranking, what each adds to a pair, and the pairs that were lengthened.
#[derive(Debug, Default)]
pub struct Trace {
    pub wanted: bool,
    pub(crate) partners: Vec<u32>,
    pub(crate) bonus: Vec<f64>,
    pub(crate) worth: Option<Worth>,
    pub(crate) pairs: Vec<Pair>,
    /// What a third unit covers beyond a pair counts so much.
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
