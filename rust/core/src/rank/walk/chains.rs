//! Chains of three units: the best pairs of partners, extended by a candidate.

use super::explain::Pair;
use super::pairs::{greatest, Pairs};
use super::plan::Plan;
use super::ties::round_score;
use super::worth::LANES;
use crate::sparse::{rank_order, Scored};

/// Two partners, the distance of their pair's score from the best, and their joint coverage of the query.
#[derive(Debug)]
struct Chain {
    partners: [usize; 2],
    loss: f64,
    covered: Vec<f64>,
}

#[derive(Debug)]
pub(super) struct Chains<'a> {
    partners: &'a [u32],
    plan: &'a Plan,
    /// The best pairs so far, coded as i times [`LANES`] plus j with i < j, with the rounded score of the
    /// better direction.
    found: Vec<Scored>,
    chains: Vec<Chain>,
    shares: Vec<f64>,
    own: Vec<f64>,
}

impl<'a> Chains<'a> {
    pub fn new(partners: &'a [u32], plan: &'a Plan) -> Self {
        let (found, chains) = (Vec::new(), Vec::new());
        Self { partners, plan, found, chains, shares: Vec::new(), own: Vec::new() }
    }

    /// Pair the partner with every other partner and return the score of its best pair, at least 0. `plus` is
    /// its contribution to a pair's score. Only pairs that may be the best, or among the best ten, are scored
    /// exactly.
    pub fn pairs_of(&mut self, pairs: &mut Pairs<'_>, partner: usize, plus: f64) -> f64 {
        let unit = self.partners[partner];
        let most = pairs.at_most(unit);
        let order = (0..self.partners.len() as u32).map(|i| Scored { id: i, score: most[i as usize] });
        let mut order: Vec<Scored> = order.filter(|o| o.id as usize != partner).collect();
        order.sort_unstable_by(rank_order);
        let mut best = 0.0f64;
        for Scored { id, score } in order {
            let floor = match self.found.get(self.plan.chains.wrapping_sub(1)) {
                Some(last) => last.score,
                None if self.plan.chains == 0 => f64::INFINITY,
                None => f64::NEG_INFINITY,
            };
            if score <= best && round_score(score + plus) < floor {
                break;
            }
            let i = id as usize;
            let worth = pairs.exactly(unit, i);
            best = best.max(worth);
            self.add((partner.min(i) * LANES + partner.max(i)) as u32, worth + plus);
        }
        best
    }

    fn add(&mut self, id: u32, score: f64) {
        let score = round_score(score);
        match self.found.iter_mut().find(|known| known.id == id) {
            Some(known) => known.score = known.score.max(score),
            None => self.found.push(Scored { id, score }),
        }
        self.found.sort_unstable_by(rank_order);
        // Keep more pairs than needed: a pair that drops out can return through its other direction only with
        // its present score.
        self.found.truncate(self.plan.chains);
    }

    /// Finish after the last pair was added.
    pub fn close(&mut self, pairs: &Pairs<'_>) {
        let Self { plan, found, chains, shares, .. } = self;
        *shares = pairs.shares();
        let most = found.first().map_or(0.0, |best| best.score);
        chains.extend(found.iter().map(|pair| {
            let (i, j) = (pair.id as usize / LANES, pair.id as usize % LANES);
            let both = pairs.partner_covers(i).into_iter().zip(pairs.partner_covers(j));
            let covered = both.map(|(a, b)| a.max(b)).collect();
            Chain { partners: [i, j], loss: plan.chain_gap * (most - pair.score), covered }
        }));
    }

    /// Return the pairs that chains extend, for an explanation.
    pub fn kept(&self) -> Vec<Pair> {
        let pair = |chain: &Chain| Pair {
            units: chain.partners.map(|i| self.partners[i]),
            loss: chain.loss,
            covered: chain.covered.clone(),
        };
        self.chains.iter().map(pair).collect()
    }

    /// Return the score of the best chain that ends with the current candidate, `unit`; 0 if there are no
    /// pairs.
    pub fn best(&mut self, pairs: &mut Pairs<'_>, unit: u32) -> f64 {
        if self.chains.is_empty() {
            return 0.0;
        }
        pairs.covers(unit, &mut self.own);
        let Self { plan, chains, shares, own, .. } = self;
        let plain = |chain: &Chain| {
            let new = own.iter().zip(&chain.covered).zip(&*shares);
            let new: f64 = new.map(|((own, both), share)| (own - both).max(0.0) * share).sum();
            plan.chain_cover * new - chain.loss
        };
        // Of the chains through one partner, only the best matters.
        let mut base = [f64::NEG_INFINITY; LANES];
        let mut met = 0u64;
        for chain in chains.iter() {
            let plain = plain(chain);
            for i in chain.partners {
                base[i] = base[i].max(plain);
                met |= 1 << i;
            }
        }
        let mut most = [f64::NEG_INFINITY; LANES];
        for i in (0..LANES).filter(|i| met >> i & 1 == 1) {
            most[i] = base[i] + pairs.linked_at_most(unit, i);
        }
        let mut best = f64::NEG_INFINITY;
        while let Some((i, bound)) = greatest(&most) {
            if bound <= best {
                break;
            }
            most[i] = f64::NEG_INFINITY;
            best = best.max(base[i] + pairs.linked(unit, i, best - base[i]));
        }
        best
    }
}
