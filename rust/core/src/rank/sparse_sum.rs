//! Sums over a few of many places, cleared by what was touched.

/// A sum of positive numbers for each `i < n`, zero but where something was added since the last `clear`.
///
/// Zero itself says that a place is untouched: one number for each look, so that most of a large index's
/// sums stay in the cache.
#[derive(Debug, Default)]
pub struct SparseSum {
    values: Vec<f64>,
    /// `count` places, in the order in which something was first added, and room for one more than all.
    places: Vec<u32>,
    count: usize,
}

impl SparseSum {
    pub fn fit(&mut self, n: usize) {
        self.clear();
        // New ones, all zero, rather than longer ones: pages that are never touched cost nothing.
        if self.values.len() < n {
            self.values = vec![0.0; n];
        }
        if self.places.len() <= n {
            self.places = vec![0; n + 1];
        }
    }

    /// The places, in the order in which something was first added.
    pub fn touched(&self) -> &[u32] {
        &self.places[..self.count]
    }

    /// Adds a positive number; a product that fell to zero adds nothing. Whether a place is new cannot be
    /// foreseen, so it is written down in any case, and kept if it is.
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

    /// Takes the value away; the place stays among the touched, and nothing may be added to it.
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
