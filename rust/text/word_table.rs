//! Each distinct word of one thread once, with marks of the rows it was last put into.

/// Words of one thread. Beside each word lie three marks, which tell the last rows it was put into.
#[derive(Debug)]
pub(super) struct WordTable {
    blob: Vec<u8>,
    ends: Vec<u64>,
    /// Open addressing; a power of two, at most half full. Zero is free, else a word's number + 1.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    pub(super) marks: Vec<Marks>,
}

/// The rows a word was last seen in (0: none yet), and its place in the unit's row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub unit: u32,
    pub place: u32,
    pub chunk: u32,
    pub sentence: u32,
}

impl Default for WordTable {
    fn default() -> Self {
        Self { blob: Vec::new(), ends: Vec::new(), slots: vec![0; 1 << 12], hashes: Vec::new(), marks: Vec::new() }
    }
}

impl WordTable {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.blob[start as usize..self.ends[id] as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.blob.len()
    }

    pub(super) fn intern(&mut self, word: &str) -> u32 {
        let hash = hash_of(word.as_bytes());
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 32) as usize & mask;
        while self.slots[slot] != 0 {
            let id = self.slots[slot] - 1;
            if self.hashes[id as usize] == hash && self.get(id) == word.as_bytes() {
                return id;
            }
            slot = (slot + 1) & mask;
        }
        let id = self.ends.len() as u32;
        self.blob.extend_from_slice(word.as_bytes());
        self.ends.push(self.blob.len() as u64);
        self.hashes.push(hash);
        self.marks.push(Marks::default());
        self.slots[slot] = id + 1;
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        id
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![0; mask + 1];
        for (id, hash) in self.hashes.iter().enumerate() {
            let mut slot = (hash >> 32) as usize & mask;
            while self.slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = id as u32 + 1;
        }
    }

    /// The numbers of the words in the order of their bytes.
    pub(super) fn sorted(&self) -> Vec<u32> {
        // The first eight bytes decide for nearly all pairs; words shorter than that are padded
        // with zeros, and equal keys are compared in full.
        let mut keys: Vec<(u64, u32)> = (0..self.len() as u32)
            .map(|id| {
                let word = self.get(id);
                let mut first = [0u8; 8];
                let length = word.len().min(8);
                first[..length].copy_from_slice(&word[..length]);
                (u64::from_be_bytes(first), id)
            })
            .collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))));
        keys.into_iter().map(|(_, id)| id).collect()
    }
}

fn hash_of(word: &[u8]) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = word.len() as u64;
    let mut step = |x: u64| hash = (hash.rotate_left(23) ^ x).wrapping_mul(K);
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        step(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
    }
    let mut last = [0u8; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    step(u64::from_le_bytes(last));
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_once_and_sort_by_bytes() {
        let mut table = WordTable::default();
        let words: Vec<String> = (0..9000).map(|i| format!("w{}é{}", i % 6000, "x".repeat(i % 5))).collect();
        let ids: Vec<u32> = words.iter().map(|w| table.intern(w)).collect();
        for (word, &id) in words.iter().zip(&ids) {
            assert_eq!(table.get(id), word.as_bytes());
            assert_eq!(table.intern(word), id);
        }
        let mut expected: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        expected.sort();
        expected.dedup();
        let sorted: Vec<&[u8]> = table.sorted().into_iter().map(|id| table.get(id)).collect();
        assert_eq!(sorted, expected);
    }
}
