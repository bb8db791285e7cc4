//! The best k items of a stream, without storing the rest.

use super::topk::{rank_order, Scored};

/// The best `k` of the items pushed so far, in the order of [`super::rank_order`].
#[derive(Debug)]
pub struct Leaders {
    k: usize,
    /// Lower scores cannot be among the best.
    floor: f64,
    items: Vec<Scored>,
}

impl Leaders {
    pub fn new(k: usize) -> Self {
        let floor = if k == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self { k, floor, items: Vec::with_capacity(k.min(1 << 10) * 2) }
    }

    /// Lower scores need not be pushed. The floor only rises.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// Return whether the floor rose. NaN, which no floor excludes, is left to the sort order.
    #[inline]
    pub fn push(&mut self, item: Scored) -> bool {
        if item.score < self.floor || self.k == 0 {
            return false;
        }
        self.items.push(item);
        self.items.len() >= 2 * self.k && self.shrink()
    }

    #[cold]
    fn shrink(&mut self) -> bool {
        self.items.select_nth_unstable_by(self.k - 1, rank_order);
        self.items.truncate(self.k);
        self.floor = self.items[self.k - 1].score;
        true
    }

    /// Return the items, best first.
    pub fn finish(mut self) -> Vec<Scored> {
        if self.k < self.items.len() {
            self.shrink();
        }
        self.items.sort_unstable_by(rank_order);
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::top_k;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_list_in_one_piece(
            scores in prop::collection::vec(prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), -1.0..1.0], 0..900),
            k in 0usize..60,
        ) {
            let items: Vec<Scored> = scores.iter().enumerate().map(|(i, &score)| Scored { id: i as u32, score }).collect();
            let mut leaders = Leaders::new(k);
            for &item in &items {
                leaders.push(item);
            }
            let ids = |x: Vec<Scored>| x.iter().map(|s| s.id).collect::<Vec<_>>();
            prop_assert_eq!(ids(leaders.finish()), ids(top_k(items, k)));
        }
    }
}
