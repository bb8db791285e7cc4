//! A few steps of personalised PageRank from a few nodes, in push form: only reached nodes are touched.
//!
//! The formulas are those of [`crate::rank::pagerank`], with the entry points as the restart distribution `p` and
//! one difference: a node without out-edges keeps its mass, so that a short walk does not leak. Nodes push
//! their mass in ascending order of id, so each sum runs in the order of its sources.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::pagerank::Walk;
use crate::rank::sparse_sum::SparseSum;
use crate::sparse::{rank_order, CsrView, Scored};

/// Edges between two checks of the progress.
const EDGES: usize = 1 << 18;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Probability of returning to the entry points in each step (or, in the lazy walk, of staying).
    pub teleport: f64,
    pub steps: u32,
    pub walk: Walk,
}

impl Default for Settings {
    /// NodeRAG's shallow PageRank.
    fn default() -> Self {
        Self { teleport: 0.5, steps: 2, walk: Walk::Teleport }
    }
}

/// The buffers of the walk, reused from query to query.
#[derive(Debug, Default)]
pub struct Spread {
    mass: SparseSum,
    next: SparseSum,
    /// The entry points, ascending, with their shares.
    start: Vec<(u32, f64)>,
    /// The nodes that have mass, ascending.
    active: Vec<u32>,
}

impl Spread {
    /// Walk `settings.steps` steps over the square graph `edges` from `entries` (id, weight). Their weights
    /// are normalised, and weights of the same id are added. `weight(index)` is the weight of the edge at
    /// that index of `edges.indices`: finite and not negative. Only the rows of reached nodes are read.
    /// Without entries no node is reached. Read the result with [`Self::reached`] and [`Self::ranked`].
    pub fn run(
        &mut self,
        edges: CsrView<'_>,
        weight: impl Fn(usize) -> f64,
        entries: &[(u32, f64)],
        settings: &Settings,
        progress: &Progress,
    ) -> Result<()> {
        let n = edges.rows();
        if edges.columns != n {
            return Err(Error::input(format!(
                "the graph has {n} rows but {} columns: a walk needs a square one",
                edges.columns
            )));
        }
        let t = settings.teleport;
        if !(t > 0.0 && t <= 1.0) {
            return Err(Error::input(format!("teleport must be in (0, 1], not {t}")));
        }
        self.mass.fit(n);
        self.next.fit(n);
        self.begin(n, entries)?;
        progress.expect(u64::from(settings.steps));
        for _ in 0..settings.steps {
            progress.check()?;
            self.step(edges, &weight, settings, progress)?;
            progress.advance(1);
        }
        Ok(())
    }

    /// Iterate over nodes with mass, in no particular order.
    pub fn reached(&self) -> impl Iterator<Item = Scored> + '_ {
        self.mass.iter().map(|(id, score)| Scored { id, score })
    }

    /// Return the nodes with mass, in descending order of mass, then ascending id.
    pub fn ranked(&self) -> Vec<Scored> {
        let mut all: Vec<Scored> = self.reached().collect();
        all.sort_unstable_by(rank_order);
        all
    }

    /// Return the mass of a node; 0 if it was not reached.
    pub fn score(&self, id: u32) -> f64 {
        self.mass.get(id)
    }

    fn begin(&mut self, n: usize, entries: &[(u32, f64)]) -> Result<()> {
        for (i, &(id, weight)) in entries.iter().enumerate() {
            if id as usize >= n {
                return Err(Error::input(format!("entries[{i}] is {id}: there are {n} nodes")));
            }
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(Error::input(format!(
                    "entry_weights[{i}] is {weight}, not a finite number >= 0"
                )));
            }
        }
        let sum: f64 = entries.iter().map(|entry| entry.1).sum();
        let good = sum > 0.0 && sum.is_finite();
        if !entries.is_empty() && !good {
            return Err(Error::input(format!("entry_weights sum to {sum}: they need some mass")));
        }
        entries.iter().for_each(|&(id, weight)| self.mass.add(id, weight / sum));
        self.start.clear();
        self.start.extend(self.mass.iter());
        self.start.sort_unstable_by_key(|entry| entry.0);
        Ok(())
    }

    fn step(
        &mut self,
        edges: CsrView<'_>,
        weight: &impl Fn(usize) -> f64,
        settings: &Settings,
        progress: &Progress,
    ) -> Result<()> {
        let Self { mass, next, start, active } = self;
        active.clear();
        active.extend(mass.iter().map(|(id, _)| id));
        active.sort_unstable();
        let (stays, moves) = (settings.teleport, 1.0 - settings.teleport);
        let mut until_check = EDGES;
        // Add the mass that moves first, then the mass that stays or returns. Any order would satisfy the
        // formula, but the order must be fixed.
        for &from in active.iter() {
            let row = edges.range(from as usize);
            let out = out_weight(row.clone(), weight)?;
            let own = mass.get(from) * moves;
            if out == 0.0 {
                next.add(from, own);
                continue;
            }
            let share = own / out;
            for place in row.clone() {
                next.add(edges.indices[place], share * weight(place));
            }
            until_check = until_check.saturating_sub(row.len());
            if until_check == 0 {
                progress.check()?;
                until_check = EDGES;
            }
        }
        match settings.walk {
            Walk::Teleport => start.iter().for_each(|&(id, share)| next.add(id, stays * share)),
            Walk::Lazy => active.iter().for_each(|&id| next.add(id, stays * mass.get(id))),
        }
        mass.clear();
        std::mem::swap(mass, next);
        Ok(())
    }
}

/// Return the sum of a row's weights.
fn out_weight(row: std::ops::Range<usize>, weight: &impl Fn(usize) -> f64) -> Result<f64> {
    let sum: f64 = row.clone().map(weight).sum();
    let whole = row.clone().all(|place| weight(place) >= 0.0);
    if whole && sum.is_finite() {
        return Ok(sum);
    }
    let wrong = |place: &usize| !(weight(*place).is_finite() && weight(*place) >= 0.0);
    Err(match row.clone().find(wrong) {
        Some(place) => {
            Error::input(format!("weights[{place}] is {}, not a finite number >= 0", weight(place)))
        }
        None => Error::input(format!("the weights from {} on add up to infinity", row.start)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::pagerank;
    use crate::sparse::Csr;
    use proptest::prelude::*;

    fn run(csr: &Csr, entries: &[(u32, f64)], settings: &Settings) -> Result<Vec<(u32, f64)>> {
        let mut spread = Spread::default();
        spread.run(csr.view(), |_| 1.0, entries, settings, &Progress::none())?;
        Ok(spread.ranked().iter().map(|s| (s.id, s.score)).collect())
    }

    #[test]
    fn two_steps_with_teleport_and_lazy() {
        // Node 0 -> 1 -> {0, 2}, 2 -> 0, and an unreachable one.
        let csr = Csr::from_rows(&[vec![1u32], vec![0, 2], vec![0], vec![0]], 4).unwrap();
        let of = |walk| run(&csr, &[(0, 7.0)], &Settings { walk, ..Settings::default() }).unwrap();
        assert_eq!(of(Walk::Teleport), [(0, 0.625), (1, 0.25), (2, 0.125)]);
        assert_eq!(of(Walk::Lazy), [(1, 0.5), (0, 0.375), (2, 0.125)]);
    }

    #[test]
    fn a_node_without_edges_keeps_its_mass_and_equal_scores_go_by_id() {
        let csr = Csr::from_rows(&[vec![2u32, 1], vec![], vec![], vec![]], 4).unwrap();
        for walk in [Walk::Teleport, Walk::Lazy] {
            let settings = Settings { walk, ..Settings::default() };
            assert_eq!(run(&csr, &[(3, 2.0)], &settings).unwrap(), [(3, 1.0)]);
            let got = run(&csr, &[(0, 1.0)], &settings).unwrap();
            assert_eq!(got.iter().map(|g| g.1).sum::<f64>(), 1.0);
            let twins: Vec<&(u32, f64)> = got.iter().filter(|g| g.0 > 0).collect();
            assert_eq!((twins[0].0, twins[1].0), (1, 2));
            assert_eq!(twins[0].1, twins[1].1);
        }
        assert_eq!(run(&csr, &[], &Settings::default()).unwrap(), []);
        let still = Settings { steps: 0, ..Settings::default() };
        assert_eq!(
            run(&csr, &[(2, 1.0), (1, 2.0), (2, 1.0), (0, 0.0)], &still).unwrap(),
            [(1, 0.5), (2, 0.5)]
        );
    }

    #[test]
    fn bad_input_is_named_and_leaves_the_buffers_usable() {
        let csr = Csr::from_rows(&[[1u32], [0]], 2).unwrap();
        let said = |entries: &[(u32, f64)], settings: &Settings| {
            run(&csr, entries, settings).unwrap_err().to_string()
        };
        let good = Settings::default();
        assert!(said(&[(0, 1.0), (2, 1.0)], &good).contains("entries[1] is 2"));
        assert!(said(&[(0, f64::NAN)], &good).contains("entry_weights[0]"));
        assert!(said(&[(0, -1.0)], &good).contains("entry_weights[0]"));
        assert!(said(&[(0, 0.0)], &good).contains("sum to 0"));
        for teleport in [0.0, 1.5, f64::NAN] {
            assert!(said(&[(0, 1.0)], &Settings { teleport, ..good }).contains("teleport"));
        }
        let wide = Csr::from_rows(&[[1u32]], 2).unwrap();
        assert!(run(&wide, &[(0, 1.0)], &good).unwrap_err().to_string().contains("square"));
        let mut spread = Spread::default();
        for bad in [f64::NAN, -1.0, f64::INFINITY] {
            let weights = [1.0, bad];
            let failed = spread.run(csr.view(), |p| weights[p], &[(0, 1.0)], &good, &Progress::none());
            assert!(failed.unwrap_err().to_string().contains("weights[1]"));
        }
        spread.run(csr.view(), |_| 1.0, &[(0, 1.0)], &good, &Progress::none()).unwrap();
        assert_eq!(spread.ranked().len(), 2);
        assert_eq!((spread.score(0), spread.score(1)), (0.75, 0.25));
        let progress = Progress::none();
        progress.stop();
        assert_eq!(spread.run(csr.view(), |_| 1.0, &[(0, 1.0)], &good, &progress), Err(Error::Cancelled));
    }

    proptest! {
        /// The result equals the dense kernel's if every node has edges.
        #[test]
        fn equals_pagerank(
            rows in (1usize..9).prop_flat_map(|n| prop::collection::vec(prop::collection::vec((0..n as u32, 0.1f64..3.0), 1..6), n)),
            entries in prop::collection::vec((0usize..9, 0.1f64..2.0), 1..5),
            teleport in 0.05f64..=1.0,
            steps in 0u32..5,
            lazy: bool,
        ) {
            let n = rows.len();
            let ids: Vec<Vec<u32>> = rows.iter().map(|r| r.iter().map(|e| e.0).collect()).collect();
            let weights: Vec<f64> = rows.iter().flatten().map(|e| e.1).collect();
            let csr = Csr::from_rows(&ids, n).unwrap();
            let entries: Vec<(u32, f64)> = entries.into_iter().map(|(i, w)| ((i % n) as u32, w)).collect();
            let mut restart = vec![0.0; n];
            entries.iter().for_each(|&(i, w)| restart[i as usize] += w);
            let walk = if lazy { Walk::Lazy } else { Walk::Teleport };
            let dense = pagerank::Settings { teleport, until: pagerank::Until::Steps(steps), walk, threads: 1 };
            let want = pagerank::pagerank(csr.view(), Some(&weights), Some(&restart), &dense, &Progress::none()).unwrap();
            let mut spread = Spread::default();
            let settings = Settings { teleport, steps, walk };
            // Run twice, to check that the buffers are reset.
            for _ in 0..2 {
                spread.run(csr.view(), |p| weights[p], &entries, &settings, &Progress::none()).unwrap();
            }
            for (i, want) in (0u32..).zip(want) {
                prop_assert!((spread.score(i) - want).abs() < 1e-14);
            }
            let ranked = spread.ranked();
            prop_assert!(ranked.windows(2).all(|w| rank_order(&w[0], &w[1]).is_lt()));
            prop_assert!(ranked.iter().all(|s| s.score > 0.0));
        }
    }
}
