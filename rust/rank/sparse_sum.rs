//! Sums over a few of many places, cleared by what was touched.

/// A number for each `i < n`, zero but where something was added since the last `clear`.
#[derive(Debug, Default)]
pub struct SparseSum {
    /// Value and mark side by side: one place in memory for each look.
    cells: Vec<Cell>,
    pub touched: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    value: f64,
    seen: bool,
}

impl SparseSum {
    pub fn fit(&mut self, n: usize) {
        self.clear();
        if self.cells.len() < n {
            self.cells.resize(n, Cell::default());
        }
    }

    #[inline]
    pub fn add(&mut self, i: u32, value: f64) {
        let cell = &mut self.cells[i as usize];
        cell.value += value;
        if !cell.seen {
            cell.seen = true;
            self.touched.push(i);
        }
    }

    #[inline]
    pub fn get(&self, i: u32) -> f64 {
        self.cells[i as usize].value
    }

    #[inline]
    pub fn has(&self, i: u32) -> bool {
        self.cells[i as usize].seen
    }

    /// Takes the value away; the place stays touched.
    pub fn erase(&mut self, i: u32) {
        self.cells[i as usize].value = 0.0;
    }

    pub fn clear(&mut self) {
        for &i in &self.touched {
            self.cells[i as usize] = Cell::default();
        }
        self.touched.clear();
    }
}
