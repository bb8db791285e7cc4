//! Local search over the graph of concepts (G2ConS). The concepts nearest to the query add their units in
//! turns. Then the concepts that the graph reaches from them add their units,
//! all together.

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sparse::{leaves, CsrView, Mask, Scored};
use crate::vector::quantised::QuantisedView;
use crate::vector::simd::Level;
use crate::vector::{self, Filter, Rows, Vectors};

/// The searched parts. Their sizes match.
#[derive(Clone, Copy)]
pub struct ConceptIndex<'a> {
    /// `None` if the index has no concepts.
    pub vectors: Option<Vectors<'a>>,
    pub codes: Option<&'a QuantisedView<'a>>,
    pub edges: CsrView<'a>,
    /// The units of each concept, ascending.
    pub units: CsrView<'a>,
    pub unit_vectors: Rows<'a>,
    /// If set, only these units are returned. Concepts of other units still lead to them.
    pub mask: Option<&'a Mask>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Number of concepts nearest to the query with which the search starts.
    pub seeds: usize,
    /// Number of edges that it follows from them.
    pub depth: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seeds: 60, depth: 2 }
    }
}

/// A unit and the concept that added it; `u32::MAX` if several concepts added it together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    pub unit: u32,
    pub score: f64,
    pub concept: u32,
}

/// The concept of units that several concepts added together.
pub const TOGETHER: u32 = u32::MAX;

#[derive(Debug, Default)]
pub struct Scratch {
    vectors: vector::Scratch,
    /// Bit sets of units already taken, and of concepts already reached.
    units: Vec<u64>,
    concepts: Vec<u64>,
}

fn insert(bits: &mut [u64], id: u32) -> bool {
    let (word, bit) = (&mut bits[id as usize / 64], 1u64 << (id % 64));
    let fresh = *word & bit == 0;
    *word |= bit;
    fresh
}

impl<'a> ConceptIndex<'a> {
    /// Return the first `wanted` units in order. Returns nothing if there are no concepts, or for a zero
    /// vector, which is not similar to anything.
    pub fn search(
        &self,
        query: &[f32],
        options: Options,
        wanted: usize,
        level: Level,
        scratch: &mut Scratch,
        progress: &Progress,
    ) -> Result<Vec<Found>> {
        self.unit_vectors.check_query(query)?;
        let Some(concepts) = self.vectors else { return Ok(Vec::new()) };
        if concepts.dim() != self.unit_vectors.dim()
            || concepts.len() != self.units.rows()
            || concepts.len() != self.edges.rows()
            || self.unit_vectors.len() < self.units.columns
        {
            return Err(Error::input("vectors and units of concepts do not fit together"));
        }
        if query.iter().all(|&x| x == 0.0) {
            return Ok(Vec::new());
        }
        let Scratch { vectors: scoring, units: taken, concepts: reached } = scratch;
        let seeds = vector::top_k(&concepts, self.codes, query, options.seeds, Filter::All, level, scoring)?;
        taken.clear();
        taken.resize(self.unit_vectors.len().div_ceil(64), 0);
        let mut found = self.in_turns(&seeds, query, wanted, level, taken, scoring, progress)?;
        if found.len() < wanted {
            let seeds: Vec<u32> = seeds.iter().map(|seed| seed.id).collect();
            let mut pool = Vec::new();
            for concept in self.expanded(&seeds, options.depth, reached, progress)? {
                let own = self.units.row(concept as usize).iter().copied();
                pool.extend(own.filter(|&unit| leaves(self.mask, unit) && insert(taken, unit)));
            }
            pool.sort_unstable();
            let left = wanted - found.len();
            found.extend(self.best(&pool, query, left, TOGETHER, level, scoring)?);
        }
        Ok(found)
    }

    /// In each round, each concept adds its nearest unit that no other concept has added.
    #[allow(clippy::too_many_arguments)]
    fn in_turns(
        &self,
        seeds: &[Scored],
        query: &[f32],
        wanted: usize,
        level: Level,
        taken: &mut [u64],
        scoring: &mut vector::Scratch,
        progress: &Progress,
    ) -> Result<Vec<Found>> {
        let mut lists = Vec::with_capacity(seeds.len());
        for seed in seeds {
            progress.check()?;
            // Units after the first `wanted` of a list are never needed, because those before them come
            // first.
            let row = self.units.row(seed.id as usize).iter().copied();
            let row: Vec<u32> = row.filter(|&unit| leaves(self.mask, unit)).collect();
            let own = self.best(&row, query, wanted, seed.id, level, scoring)?;
            lists.push(own.into_iter());
        }
        let mut found = Vec::new();
        while !lists.is_empty() && found.len() < wanted {
            lists.retain_mut(|list| {
                let next = list.find(|one| insert(taken, one.unit));
                found.extend(next);
                next.is_some()
            });
        }
        found.truncate(wanted);
        Ok(found)
    }

    fn best(
        &self,
        units: &[u32],
        query: &[f32],
        most: usize,
        concept: u32,
        level: Level,
        scratch: &mut vector::Scratch,
    ) -> Result<Vec<Found>> {
        let (vectors, ids) = (&self.unit_vectors, Filter::Ids(units));
        let best = if units.len() <= most.max(64) {
            ids.check(vectors.len())?;
            crate::sparse::top_k(vectors.ask(query)?.score_many(units), most)
        } else {
            vectors.top_k(query, most, ids, level, scratch)?
        };
        Ok(best.into_iter().map(|s| Found { unit: s.id, score: s.score, concept }).collect())
    }

    /// Return the concepts that the graph reaches from the seeds, without the seeds themselves.
    fn expanded(
        &self,
        seeds: &[u32],
        depth: usize,
        reached: &mut Vec<u64>,
        progress: &Progress,
    ) -> Result<Vec<u32>> {
        reached.clear();
        reached.resize(self.edges.rows().div_ceil(64), 0);
        for &id in seeds {
            insert(reached, id);
        }
        let mut all = Vec::new();
        let mut level = seeds.to_vec();
        for _ in 0..depth {
            progress.check()?;
            let mut next = Vec::new();
            for &from in &level {
                let to = self.edges.row(from as usize).iter().copied();
                next.extend(to.filter(|&id| insert(reached, id)));
            }
            if next.is_empty() {
                break;
            }
            next.sort_unstable();
            all.extend(&next);
            level = next;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;

    /// Concepts 0 and 1 are near the query; 2 and 3 follow 1 on a path.
    fn search(depth: usize, wanted: usize, query: f32) -> Vec<(u32, u32)> {
        let edges = Csr::from_rows(&[vec![], vec![2u32], vec![1, 3], vec![2]], 4).unwrap();
        let units = Csr::from_rows(&[vec![0u32, 1, 2], vec![1, 3], vec![3, 4, 5], vec![6]], 7).unwrap();
        let index = ConceptIndex {
            vectors: Some(Vectors::new(&[0.9, 0.8, 0.2, 0.1], 1).unwrap()),
            codes: None,
            edges: edges.view(),
            units: units.view(),
            unit_vectors: Vectors::new(&[0.5, 0.9, 0.7, 0.1, 0.3, 0.6, 0.8], 1).unwrap().into(),
            mask: None,
        };
        let options = Options { seeds: 2, depth };
        let (level, scratch) = (Level::best(), &mut Scratch::default());
        let found = index.search(&[query], options, wanted, level, scratch, &Progress::none()).unwrap();
        found.iter().map(|one| (one.unit, one.concept)).collect()
    }

    #[test]
    fn concepts_bring_their_units_in_turns() {
        assert_eq!(search(0, 9, 1.0), [(1, 0), (3, 1), (2, 0), (0, 0)]);
        assert_eq!(search(0, 2, 1.0), search(0, 9, 1.0)[..2]);
        assert_eq!(search(2, 9, 0.0), []);
    }

    #[test]
    fn concepts_that_the_graph_reaches_bring_theirs_together() {
        let reached = |depth| search(depth, 9, 1.0)[4..].to_vec();
        assert_eq!(reached(1), [(5, TOGETHER), (4, TOGETHER)]);
        assert_eq!(reached(2), [(6, TOGETHER), (5, TOGETHER), (4, TOGETHER)]);
        assert_eq!(reached(3), reached(2));
    }
}
