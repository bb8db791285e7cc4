//! Numbers for a few of many ids. All other ids have the number 0.

use super::slots::Slots;

/// Up to this many ids the numbers are stored in an array. Above it, a table holds only the ids that have a
/// number.
const DENSE: usize = 1 << 19;

/// Numbers by id. Clearing takes time in proportion to the numbers that were set.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Indexed by id in an array, by slot in a table.
    values: Vec<u32>,
    slots: Option<Slots>,
    /// For an array: the ids that have a number.
    used: Vec<u32>,
}

impl Numbers {
    /// Reset all numbers. Ids must be less than `count`.
    pub fn fit(&mut self, count: usize) {
        self.fit_with(count, DENSE);
    }

    fn fit_with(&mut self, count: usize, dense: usize) {
        self.clear();
        if (count > dense) != self.slots.is_some() {
            *self = Self { slots: (count > dense).then(Slots::default), ..Self::default() };
        }
        if self.slots.is_none() && self.values.len() < count {
            self.values.resize(count, 0);
        }
    }

    #[inline]
    pub fn get(&self, id: u32) -> u32 {
        match &self.slots {
            None => self.values[id as usize],
            Some(slots) => slots.find(id).map_or(0, |slot| self.values[slot]),
        }
    }

    /// Set `out` to the numbers of the given ids.
    #[inline]
    pub fn read(&self, ids: &[u32], out: &mut Vec<u32>) {
        out.clear();
        match &self.slots {
            None => out.extend(ids.iter().map(|&id| self.values[id as usize])),
            Some(_) => out.extend(ids.iter().map(|&id| self.get(id))),
        }
    }

    /// Set the number of an id that has no number yet.
    pub fn set(&mut self, id: u32, number: u32) {
        let Self { values, slots, used } = self;
        let Some(slots) = slots else {
            values[id as usize] = number;
            used.push(id);
            return;
        };
        if slots.is_full() {
            let old = std::mem::take(values);
            let mut moved = Vec::with_capacity(slots.used().len());
            slots.grow(|from, to| moved.push((from, to)));
            *values = vec![0; slots.size()];
            moved.iter().for_each(|&(from, to)| values[to] = old[from]);
        }
        values[slots.find_or_add(id)] = number;
    }

    fn clear(&mut self) {
        let Self { values, slots, used } = self;
        if let Some(slots) = slots {
            slots.used().iter().for_each(|&slot| values[slot as usize] = 0);
            slots.clear();
        }
        used.drain(..).for_each(|id| values[id as usize] = 0);
    }

    /// Return the size of the buffers in bytes.
    pub fn bytes(&self) -> usize {
        4 * (self.values.len() + self.used.capacity())
            + self.slots.as_ref().map_or(0, |slots| 6 * slots.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_array_and_a_table_hold_the_same_numbers() {
        let (mut array, mut table) = (Numbers::default(), Numbers::default());
        for round in 0..3u32 {
            array.fit_with(30_000, 30_000);
            table.fit_with(30_000, 29_999);
            let wanted: BTreeMap<u32, u32> = (1..7_000).map(|k| (k * 4 + round, k)).collect();
            for (&id, &number) in &wanted {
                array.set(id, number);
                table.set(id, number);
            }
            for id in 0..30_000 {
                let want = wanted.get(&id).copied().unwrap_or(0);
                assert_eq!((array.get(id), table.get(id)), (want, want));
            }
        }
        assert!(table.bytes() < 4 * array.bytes());
        array.fit_with(9, 8);
        assert_eq!(array.get(8), 0);
    }
}
