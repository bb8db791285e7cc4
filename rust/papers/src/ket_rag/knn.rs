//! The nearest chunks, each followed by its neighbours in the KNN graph (KNNG-RAG in the KET-RAG paper).

use crate::error::{Error, Result};
use crate::sparse::{leaves, rank_order, CsrView, Mask, Scored};
use crate::vector::simd::Level;
use crate::vector::{Filter, Rows, Scratch};

/// Number of seeds in the first batch. Each next batch is four times as large.
const FIRST_BATCH: usize = 64;
/// With a filter, the first batch is enlarged by at most this factor.
const SPREAD: usize = 3;

/// A unit, in the order of emission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visited {
    pub unit: u32,
    pub score: f64,
    /// The unit of which it is a neighbour, or the unit itself if it was emitted as a seed.
    pub seed: u32,
}

/// Emit units by (similarity descending, id ascending), each followed by its neighbours that are not emitted
/// yet in the same order, until the sum of `unit_tokens` exceeds `limit`. The unit that exceeds it is the
/// last of the list, so that filling a budget sees it. `neighbours` is the graph over the units; its rows are
/// used in order. A zero vector emits nothing.
#[allow(clippy::too_many_arguments)] // the vectors, the query, the limits and the buffers
pub fn knn_order(
    units: &Rows,
    neighbours: CsrView,
    unit_tokens: &[u32],
    query: &[f32],
    limit: u64,
    mask: Option<&Mask>,
    (level, scratch): (Level, &mut Scratch),
) -> Result<Vec<Visited>> {
    let n = units.len();
    if neighbours.rows() != n || neighbours.columns != n || unit_tokens.len() != n {
        return Err(Error::input(format!(
            "{n} units, but a graph of {} rows and {} columns and {} costs",
            neighbours.rows(),
            neighbours.columns,
            unit_tokens.len()
        )));
    }
    let mut order = Vec::new();
    if units.check_query(query)? == 0.0 {
        return Ok(order);
    }
    let search = units.search(query, Filter::All, level, scratch)?;
    let asked = units.ask(query)?;
    let mut emitted = vec![false; n];
    let mut spent = 0u64;
    let mut emit = |unit: u32, score: f64, seed: u32, order: &mut Vec<Visited>| {
        if !leaves(mask, unit) {
            return true; // it leads only to its neighbours
        }
        order.push(Visited { unit, score, seed });
        spent += u64::from(unit_tokens[unit as usize]);
        spent <= limit
    };
    // If the filter passes few units, visit more at once, which is cheaper than a second batch.
    let (mut batch, mut visited) = (FIRST_BATCH * mask.map_or(1, |mask| mask.spread(SPREAD)), 0);
    let there = mask.map_or(n, Mask::count);
    while visited < n && order.len() < there {
        let seeds = search.best(batch.min(n), scratch);
        for seed in &seeds[visited..] {
            if std::mem::replace(&mut emitted[seed.id as usize], true) {
                continue;
            }
            if !emit(seed.id, seed.score, seed.id, &mut order) {
                return Ok(order);
            }
            let mut near = Vec::new();
            for &id in neighbours.row(seed.id as usize) {
                if !std::mem::replace(&mut emitted[id as usize], true) && leaves(mask, id) {
                    near.push(Scored { id, score: asked.score(id) });
                }
            }
            near.sort_unstable_by(rank_order);
            for unit in near {
                if !emit(unit.id, unit.score, seed.id, &mut order) {
                    return Ok(order);
                }
            }
        }
        visited = seeds.len();
        batch = batch.saturating_mul(4);
    }
    Ok(order)
}

/// The same for a filter that passes few units: scores only these units and the seeds that may precede them.
/// `into` is the transposed graph. Returns `None` if there are too many for this to be faster.
pub fn few(
    units: &Rows,
    (neighbours, into): (CsrView, CsrView),
    unit_tokens: &[u32],
    query: &[f32],
    limit: u64,
    mask: &Mask,
) -> Result<Option<Vec<Visited>>> {
    let n = units.len();
    if [neighbours.rows(), neighbours.columns, into.rows(), into.columns, unit_tokens.len()] != [n; 5] {
        return Err(Error::input(format!("graphs and costs must have {n} rows")));
    }
    mask.check(n)?;
    let mut order = Vec::new();
    if units.check_query(query)? == 0.0 {
        return Ok(Some(order));
    }
    let asked = units.ask(query)?;
    // Whether a unit is a seed depends on earlier units that have it as a neighbour, recursively.
    let mut known: Vec<Scored> = mask.ids().map(|id| Scored { id, score: asked.score(id) }).collect();
    let mut place = vec![u32::MAX; n];
    known.iter().zip(0..).for_each(|(one, at)| place[one.id as usize] = at);
    let mut at = 0;
    while at < known.len() {
        let own = known[at];
        at += 1;
        for &id in into.row(own.id as usize) {
            if place[id as usize] != u32::MAX {
                continue;
            }
            let other = Scored { id, score: asked.score(id) };
            if rank_order(&other, &own).is_lt() {
                place[id as usize] = known.len() as u32;
                known.push(other);
            }
        }
        if known.len() > n / 4 + FIRST_BATCH {
            return Ok(None);
        }
    }
    let scores: Vec<f64> = known.iter().map(|one| one.score).collect();
    known.sort_unstable_by(rank_order);
    let mut emitted = vec![false; scores.len()];
    let mut spent = 0u64;
    for seed in known {
        if std::mem::replace(&mut emitted[place[seed.id as usize] as usize], true) {
            continue;
        }
        let mut brought = Vec::new();
        for &id in neighbours.row(seed.id as usize) {
            let at = place[id as usize] as usize;
            if at < scores.len() && !std::mem::replace(&mut emitted[at], true) {
                brought.push(Scored { id, score: scores[at] });
            }
        }
        brought.sort_unstable_by(rank_order);
        for unit in std::iter::once(seed).chain(brought).filter(|one| mask.has(one.id)) {
            order.push(Visited { unit: unit.id, score: unit.score, seed: seed.id });
            spent += u64::from(unit_tokens[unit.id as usize]);
            if spent > limit {
                return Ok(Some(order));
            }
        }
    }
    Ok(Some(order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::{top_k, Csr};
    use crate::testing::awkward;
    use crate::vector::Vectors;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_unit_once_and_neighbours_after_their_seed(
            seed in prop::collection::vec(-1f32..1.0, 97), n in 0usize..150, limit in 0u64..3000,
            rows in prop::collection::vec(prop::collection::btree_set(0u32..150, 0..5), 150),
        ) {
            let d = 4;
            let values = awkward(&seed, n, d);
            let units = Rows::from(Vectors::new(&values, d).unwrap());
            let asked = units.ask(&seed[..d]).unwrap();
            let rows: Vec<Vec<u32>> =
                rows[..n].iter().map(|r| r.iter().copied().filter(|&j| (j as usize) < n).collect()).collect();
            let graph = Csr::from_rows(&rows, n).unwrap();
            let tokens: Vec<u32> = (0..n as u32).map(|i| 10 + i % 9).collect();
            let query = &seed[..d];
            let ask = |limit, mask: Option<&Mask>| {
                let fast = (Level::best(), &mut Scratch::default());
                knn_order(&units, graph.view(), &tokens, query, limit, mask, fast).unwrap()
            };
            let score = |id: u32| Scored { id, score: asked.score(id) };
            let mut plain: Vec<u32> = Vec::new();
            for s in top_k((0..n as u32).map(score).collect(), n) {
                if plain.contains(&s.id) {
                    continue;
                }
                plain.push(s.id);
                let near = rows[s.id as usize].iter().filter(|&j| !plain.contains(j)).map(|&j| score(j)).collect();
                plain.extend(top_k(near, n).iter().map(|s| s.id));
            }
            let all = ask(u64::MAX, None);
            prop_assert_eq!(all.iter().map(|v| v.unit).collect::<Vec<_>>(), plain);
            // A limit cuts the list after the unit that exceeds it.
            let some = ask(limit, None);
            prop_assert_eq!(&some[..], &all[..some.len()]);
            let cost = |v: &[Visited]| v.iter().map(|v| u64::from(tokens[v.unit as usize])).sum::<u64>();
            if some.len() < all.len() {
                prop_assert!(cost(&some) > limit);
                prop_assert!(cost(&some[..some.len() - 1]) <= limit);
            }
            // With a filter, the result equals the unfiltered one without the excluded units, which cost
            // nothing.
            let mask = Mask::from_fn(n, |id| id % 3 == 0);
            let left: Vec<Visited> = all.iter().filter(|v| mask.has(v.unit)).copied().collect();
            prop_assert_eq!(&ask(u64::MAX, Some(&mask)), &left);
            let some = ask(limit, Some(&mask));
            prop_assert_eq!(&some[..], &left[..some.len()]);
            prop_assert!(some.len() == left.len() || cost(&some) > limit);
            // If the filter passes few units, the result of `few` is the same.
            let into = graph.view().transpose().unwrap();
            for every in [3, 20, 60] {
                let mask = Mask::from_fn(n, |id| id % every == every / 2);
                let both = (graph.view(), into.view());
                if let Some(found) = few(&units, both, &tokens, query, limit, &mask).unwrap() {
                    prop_assert_eq!(found, ask(limit, Some(&mask)));
                }
            }
        }
    }

    #[test]
    fn bad_shapes_are_refused() {
        let units = Vectors::new(&[1.0, 2.0], 1).unwrap().into();
        let graph = Csr::from_rows(&[vec![1u32]], 2).unwrap();
        let ask = |query: &[f32]| {
            let fast = (Level::best(), &mut Scratch::default());
            knn_order(&units, graph.view(), &[1, 1], query, 9, None, fast)
        };
        assert!(ask(&[1.0]).is_err());
    }
}
