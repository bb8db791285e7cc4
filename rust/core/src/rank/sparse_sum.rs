//! Sparse accumulator: sums at few of many indices, cleared in time proportional to the entries touched.

/// A sum of positive numbers for each `i < n`, zero except at indices added to since the last `clear`.
///
/// Zero itself marks an untouched index: one load per access, so that most of a large index's sums stay in
/// the cache.
/// sums stay in the cache.
#[derive(Debug, Default)]
pub struct SparseSum {
    values: Vec<f64>,
    /// `count` indices, in order of first addition, and room for one more than all.
    places: Vec<u32>,
    count: usize,
}

impl SparseSum {
    pub fn fit(&mut self, n: usize) {
        self.clear();
        // A new zeroed vector rather than a longer one: pages that are never touched cost nothing.
        if self.values.len() < n {
            self.values = vec![0.0; n];
        }
        if self.places.len() <= n {
            self.places = vec![0; n + 1];
        }
    }

    /// Return the touched indices, in order of first addition.
    pub fn touched(&self) -> &[u32] {
        &self.places[..self.count]
    }

    /// Add a positive number; a product that underflowed to zero adds nothing. Whether an index is new is
    /// unpredictable, so it is always written, and kept if it is new.
    #[inline]
    pub fn add(&mut self, i: u32, value: f64) {
        debug_assert!(value >= 0.0);
        let sum = &mut self.values[i as usize];
        self.places[self.count] = i;
        self.count += usize::from((*sum == 0.0) & (value != 0.0));
        *sum += value;
    }

    #[inline]
    pub fn get(&self, i: u32) -> f64 {
        self.values[i as usize]
    }

    #[inline]
    pub fn has(&self, i: u32) -> bool {
        self.values[i as usize] != 0.0
    }

    /// Reset one value; its index remains touched, and nothing may be added to it.
    pub fn erase(&mut self, i: u32) {
        self.values[i as usize] = 0.0;
    }

    pub fn clear(&mut self) {
        let Self { values, places, count } = self;
        if *count > values.len() / 8 {
            values.fill(0.0);
        } else {
            places[..*count].iter().for_each(|&i| values[i as usize] = 0.0);
        }
        *count = 0;
    }
}
