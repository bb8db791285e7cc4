//! A hash table from ids to slots. Its size follows the number of ids in use, not their range.

/// Hash multiplier: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// Initial number of slots.
const LEAST: usize = 1 << 12;
const EMPTY: u32 = u32::MAX;

/// Open-addressing table of ids below 2^32 - 1. A slot keeps its id until `clear` or until the table grows.
#[derive(Debug, Default)]
pub struct Slots {
    /// The id of each slot, or [`EMPTY`].
    ids: Vec<u32>,
    /// Slots in use, in order of insertion.
    used: Vec<u32>,
    shift: u32,
}

impl Slots {
    /// Return the number of slots.
    pub fn size(&self) -> usize {
        self.ids.len()
    }

    pub fn used(&self) -> &[u32] {
        &self.used
    }

    /// Return the id of a slot in use.
    #[inline]
    pub fn id(&self, slot: u32) -> u32 {
        self.ids[slot as usize]
    }

    /// Return the slot of an id, if it has one.
    #[inline]
    pub fn find(&self, id: u32) -> Option<usize> {
        if self.ids.is_empty() {
            return None;
        }
        let at = self.search(id);
        (self.ids[at] == id).then_some(at)
    }

    /// Return the slot of an id. Assigns a slot if the id has none.
    #[inline]
    pub fn find_or_add(&mut self, id: u32) -> usize {
        let at = self.search(id);
        if self.ids[at] == EMPTY {
            self.ids[at] = id;
            self.used.push(at as u32);
        }
        at
    }

    /// Return the slot that has the id, or the empty slot where it belongs.
    #[inline]
    fn search(&self, id: u32) -> usize {
        let mask = self.ids.len() - 1;
        let mut at = (u64::from(id).wrapping_mul(MIX) >> self.shift) as usize & mask;
        while self.ids[at] != id && self.ids[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// Return whether the table must grow before another id is added. It grows when half of its slots are in
    /// use.
    #[inline]
    pub fn is_full(&self) -> bool {
        2 * self.used.len() >= self.ids.len()
    }

    /// Grow the table. `moved` gets the old and the new slot of every id.
    #[cold]
    pub fn grow(&mut self, mut moved: impl FnMut(usize, usize)) {
        let size = (4 * self.ids.len()).max(LEAST);
        let ids = std::mem::replace(&mut self.ids, vec![EMPTY; size]);
        self.shift = 64 - size.trailing_zeros();
        for old in std::mem::take(&mut self.used) {
            let new = self.find_or_add(ids[old as usize]);
            moved(old as usize, new);
        }
    }

    pub fn clear(&mut self) {
        let Self { ids, used, .. } = self;
        used.drain(..).for_each(|slot| ids[slot as usize] = EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn ids_keep_their_slots_until_the_table_grows() {
        let mut slots = Slots::default();
        assert_eq!((slots.find(3), slots.size()), (None, 0));
        for round in 0..3u32 {
            let mut known: BTreeMap<u32, usize> = BTreeMap::new();
            for k in 0..9000u32 {
                let id = k.wrapping_mul(2_654_435_761) % 20_000 + round;
                if slots.is_full() {
                    slots.grow(|old, new| {
                        let (_, slot) = known.iter_mut().find(|(_, slot)| **slot == old).unwrap();
                        *slot = new + (1 << 32);
                    });
                    known.values_mut().for_each(|slot| *slot &= (1 << 32) - 1);
                }
                let slot = slots.find_or_add(id);
                assert_eq!(*known.entry(id).or_insert(slot), slot);
                assert_eq!((slots.id(slot as u32), slots.find(id)), (id, Some(slot)));
            }
            assert_eq!(slots.used().len(), known.len());
            assert!(slots.find(30_000).is_none());
            slots.clear();
            assert!(slots.used().is_empty() && slots.find(round).is_none());
        }
        assert_eq!(slots.size(), 1 << 16);
    }
}
