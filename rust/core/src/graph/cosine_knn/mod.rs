//! Exact nearest neighbours of every row by cosine similarity (KET-RAG's semantic neighbours).

mod bytes;
pub(super) mod floats;
mod rows;
mod squares;

use bytes::{Bytes, Memory};
use floats::ROWS;
use rows::Knn;

use crate::error::{Error, Result};
use crate::memory::room;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::sparse::CsrView;
use crate::vector::simd::Level;
use crate::vector::Vectors;

/// Rows per unit of work: a packed block of columns is reused this many times.
const BAND: usize = 192;
/// The same for byte codes: rows that stay in the L2 cache while all columns pass.
const WIDE_BAND: usize = 256;
/// Fills rows with fewer neighbours than requested.
pub const NONE: u32 = u32::MAX;

/// Neighbours of each row, best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    /// u32[n, k], padded with [`NONE`].
    pub ids: Vec<u32>,
    /// f64[n, k], padded with 0.
    pub scores: Vec<f64>,
    /// Columns of both: the smaller of the requested `k` and n - 1.
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
    // Bands shrink if there are few rows, so that every thread gets some.
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
        // Identical rows: each is the other's neighbour, never its own.
        let twins = ask(&Csr::from_rows(&nobody, 2).unwrap(), &Progress::none()).unwrap();
        assert_eq!(twins.ids, [1, 0]);
    }
}
