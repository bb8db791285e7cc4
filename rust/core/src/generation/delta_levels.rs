//! What a change of documents brings: new arrays, and what goes and comes on each level.

use crate::store::patch::Numbering;
use std::collections::BTreeMap;

/// The arrays of the stage "units" of the documents that come, as plain numbers.
pub type New = BTreeMap<String, Vec<u64>>;

/// What goes and comes of documents, chunks, units or sentences.
pub(super) struct Level {
    pub gone: Vec<u32>,
    pub before: Vec<u32>,
    pub numbers: Numbering,
}

impl Level {
    pub fn new(gone: Vec<u32>, before: Vec<u32>) -> Self {
        let numbers = Numbering::new(&gone, &before);
        Self { gone, before, numbers }
    }

    pub fn number(&self, k: usize) -> u64 {
        u64::from(Numbering::of_new(&self.gone, self.before[k], k))
    }

    /// Call `each` with what comes (its number and the published place) and what goes (its place), in order.
    pub fn each(&self, mut each: impl FnMut(Option<usize>, u32)) {
        let mut gone = self.gone.iter().copied().peekable();
        for (k, &place) in self.before.iter().enumerate() {
            while let Some(id) = gone.next_if(|&id| id < place) {
                each(None, id);
            }
            each(Some(k), place);
        }
        gone.for_each(|id| each(None, id));
    }
}
