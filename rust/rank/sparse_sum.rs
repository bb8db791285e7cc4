//! Sums over a few of many places, cleared by what was touched.

/// `values[i]` for `i < n`, zero but where something was added since the last `clear`.
#[derive(Debug, Default)]
pub struct SparseSum {
    values: Vec<f64>,
    seen: Vec<bool>,
    pub touched: Vec<u32>,
}

impl SparseSum {
    pub fn fit(&mut self, n: usize) {
        self.clear();
        if self.values.len() < n {
            self.values.resize(n, 0.0);
            self.seen.resize(n, false);
        }
    }

    #[inline]
    pub fn add(&mut self, i: u32, value: f64) {
        let at = i as usize;
        if !self.seen[at] {
            self.seen[at] = true;
            self.touched.push(i);
        }
        self.values[at] += value;
    }

    #[inline]
    pub fn get(&self, i: u32) -> f64 {
        self.values[i as usize]
    }

    #[inline]
    pub fn has(&self, i: u32) -> bool {
        self.seen[i as usize]
    }

    /// Takes the value away; the place stays touched.
    pub fn erase(&mut self, i: u32) {
        self.values[i as usize] = 0.0;
    }

    pub fn clear(&mut self) {
        for &i in &self.touched {
            self.values[i as usize] = 0.0;
            self.seen[i as usize] = false;
        }
        self.touched.clear();
    }
}
