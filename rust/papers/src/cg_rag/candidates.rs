//! The part of a citation graph that is relevant to a query (CG-RAG): the best texts by similarity, the best
//! texts by similarity times keyword match, and all texts that send messages to them within a number of
//! steps.

use crate::cpu::wide;
use crate::error::{Error, Result};
use crate::memory::filled;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::{CsrView, Leaders, Scored};
use crate::vector::Rows;

/// Number of rows of vectors in a thread's unit of work.
const GRAIN: usize = 2048;
const WHAT: &str = "places of texts";
/// Marks a text that is not a candidate.
const NOWHERE: u32 = u32::MAX;

/// Selected texts, ascending, and the edges among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    pub texts: Vec<u32>,
    /// The similarity of each.
    pub near: Vec<f64>,
    /// Indices of the texts that are ranked. The other texts only send messages.
    pub ranked: Vec<u32>,
    pub indptr: Vec<u64>,
    /// The in-neighbours that send messages, as indices.
    pub indices: Vec<u32>,
    /// Index of each edge among all edges of the graph.
    pub edges: Vec<u64>,
}

/// Selection settings: the number of candidates by each measure, the number of steps, and the kinds of edges.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub best: usize,
    pub steps: usize,
    pub kinds: u8,
}

/// Select the candidates for a query's vector. `weights` multiply each text's messages by its keyword match.
pub fn candidates(
    vectors: &Rows<'_>,
    vector: &[f32],
    weights: &[f64],
    (edges, kinds): (CsrView<'_>, &[u8]),
    wanted: Wanted,
    (threads, progress): (usize, &Progress),
) -> Result<Candidates> {
    let n = vectors.len();
    if weights.len() != n || edges.rows() != n || edges.columns != n || kinds.len() != edges.indices.len() {
        return Err(Error::input(format!(
            "{n} vectors, {} weights and a graph of {} texts do not fit together",
            weights.len(),
            edges.rows()
        )));
    }
    let asked = vectors.ask(vector)?;
    let parts = map_ranges(n, GRAIN, threads, progress, |range| {
        let mut out = filled(0.0, range.len(), WHAT)?;
        match vectors {
            Rows::Floats(vectors, _) => similarities(vectors.rows(range), vector, &mut out),
            Rows::Coded(_) => asked.scores(range, &mut out),
        }
        Ok(out)
    })?;
    let near: Vec<f64> = parts.concat();
    let (mut by_near, mut by_both) = (Leaders::new(wanted.best), Leaders::new(wanted.best));
    for ((id, &score), weight) in (0u32..).zip(&near).zip(weights) {
        by_near.push(Scored { id, score });
        by_both.push(Scored { id, score: weight * score });
    }
    let mut best: Vec<u32> = by_near.finish().iter().chain(&by_both.finish()).map(|one| one.id).collect();
    best.sort_unstable();
    best.dedup();
    let carries = |edge: usize| kinds[edge] & wanted.kinds != 0;
    let mut places = filled(NOWHERE, n, WHAT)?;
    best.iter().for_each(|&text| places[text as usize] = 0);
    let (mut texts, mut outermost) = (best.clone(), best.clone());
    for _ in 0..wanted.steps {
        progress.check()?;
        let mut reached = Vec::new();
        for &text in &outermost {
            for edge in edges.range(text as usize) {
                let sender = edges.indices[edge];
                if carries(edge) && places[sender as usize] == NOWHERE {
                    places[sender as usize] = 0;
                    reached.push(sender);
                }
            }
        }
        texts.extend_from_slice(&reached);
        outermost = reached;
    }
    texts.sort_unstable();
    (0u32..).zip(&texts).for_each(|(place, &text)| places[text as usize] = place);
    let mut found = Candidates {
        near: texts.iter().map(|&text| near[text as usize]).collect(),
        ranked: best.iter().map(|&text| places[text as usize]).collect(),
        indptr: vec![0],
        ..Candidates::default()
    };
    for &text in &texts {
        for edge in edges.range(text as usize) {
            let place = places[edges.indices[edge] as usize];
            if carries(edge) && place != NOWHERE {
                found.indices.push(place);
                found.edges.push(edge as u64);
            }
        }
        found.indptr.push(found.indices.len() as u64);
    }
    found.texts = texts;
    Ok(found)
}

/// Number of parallel partial sums.
const LANES: usize = 8;

/// Return the product of each row with the vector: eight parallel f64 sums, then the remaining values. The
/// result is the same on every machine.
#[inline(always)]
fn similarities_body(rows: &[f32], vector: &[f32], out: &mut [f64]) {
    let (whole, rest) = vector.split_at(vector.len() / LANES * LANES);
    for (row, out) in rows.chunks_exact(vector.len()).zip(out) {
        let mut sums = [0f64; LANES];
        let (row, tail) = row.split_at(whole.len());
        for (x, y) in row.chunks_exact(LANES).zip(whole.chunks_exact(LANES)) {
            for lane in 0..LANES {
                sums[lane] += f64::from(x[lane]) * f64::from(y[lane]);
            }
        }
        let last: f64 = tail.iter().zip(rest).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
        *out = sums.iter().sum::<f64>() + last;
    }
}
wide!(similarities, similarities_body, (rows: &[f32], vector: &[f32], out: &mut [f64]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;
    use crate::vector::Vectors;

    #[test]
    fn the_best_by_either_measure_and_what_sends_to_them() {
        let values = [1.0f32, 0.9, 0.5, 0.2, 0.1, 0.05];
        let vectors = Rows::from(Vectors::new(&values, 1).unwrap());
        let weights = [0.1, 0.1, 1.0, 0.1, 0.1, 0.1];
        let edges = Csr::from_rows(&[vec![3u32, 5], vec![], vec![4], vec![4], vec![5], vec![0]], 6).unwrap();
        let kinds = [1u8, 4, 1, 1, 1, 1];
        let find = |best, steps, mask| {
            let wanted = Wanted { best, steps, kinds: mask };
            let progress = Progress::none();
            candidates(&vectors, &[1.0], &weights, (edges.view(), &kinds), wanted, (2, &progress))
        };
        let none = find(1, 0, 1).unwrap();
        assert_eq!((none.texts, none.ranked, none.indices), (vec![0, 2], vec![0, 1], vec![]));
        let one = find(1, 1, 1).unwrap();
        assert_eq!(one.texts, [0, 2, 3, 4]);
        assert_eq!(one.near, [1.0, 0.5, f64::from(0.2f32), f64::from(0.1f32)]);
        assert_eq!((one.indptr, one.indices), (vec![0, 1, 2, 3, 3], vec![2, 3, 3]));
        assert_eq!(one.edges, [0, 2, 3]);
        assert_eq!(find(1, 2, 1).unwrap().texts, [0, 2, 3, 4, 5]);
        assert_eq!(find(1, 1, 4).unwrap().texts, [0, 2, 5]);
        assert_eq!(find(1, 3, 4).unwrap().indices, [2]);
        assert_eq!(find(9, 0, 0).unwrap().ranked, [0, 1, 2, 3, 4, 5]);
        assert!(find(0, 2, 5).unwrap().texts.is_empty());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let vectors = Rows::from(Vectors::new(&[1.0, 0.0], 1).unwrap());
        let edges = Csr::from_rows(&[vec![1u32], vec![]], 2).unwrap();
        let wanted = Wanted { best: 1, steps: 1, kinds: 1 };
        let run = |vector: &[f32], weights: &[f64], kinds: &[u8]| {
            let progress = Progress::none();
            candidates(&vectors, vector, weights, (edges.view(), kinds), wanted, (1, &progress)).is_ok()
        };
        assert!(run(&[1.0], &[1.0; 2], &[1]));
        assert!(!run(&[1.0, 2.0], &[1.0; 2], &[1]));
        assert!(!run(&[f32::NAN], &[1.0; 2], &[1]));
        assert!(!run(&[1.0], &[1.0; 3], &[1]));
        assert!(!run(&[1.0], &[1.0; 2], &[]));
    }
}
