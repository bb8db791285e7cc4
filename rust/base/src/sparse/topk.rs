//! The order of results: score descending, then id ascending; NaN last.

use std::cmp::Ordering;

/// An id with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub id: u32,
    pub score: f64,
}

/// Best first: score descending, then id ascending. NaN of either sign comes last; -0 equals 0.
#[inline]
pub fn rank_order(a: &Scored, b: &Scored) -> Ordering {
    match b.score.partial_cmp(&a.score) {
        Some(Ordering::Equal) => a.id.cmp(&b.id),
        Some(order) => order,
        None => a.score.is_nan().cmp(&b.score.is_nan()).then_with(|| a.id.cmp(&b.id)),
    }
}

/// Round a score to 1e-12, so that mathematically tied nodes are ordered by id.
pub fn quantise(score: f64) -> f64 {
    (score * 1e12).round()
}

/// Return the best `k` of `items`, in [`rank_order`].
pub fn top_k(mut items: Vec<Scored>, k: usize) -> Vec<Scored> {
    keep_best(&mut items, k);
    items.sort_unstable_by(rank_order);
    items
}

/// Keep the best `k`, unordered.
pub fn keep_best(items: &mut Vec<Scored>, k: usize) {
    if k == 0 {
        items.clear();
    }
    if k < items.len() / 4 {
        thin(items, k);
    }
    if k < items.len() {
        items.select_nth_unstable_by(k - 1, rank_order);
        items.truncate(k);
    }
}

/// Keep the best `k` and at most `k` more: a single comparison with a rising floor excludes most items of a
/// long list.
fn thin(items: &mut Vec<Scored>, k: usize) {
    let room = (2 * k).max(64).min(items.len());
    let mut kept = room;
    let mut floor = f64::NEG_INFINITY;
    for at in room..items.len() {
        if kept == room {
            items[..room].select_nth_unstable_by(k - 1, rank_order);
            floor = items[k - 1].score;
            kept = k;
        }
        // NaN, which no floor excludes, is left to the sort order.
        if items[at].score < floor {
            continue;
        }
        items[kept] = items[at];
        kept += 1;
    }
    items.truncate(kept);
}

// Collects the best k items of a stream without storing the rest.

/// The best `k` of the items pushed so far, in the order of [`crate::sparse::rank_order`].
#[derive(Debug)]
pub struct Leaders {
    k: usize,
    /// Items with lower scores cannot be among the best.
    floor: f64,
    items: Vec<Scored>,
}

impl Leaders {
    pub fn new(k: usize) -> Self {
        let floor = if k == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self { k, floor, items: Vec::with_capacity(k.min(1 << 10) * 2) }
    }

    /// Items with lower scores need not be pushed. The floor only rises.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_sorting_everything(
            scores in prop::collection::vec(prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), -1.0..1.0], 0..900),
            k in 0usize..60,
        ) {
            let items: Vec<Scored> = scores.iter().enumerate().map(|(i, &score)| Scored { id: i as u32, score }).collect();
            let mut all = items.clone();
            all.sort_by(rank_order);
            let ids = |x: &[Scored]| x.iter().map(|s| s.id).collect::<Vec<_>>();
            prop_assert_eq!(ids(&top_k(items, k)), ids(&all[..k.min(all.len())]));
        }
    }

    use crate::sparse::top_k;

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
