//! The distinct words of one thread, with marks of the rows to which they were last added.

use super::interner::Interner;

/// Words of one thread. Parallel to each word are three marks that identify the last rows to which it was
/// added.
#[derive(Debug, Default)]
pub(super) struct WordTable {
    words: Interner,
    pub(super) marks: Vec<Marks>,
}

/// The rows in which a word was last seen (0: none yet), and its position in the unit's row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    pub unit: u32,
    pub place: u32,
    pub chunk: u32,
    pub sentence: u32,
}

impl WordTable {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    pub(super) fn get(&self, id: u32) -> &[u8] {
        self.words.bytes(id as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.size()
    }

    pub(super) fn intern(&mut self, word: &str) -> u32 {
        let id = self.words.add(word);
        if id as usize == self.marks.len() {
            self.marks.push(Marks::default());
        }
        id
    }

    /// Return the numbers of the words in byte order.
    pub(super) fn sorted(&self) -> Vec<u32> {
        self.words.order()
    }
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
