//! Repulsion between all nodes, approximated over a quadtree (Barnes and Hut 1986).
//!
//! Points are sorted along a Morton curve, so that every cell of the tree is a run of points. All points of a
//! leaf share one list of the masses that act on them: the centres of mass of far cells, and near points
//! individually.

use crate::error::Result;
use crate::memory::{filled, room};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use std::ops::Range;

const WHAT: &str = "the layout of a graph";

/// The maximum number of points of a leaf, except at the maximum depth.
const LEAF: usize = 24;
/// Bits of a Morton code per axis, which is also the maximum depth.
const BITS: u32 = 16;
/// Number of leaves in a thread's unit of work.
const GRAIN: usize = 16;
/// Keeps the force between points at the same position finite.
const SOFTENING: f64 = 1e-9;

#[derive(Debug, Clone, Copy)]
struct Cell {
    mass: f64,
    x: f64,
    y: f64,
    /// Length of a side.
    size: f64,
    /// Range of points, in the order of the curve.
    first: u32,
    last: u32,
    /// The next cell that is not below this one. Cells are stored before their children.
    skip: u32,
    leaf: bool,
}

/// Points in the order of the curve, and the cells of the tree.
#[derive(Debug, Default)]
pub struct Tree {
    codes: Vec<u64>,
    x: Vec<f64>,
    y: Vec<f64>,
    mass: Vec<f64>,
    cells: Vec<Cell>,
    leaves: Vec<u32>,
    forces: Vec<f64>,
}

/// The masses that act on the points of a leaf, and the resulting forces.
#[derive(Default)]
struct Scratch {
    acting: Vec<[f64; 3]>,
    fx: Vec<f64>,
    fy: Vec<f64>,
}

/// Spread the bits of a number over the even positions.
fn spaced(value: u32) -> u32 {
    let mut v = value & 0xffff;
    v = (v | (v << 8)) & 0x00ff_00ff;
    v = (v | (v << 4)) & 0x0f0f_0f0f;
    v = (v | (v << 2)) & 0x3333_3333;
    (v | (v << 1)) & 0x5555_5555
}

impl Tree {
    /// Build the tree over points (x and y interleaved), reusing the memory of the previous tree.
    pub fn build(&mut self, xy: &[f64], mass: &[f64]) -> Result<()> {
        let n = mass.len();
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for point in xy.chunks_exact(2) {
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        }
        let side = (high[0] - low[0]).max(high[1] - low[1]).max(f64::MIN_POSITIVE);
        let scale = f64::from((1u32 << BITS) - 1) / side;
        let code = |point: &[f64]| {
            let [a, b] = [0, 1].map(|axis| ((point[axis] - low[axis]) * scale) as u32);
            spaced(a) | (spaced(b) << 1)
        };
        self.codes.clear();
        let codes = xy.chunks_exact(2).enumerate().map(|(id, p)| (u64::from(code(p)) << 32) | id as u64);
        self.codes.extend(codes);
        self.codes.sort_unstable();
        for values in [&mut self.x, &mut self.y, &mut self.mass] {
            *values = room(n, WHAT)?;
        }
        for &code in &self.codes {
            let id = code as u32 as usize;
            self.x.push(xy[2 * id]);
            self.y.push(xy[2 * id + 1]);
            self.mass.push(mass[id]);
        }
        self.cells.clear();
        self.leaves.clear();
        if n > 0 {
            self.add_cell(0..n, side, BITS);
        }
        Ok(())
    }

    /// Add the cell of a run of points and its children, and return its number.
    fn add_cell(&mut self, points: Range<usize>, size: f64, left: u32) -> usize {
        let number = self.cells.len();
        let leaf = points.len() <= LEAF || left == 0;
        let (first, last) = (points.start as u32, points.end as u32);
        self.cells.push(Cell { mass: 0.0, x: 0.0, y: 0.0, size, first, last, skip: 0, leaf });
        let (mut mass, mut x, mut y) = (0.0, 0.0, 0.0);
        if leaf {
            self.leaves.push(number as u32);
            for at in points {
                mass += self.mass[at];
                x += self.mass[at] * self.x[at];
                y += self.mass[at] * self.y[at];
            }
        } else {
            let shift = 32 + 2 * (left - 1);
            let mut begin = points.start;
            for quarter in 0..4u64 {
                let run = &self.codes[begin..points.end];
                let end = begin + run.partition_point(|code| (code >> shift) & 3 <= quarter);
                if end > begin {
                    let child = self.add_cell(begin..end, size / 2.0, left - 1);
                    let child = self.cells[child];
                    mass += child.mass;
                    x += child.mass * child.x;
                    y += child.mass * child.y;
                }
                begin = end;
            }
        }
        let skip = self.cells.len() as u32;
        let cell = &mut self.cells[number];
        (cell.mass, cell.x, cell.y, cell.skip) = (mass, x / mass, y / mass, skip);
        number
    }

    /// Return the force on each point, x and y interleaved.
    pub fn forces(&mut self, theta: f64, threads: usize, progress: &Progress) -> Result<&[f64]> {
        let run = |scratch: &mut Scratch, range: Range<usize>| {
            let first = self.cells[self.leaves[range.start] as usize].first as usize;
            let last = self.cells[self.leaves[range.end - 1] as usize].last as usize;
            let mut out: Vec<f64> = room(2 * (last - first), WHAT)?;
            for &leaf in &self.leaves[range] {
                self.act_on(leaf as usize, theta, scratch);
                let mass = &self.mass[self.points(leaf as usize)];
                for ((m, fx), fy) in mass.iter().zip(&scratch.fx).zip(&scratch.fy) {
                    out.extend([m * fx, m * fy]);
                }
                progress.advance(mass.len() as u64);
            }
            Ok(out)
        };
        let quiet = Progress::none();
        let checked = |scratch: &mut Scratch, range: Range<usize>| {
            progress.check()?;
            run(scratch, range)
        };
        let parts = map_ranges_with(self.leaves.len(), GRAIN, threads, &quiet, Scratch::default, checked)?;
        let mut forces = std::mem::take(&mut self.forces);
        if forces.len() != 2 * self.mass.len() {
            forces = filled(0.0, 2 * self.mass.len(), WHAT)?;
        }
        for (code, force) in self.codes.iter().zip(parts.iter().flat_map(|part| part.chunks_exact(2))) {
            let id = *code as u32 as usize;
            forces[2 * id..2 * id + 2].copy_from_slice(force);
        }
        self.forces = forces;
        Ok(&self.forces)
    }

    fn points(&self, cell: usize) -> Range<usize> {
        self.cells[cell].first as usize..self.cells[cell].last as usize
    }

    /// For each point of a leaf, sum mass times direction over distance of all other points.
    fn act_on(&self, leaf: usize, theta: f64, scratch: &mut Scratch) {
        let points = self.points(leaf);
        let (xs, ys) = (&self.x[points.clone()], &self.y[points.clone()]);
        let bounds = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            (low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        let ((left, right), (bottom, top)) = (bounds(xs), bounds(ys));
        scratch.acting.clear();
        let mut at = 0;
        while at < self.cells.len() {
            let cell = &self.cells[at];
            let dx = (left - cell.x).max(cell.x - right).max(0.0);
            let dy = (bottom - cell.y).max(cell.y - top).max(0.0);
            // Rounding can move the centre of mass of a cell of equal points away from them.
            let is_around = cell.first as usize <= points.start && points.end <= cell.last as usize;
            if !is_around && cell.size * cell.size < theta * theta * (dx * dx + dy * dy) {
                scratch.acting.push([cell.x, cell.y, cell.mass]);
                at = cell.skip as usize;
            } else if cell.leaf {
                let near = cell.first as usize..cell.last as usize;
                scratch.acting.extend(near.map(|p| [self.x[p], self.y[p], self.mass[p]]));
                at = cell.skip as usize;
            } else {
                at += 1;
            }
        }
        let Scratch { acting, fx, fy } = scratch;
        for sums in [&mut *fx, &mut *fy] {
            sums.clear();
            sums.resize(xs.len(), 0.0);
        }
        // The inner loop runs over points. Their sums are independent, so it uses vector instructions.
        for &[x, y, mass] in acting.iter() {
            for (((px, py), fx), fy) in xs.iter().zip(ys).zip(fx.iter_mut()).zip(fy.iter_mut()) {
                let (dx, dy) = (px - x, py - y);
                let push = mass / (dx * dx + dy * dy + SOFTENING);
                *fx += push * dx;
                *fy += push * dy;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forces(xy: &[f64], mass: &[f64], theta: f64) -> Vec<f64> {
        let mut tree = Tree::default();
        tree.build(xy, mass).unwrap();
        tree.forces(theta, 2, &Progress::none()).unwrap().to_vec()
    }

    /// The exact sum over all pairs.
    fn plain(xy: &[f64], mass: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; xy.len()];
        for a in 0..mass.len() {
            for b in 0..mass.len() {
                let (dx, dy) = (xy[2 * a] - xy[2 * b], xy[2 * a + 1] - xy[2 * b + 1]);
                let push = mass[a] * mass[b] / (dx * dx + dy * dy + SOFTENING);
                out[2 * a] += push * dx;
                out[2 * a + 1] += push * dy;
            }
        }
        out
    }

    #[test]
    fn points_in_one_place_and_no_points() {
        assert!(forces(&[], &[], 1.0).is_empty());
        let xy = [3.0; 200];
        assert_eq!(forces(&xy, &[1.0; 100], 1.0), vec![0.0; 200]);
        // 5.18 x / 5.18 is not x.
        assert_eq!(forces(&[-28.645638564623077, 0.0], &[5.1811901703889465], 0.7), [0.0; 2]);
    }

    proptest! {
        #[test]
        fn equals_the_sum_over_all_pairs(
            points in prop::collection::vec((-50.0f64..50.0, -50.0f64..50.0, 1.0f64..9.0), 1..200)
        ) {
            let xy: Vec<f64> = points.iter().flat_map(|p| [p.0, p.1]).collect();
            let mass: Vec<f64> = points.iter().map(|p| p.2).collect();
            let exact = plain(&xy, &mass);
            let scale = exact.iter().fold(1.0f64, |m, f| m.max(f.abs()));
            for (found, wanted) in forces(&xy, &mass, 0.0).iter().zip(&exact) {
                prop_assert!((found - wanted).abs() <= 1e-9 * scale, "{found} {wanted}");
            }
            let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
            let near = forces(&xy, &mass, 0.7);
            let off = norm(&mut near.iter().zip(&exact).map(|(a, b)| a - b));
            prop_assert!(off <= 0.05 * norm(&mut exact.iter().copied()) + 1e-9);
        }
    }
}
