//! Exact nearest neighbours of every row by cosine similarity.

pub(super) mod floats;
mod rows;
mod squares;

use crate::error::{Error, Result};
use crate::graph::cosine_knn::rows::Knn;
use crate::graph::cosine_knn::squares::{reaching, Packed, Square, SIDE};
use crate::memory::room;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse;
use crate::sparse::{CsrView, Scored};
use crate::vector::best::Best;
use crate::vector::quantised::{Quantised, MAX_DIM};
use crate::vector::simd::Level;
use crate::vector::{Filter, Scratch, Search, Vectors};
use floats::ROWS;
use std::ops::Range;

/// Rows per unit of work. A packed block of columns is reused this many times.
const BAND: usize = 192;
/// Rows per unit of work with byte codes. They stay in the L2 cache while all columns are processed.
const WIDE_BAND: usize = 256;
/// Marks empty slots in rows with fewer neighbours than requested.
pub const NONE: u32 = u32::MAX;

/// Neighbours of each row, best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    /// u32[n, k], padded with [`NONE`].
    pub ids: Vec<u32>,
    /// f64[n, k], padded with 0.
    pub scores: Vec<f64>,
    /// Number of columns of both arrays: the smaller of the requested `k` and n - 1.
    pub k: usize,
}

/// Return for each row the `k` other rows with the highest [`reference_dot`] (score descending, id
/// ascending), excluding row `i` itself and the ids in row `i` of `exclude`. For normalised rows the score is
/// the cosine. Products in byte codes (see [`bytes`]), or in f32, preselect with a proved margin; the
/// survivors are scored again in f64, so the result is the same on every machine and for any number of
/// threads. Work: n^2 d products; memory is bounded by the threads, not by n^2. Progress counts rows.
///
/// [`reference_dot`]: crate::vector::reference_dot
pub fn cosine_knn(
    vectors: &Vectors,
    k: usize,
    exclude: Option<CsrView>,
    level: Level,
    threads: usize,
    progress: &Progress,
) -> Result<Neighbours> {
    let n = vectors.len();
    if let Some(exclude) = exclude {
        if exclude.rows() != n {
            return Err(Error::input(format!("exclude has {} rows for {n} vectors", exclude.rows())));
        }
        exclude.require_sorted()?;
    }
    let k = k.min(n.saturating_sub(1));
    if k == 0 {
        return Ok(Neighbours::default());
    }
    let knn = Knn { vectors, exclude, k, level: level.usable(), progress };
    progress.expect(n as u64);
    // Bands are smaller if there are few rows, so that every thread gets work.
    let workers = crate::parallel::threads(threads);
    let band = |most: usize, rows| most.min(n.div_ceil(workers * 2).next_multiple_of(rows));
    let parts = match Bytes::new(&knn, threads)? {
        Some(bytes) => {
            let grain = band(WIDE_BAND, squares::SIDE);
            map_ranges_with(n, grain, threads, progress, Memory::default, |m, rows| bytes.band(rows, m))?
        }
        None => map_ranges_with(
            n,
            band(BAND, ROWS),
            threads,
            progress,
            || (Vec::new(), Vec::new()),
            |(panels, best), rows| knn.band(rows, panels, best),
        )?,
    };
    let size = n.saturating_mul(k);
    let mut all = Neighbours { ids: room(size, "the neighbours")?, scores: room(size, "the neighbours")?, k };
    for row in parts.iter().flatten() {
        all.ids.extend(row.iter().map(|s| s.id));
        all.scores.extend(row.iter().map(|s| s.score));
        all.ids.resize(all.ids.len() + k - row.len(), NONE);
        all.scores.resize(all.scores.len() + k - row.len(), 0.0);
    }
    debug_assert_eq!(all.ids.len(), n * k);
    Ok(all)
}

// Nearest neighbours by products of byte codes. The remaining candidates are scored in f32, then in f64.
//
// With x = x' + e, where x' is the decoded row and |e| its residual, `x.y = x'.y' + x.e_y + e_x.y'`, so by
// Cauchy-Schwarz the product of the codes is wrong by at most `|x||e_y| + |e_x|(|y| + |e_y|)`.

/// Columns between two checks for a cancellation.
const STRETCH: usize = 64 * SIDE;
/// If at most this many rows remain in addition to twice the requested number, they are scored in f64
/// directly.
const FEW: usize = 8;
/// If the error margin of the codes is a larger share of a row's squared length, too many rows would remain.
const WIDEST_MARGIN: f64 = 0.1;

/// The rows as codes, and the error bounds of their products.
struct Bytes<'a> {
    knn: &'a Knn<'a>,
    packed: Packed,
    /// Per row, padded to whole squares: the step of its codes, and its contribution to the error margin of
    /// any row (minus infinity for padding).
    scale: Vec<f32>,
    spread: Vec<f32>,
    /// A row's contribution to the margin of its products, independent of the other row.
    own: Vec<f64>,
}

/// Buffers that a thread reuses.
#[derive(Default)]
struct Memory {
    best: Vec<Best>,
    floors: Vec<f32>,
    search: Scratch,
}

impl<'a> Bytes<'a> {
    /// Return `None` if the f32 product is faster: for portable code, unusual sizes, or codes that are too
    /// imprecise.
    pub fn new(knn: &'a Knn, threads: usize) -> Result<Option<Self>> {
        let vectors = knn.vectors;
        let (n, d, norm) = (vectors.len(), vectors.dim(), vectors.norm());
        if knn.level == Level::Portable || d > MAX_DIM || !(1e-25..1e25).contains(&(norm * norm)) {
            return Ok(None);
        }
        // Much faster than the steps that follow, so it is not counted as progress.
        let codes = Quantised::build(vectors, threads, &Progress::none())?;
        knn.progress.check()?;
        let residuals = codes.residual.iter().map(|&r| f64::from(r));
        let widest = residuals.clone().fold(0.0, f64::max);
        let margin = 2.0 * norm * residuals.clone().sum::<f64>() / n as f64;
        // Approximate squared length of a row. With codes, a sample is enough.
        let sample = (0..n).step_by(n.div_ceil(1000)).map(|i| vectors.score(i as u32, vectors.row(i)));
        let (sum, count) = sample.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
        if margin > WIDEST_MARGIN * sum / count {
            return Ok(None);
        }
        let whole = n.next_multiple_of(SIDE);
        let packed = Packed::new(knn.level, &codes.codes, d)?;
        // Margin for the rounding of the plain f64 sum and of the few operations on bounds.
        let slack = (d as f64 * 2.3e-16 + 1e-12) * norm * norm;
        let own = residuals.map(|r| (r * (norm + widest) + slack) * (1.0 + 1e-9)).collect();
        let mut spread: Vec<f32> =
            codes.residual.iter().map(|&r| ((norm * (1.0 + 1e-9) * f64::from(r)) as f32).next_up()).collect();
        let mut scale = codes.scale;
        scale.resize(whole, 0.0);
        spread.resize(whole, f32::NEG_INFINITY);
        Ok(Some(Self { knn, packed, scale, spread, own }))
    }

    /// Return the neighbours of `rows`, which begin at a multiple of [`SIDE`].
    pub fn band(&self, rows: Range<usize>, memory: &mut Memory) -> Result<Vec<Vec<Scored>>> {
        let Memory { best, floors, search } = memory;
        let vectors = self.knn.vectors;
        let whole = rows.start..rows.end.next_multiple_of(SIDE);
        best.resize_with(rows.len().max(best.len()), Best::default);
        best[..rows.len()].iter_mut().for_each(|b| b.reset(self.knn.k));
        // No product reaches infinity, which excludes zero rows and padding.
        floors.clear();
        floors.resize(whole.len(), f32::INFINITY);
        let zero: Vec<bool> = rows.clone().map(|i| vectors.row(i).iter().all(|&x| x == 0.0)).collect();
        for (floor, _) in floors.iter_mut().zip(&zero).filter(|(_, &zero)| !zero) {
            *floor = f32::NEG_INFINITY;
        }
        let mut square = Square([[0; SIDE]; SIDE]);
        for stretch in (0..self.scale.len()).step_by(STRETCH) {
            self.knn.progress.check()?;
            let ready = self.packed.ready();
            for column in (stretch..(stretch + STRETCH).min(self.scale.len())).step_by(SIDE) {
                for first in whole.clone().step_by(SIDE) {
                    self.packed.square(&ready, first, column, &mut square);
                    let own = first - rows.start;
                    let best = &mut best[own..rows.len().min(own + SIDE)];
                    self.offer(&square, first, column, best, &mut floors[own..own + SIDE]);
                }
            }
        }
        let finish = |(i, best): (usize, &mut Best)| {
            if zero[i - rows.start] {
                return Ok(self.knn.first_ids(i));
            }
            let (k, left, row) = (self.knn.k, best.left(), vectors.row(i));
            if left.len() <= 2 * k + FEW {
                return Ok(sparse::top_k(vectors.score_many(&left, row), k));
            }
            let some = Search::new(vectors, None, row, Filter::Ids(&left), self.knn.level, search)?;
            Ok(some.best(k, search))
        };
        rows.clone().zip(best).map(finish).collect()
    }

    /// Offer the products of the rows from `first` with the columns from `column` to each row's best
    /// neighbours.
    fn offer(&self, square: &Square, first: usize, column: usize, best: &mut [Best], floors: &mut [f32]) {
        let norm = self.knn.vectors.norm();
        // The upper bounds in f32: their rounding is a few units of 2^-24 of |x'||y'| and the margin, which
        // are at most 4.4 norm^2 each.
        let slack = 4e-6 * norm * norm;
        let (scales, columns) = (&self.scale[first..first + SIDE], &self.scale[column..column + SIDE]);
        let spreads = &self.spread[column..column + SIDE];
        let mut reach = [0; SIDE];
        reaching(self.knn.level, square, (scales, floors), (columns, spreads), &mut reach);
        for (r, best) in best.iter_mut().enumerate() {
            if reach[r] == 0 {
                continue;
            }
            let (i, mut left) = (first + r, reach[r]);
            while left != 0 {
                let c = left.trailing_zeros() as usize;
                left &= left - 1;
                let j = column + c;
                if j >= self.own.len() || self.knn.left_out(i, j) {
                    continue;
                }
                let score = f64::from(scales[r]) * f64::from(columns[c]) * f64::from(square.0[r][c]);
                let margin = self.own[i] + f64::from(spreads[c]);
                best.push(j as u32, score - margin, score + margin, |j| self.knn.score(i, j));
            }
            floors[r] = (best.floor() - self.own[i] - slack) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::{top_k, Csr, Scored};
    use crate::vector::tests::awkward;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_all_pairs_by_every_path(
            seed in prop::collection::vec(-1f32..1.0, 97), n in 0usize..90, d in 1usize..30, k in 0usize..12,
            out in prop::collection::vec(prop::collection::btree_set(0u32..90, 0..6), 90),
        ) {
            let values = awkward(&seed, n, d);
            let vectors = Vectors::new(&values, d).unwrap();
            let out: Vec<Vec<u32>> =
                out[..n].iter().map(|r| r.iter().copied().filter(|&j| (j as usize) < n).collect()).collect();
            let exclude = Csr::from_rows(&out, n).unwrap();
            for level in Level::all() {
                for threads in [1, 3] {
                    let found = cosine_knn(&vectors, k, Some(exclude.view()), level, threads, &Progress::none()).unwrap();
                    prop_assert_eq!(found.k, k.min(n.saturating_sub(1)));
                    for (i, out) in out.iter().enumerate().filter(|_| found.k > 0) {
                        let all = (0..n as u32)
                            .filter(|&j| j as usize != i && !out.contains(&j))
                            .map(|j| Scored { id: j, score: vectors.score(j, vectors.row(i)) })
                            .collect();
                        let best = top_k(all, k);
                        let mut ids: Vec<u32> = best.iter().map(|s| s.id).collect();
                        let mut scores: Vec<f64> = best.iter().map(|s| s.score).collect();
                        ids.resize(found.k, NONE);
                        scores.resize(found.k, 0.0);
                        prop_assert_eq!(&found.ids[i * found.k..(i + 1) * found.k], &ids[..]);
                        prop_assert_eq!(&found.scores[i * found.k..(i + 1) * found.k], &scores[..]);
                    }
                }
            }
        }
    }

    #[test]
    fn bad_input_is_refused_and_stops_are_seen() {
        let vectors = Vectors::new(&[1.0, 1.0], 1).unwrap();
        let ask = |exclude: &Csr, progress: &Progress| {
            cosine_knn(&vectors, 1, Some(exclude.view()), Level::best(), 1, progress)
        };
        assert!(ask(&Csr::from_rows(&[vec![0]], 2).unwrap(), &Progress::none()).is_err());
        assert!(ask(&Csr::from_rows(&[vec![1, 0], vec![]], 2).unwrap(), &Progress::none()).is_err());
        let stopped = Progress::none();
        stopped.stop();
        let nobody: [Vec<u32>; 2] = [vec![], vec![]];
        assert_eq!(ask(&Csr::from_rows(&nobody, 2).unwrap(), &stopped), Err(Error::Cancelled));
        // Identical rows: each is a neighbour of the others, never of itself.
        let twins = ask(&Csr::from_rows(&nobody, 2).unwrap(), &Progress::none()).unwrap();
        assert_eq!(twins.ids, [1, 0]);
    }
}
