//! Sparse accumulator: sums at few of many indices, cleared in time proportional to the entries touched.
//!
//! Sums are integers, so they do not depend on the order of the additions.

use super::slots::Slots;

/// Up to this many indices the sums are stored in an array. Above it, a table holds only the touched indices.
const DENSE: usize = 1 << 19;
/// The integer that represents 1.
const ONE: f64 = (1u64 << 62) as f64;

/// Sums of numbers from 0 to 1 for each `i < n`, in steps of 2^-62. A sum is zero unless its index was added
/// to since the last `clear`, and must stay below 2.
///
/// In an array, zero marks an untouched index. An access is thus a single load, and most of a large index's
/// sums stay in the cache.
#[derive(Debug, Default)]
pub struct SparseSum {
    /// Indexed by index in an array, by slot in a table.
    values: Vec<i64>,
    slots: Option<Slots>,
    /// For an array: the touched indices in order of first addition, and their number. It has one more entry
    /// than there are indices.
    places: Vec<u32>,
    count: usize,
}

impl SparseSum {
    pub fn fit(&mut self, n: usize) {
        self.fit_with(n, DENSE);
    }

    fn fit_with(&mut self, n: usize, dense: usize) {
        self.clear();
        if n > dense {
            if self.slots.is_none() {
                *self = Self { slots: Some(Slots::default()), ..Self::default() };
            }
            return;
        }
        self.slots = None;
        // Allocate a new zeroed vector instead of extending this one, because pages that are never touched
        // cost nothing.
        if self.values.len() < n {
            self.values = vec![0; n];
        }
        if self.places.len() <= n {
            self.places = vec![0; n + 1];
        }
    }

    /// Iterate over touched indices and their sums, in order of first addition.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let id = |at: u32| self.slots.as_ref().map_or(at, |slots| slots.id(at));
        self.places().iter().map(move |&at| (id(at), self.values[at as usize] as f64 / ONE))
    }

    fn places(&self) -> &[u32] {
        self.slots.as_ref().map_or(&self.places[..self.count], Slots::used)
    }

    /// Add a number. A number less than half a step adds nothing. Whether an index is new is hard to predict,
    /// so the index is always written, and the length grows only if it is new.
    #[inline]
    pub fn add(&mut self, i: u32, value: f64) {
        debug_assert!(value >= 0.0);
        let steps = (value * ONE + 0.5) as i64;
        if self.slots.is_some() {
            return self.add_to_slot(i, steps);
        }
        let sum = &mut self.values[i as usize];
        self.places[self.count] = i;
        self.count += usize::from((*sum == 0) & (steps != 0));
        *sum = sum.wrapping_add(steps);
    }

    /// Add a number to each of the given indices: see [`Self::add`].
    #[inline]
    pub fn add_each(&mut self, parts: impl Iterator<Item = (u32, f64)>) {
        if self.slots.is_some() {
            return parts.for_each(|(i, value)| self.add(i, value));
        }
        let Self { values, places, count, .. } = self;
        let mut end = *count;
        for (i, value) in parts {
            debug_assert!(value >= 0.0);
            let steps = (value * ONE + 0.5) as i64;
            let sum = &mut values[i as usize];
            places[end] = i;
            end += usize::from((*sum == 0) & (steps != 0));
            *sum = sum.wrapping_add(steps);
        }
        *count = end;
    }

    fn add_to_slot(&mut self, i: u32, steps: i64) {
        let Self { values, slots: Some(slots), .. } = self else { return };
        if steps == 0 {
            return;
        }
        if slots.is_full() {
            let old = std::mem::take(values);
            let mut moved = Vec::with_capacity(slots.used().len());
            slots.grow(|from, to| moved.push((from, to)));
            *values = vec![0; slots.size()];
            moved.iter().for_each(|&(from, to)| values[to] = old[from]);
        }
        let sum = &mut values[slots.find_or_add(i)];
        *sum = sum.wrapping_add(steps);
    }

    #[inline]
    fn steps(&self, i: u32) -> i64 {
        match &self.slots {
            None => self.values[i as usize],
            Some(slots) => slots.find(i).map_or(0, |slot| self.values[slot]),
        }
    }

    #[inline]
    pub fn get(&self, i: u32) -> f64 {
        self.steps(i) as f64 / ONE
    }

    #[inline]
    pub fn has(&self, i: u32) -> bool {
        self.steps(i) != 0
    }

    /// Reset one value. Its index remains touched, and nothing more may be added to it.
    pub fn erase(&mut self, i: u32) {
        match &self.slots {
            None => self.values[i as usize] = 0,
            Some(slots) => {
                if let Some(slot) = slots.find(i) {
                    self.values[slot] = 0;
                }
            }
        }
    }

    pub fn clear(&mut self) {
        let Self { values, slots, places, count } = self;
        let touched = slots.as_ref().map_or(&places[..*count], Slots::used);
        if touched.len() > values.len() / 8 {
            values.fill(0);
        } else {
            touched.iter().for_each(|&at| values[at as usize] = 0);
        }
        *count = 0;
        slots.iter_mut().for_each(Slots::clear);
    }

    /// Return the number of bytes of the buffers.
    pub fn bytes(&self) -> usize {
        8 * self.values.len()
            + 4 * self.places.len()
            + self.slots.as_ref().map_or(0, |slots| 6 * slots.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn an_array_and_a_table_hold_the_same_sums_in_any_order(
            parts in prop::collection::vec((0u32..9_000, 0.0f64..1e-3), 0..600), seed: u64,
        ) {
            let mut turned = parts.clone();
            turned.sort_by_key(|part| part.1.to_bits().wrapping_mul(seed | 1));
            let (mut array, mut table) = (SparseSum::default(), SparseSum::default());
            for _ in 0..2 {
                array.fit_with(9_000, 9_000);
                table.fit_with(9_000, 8_999);
                parts.iter().for_each(|&(i, x)| array.add(i, x));
                turned.iter().for_each(|&(i, x)| table.add(i, x));
                let all: BTreeMap<u32, u64> = array.iter().map(|(i, x)| (i, x.to_bits())).collect();
                prop_assert_eq!(&all, &table.iter().map(|(i, x)| (i, x.to_bits())).collect());
                for i in 0..9_000 {
                    prop_assert_eq!(array.get(i).to_bits(), table.get(i).to_bits());
                    prop_assert_eq!((array.has(i), table.has(i)), (all.contains_key(&i), all.contains_key(&i)));
                }
                let sum: f64 = parts.iter().filter(|part| part.0 == 7).map(|part| part.1).sum();
                prop_assert!((array.get(7) - sum).abs() < 1e-16);
            }
            if let Some(&(i, _)) = parts.first() {
                [&mut array, &mut table].iter_mut().for_each(|sums| sums.erase(i));
                prop_assert!(!array.has(i) && !table.has(i));
            }
        }
    }
}
