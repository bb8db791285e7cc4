//! Exact top-k selection over rows whose scores are only known within bounds.

use crate::sparse::Scored;

/// Rows that may still be among the best `k`. Each has a score between `lower` and `upper`. A row is dropped
/// once `k` others are certain to score strictly higher, so rows with equal scores remain and are ordered by
/// id.
#[derive(Debug, Default)]
pub struct Best {
    k: usize,
    floor: f64,
    limit: usize,
    cap: usize,
    items: Vec<Candidate>,
    lowers: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    lower: f64,
    upper: f64,
}

impl Best {
    /// Start a new search. Buffers are reused. Their size is bounded by `k` plus a constant, regardless of
    /// the number of ties.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.floor = if k == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        self.items.clear();
        self.limit = k.saturating_mul(2).saturating_add(64);
        self.cap = k.saturating_mul(8).saturating_add(8192);
    }

    /// Return the score that a row must be able to reach to be pushed.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// Add a row. `exact` computes its full score. It is called only if very many rows have overlapping
    /// bounds.
    #[inline]
    pub fn push(&mut self, id: u32, lower: f64, upper: f64, exact: impl Fn(u32) -> f64) {
        if upper >= self.floor && self.k > 0 {
            self.items.push(Candidate { id, lower, upper });
            if self.items.len() >= self.limit {
                self.shrink(exact);
            }
        }
    }

    #[cold]
    fn shrink(&mut self, exact: impl Fn(u32) -> f64) {
        self.prune();
        if self.items.len() > self.cap {
            // Bounds do not separate these rows, so compare their exact scores.
            let best = self.settled(exact);
            self.items.clear();
            self.items.extend(best.iter().map(|s| Candidate { id: s.id, lower: s.score, upper: s.score }));
            self.floor = self.items.last().map_or(self.floor, |c| c.lower);
        }
        self.limit = (self.items.len() * 2).max(self.k.saturating_mul(2).saturating_add(64));
    }

    fn prune(&mut self) {
        if self.items.len() <= self.k || self.k == 0 {
            return;
        }
        self.lowers.clear();
        self.lowers.extend(self.items.iter().map(|c| c.lower));
        let (_, kth, _) = self.lowers.select_nth_unstable_by(self.k - 1, |a, b| b.total_cmp(a));
        self.floor = self.floor.max(*kth);
        let floor = self.floor;
        self.items.retain(|c| c.upper >= floor);
    }

    fn settled(&self, exact: impl Fn(u32) -> f64) -> Vec<Scored> {
        let all = self.items.iter().map(|c| Scored { id: c.id, score: exact(c.id) }).collect();
        crate::sparse::top_k(all, self.k)
    }

    /// Return the ids of the remaining rows, ascending.
    pub fn left(&mut self) -> Vec<u32> {
        self.prune();
        let mut ids: Vec<u32> = self.items.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Return the best `k`, scored by `exact`, in the order of results.
    pub fn finish(&mut self, exact: impl Fn(u32) -> f64) -> Vec<Scored> {
        self.prune();
        self.settled(exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_never_lose_a_row(
            scores in prop::collection::vec(prop_oneof![Just(0.5), -1.0..1.0f64], 0..400),
            k in 0usize..12, wide in 0.0..0.3f64,
        ) {
            let mut best = Best::default();
            best.reset(k);
            best.cap = 100; // so that `settled` is reached
            for (id, &score) in scores.iter().enumerate() {
                let (down, up) = (wide * ((id % 7) as f64 / 7.0), wide * ((id % 5) as f64 / 5.0));
                best.push(id as u32, score - down, score + up, |id| scores[id as usize]);
            }
            let all = scores.iter().enumerate().map(|(id, &score)| Scored { id: id as u32, score }).collect();
            let left = best.left().into_iter().map(|id| Scored { id, score: scores[id as usize] }).collect();
            let all = crate::sparse::top_k(all, k);
            prop_assert_eq!(&crate::sparse::top_k(left, k), &all);
            prop_assert_eq!(best.finish(|id| scores[id as usize]), all);
        }
    }
}
