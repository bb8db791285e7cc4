//! Edges between the texts of documents that cite each other (CG-RAG): each text of one document is linked to
//! the texts of the other that are most relevant to it, by words and by vectors.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::{top_k, Csr, CsrView, Scored};
use crate::vector::Vectors;
use std::ops::Range;

/// Documents that a thread takes at a time.
const GRAIN: usize = 16;
/// Texts of the other document that are scored together.
const BLOCK: usize = 256;
const EDGES: &str = "edges between documents";

/// The texts of a set of documents: those of document `d` are `first[d]..first[d + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    first: &'a [u64],
    vectors: Vectors<'a>,
    words: CsrView<'a>,
    weights: &'a [f64],
}

impl<'a> Texts<'a> {
    /// `words` are ascending ids with parallel weights.
    pub fn new(
        first: &'a [u64],
        vectors: Vectors<'a>,
        words: CsrView<'a>,
        weights: &'a [f64],
    ) -> Result<Self> {
        let n = vectors.len();
        if first.first() != Some(&0)
            || first.last() != Some(&(n as u64))
            || first.windows(2).any(|w| w[1] < w[0])
        {
            return Err(Error::input(format!("first_text must rise from 0 to the number of texts, {n}")));
        }
        if words.rows() != n || weights.len() != words.indices.len() {
            return Err(Error::input(format!(
                "{n} texts have {} rows of words, and {} words have {} weights",
                words.rows(),
                words.indices.len(),
                weights.len()
            )));
        }
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            return Err(Error::input(format!("word_weights[{at}] is not a finite number")));
        }
        words.require_sorted()?;
        Ok(Self { first, vectors, words, weights })
    }

    fn documents(&self) -> usize {
        self.first.len() - 1
    }

    fn of(&self, document: usize) -> Range<u32> {
        self.first[document] as u32..self.first[document + 1] as u32
    }

    /// Return the word similarity of two texts: the product of their word weights.
    fn common(&self, a: usize, b: usize) -> f64 {
        let (mut left, mut right) = (self.words.range(a), self.words.range(b));
        let ids = self.words.indices.all();
        let mut sum = 0.0;
        while !left.is_empty() && !right.is_empty() {
            let (x, y) = (ids[left.start], ids[right.start]);
            if x == y {
                sum += self.weights[left.start] * self.weights[right.start];
            }
            left.start += usize::from(x <= y);
            right.start += usize::from(y <= x);
        }
        sum
    }
}

/// For each text the texts that send to it, ids ascending, with the relevance of each edge and the share of
/// it that comes from vectors.
#[derive(Debug, Default, PartialEq)]
pub struct Links {
    pub edges: Csr,
    pub relevance: Vec<f64>,
    pub near: Vec<f64>,
}

/// Link each text of document `d` to the `most` texts of each document in `senders.row(d)` that are most
/// relevant to it: relevance descending, then id ascending; fewer if the sender has fewer.
pub fn link(
    texts: Texts<'_>,
    senders: CsrView<'_>,
    most: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Links> {
    let documents = texts.documents();
    if senders.rows() != documents || senders.columns != documents {
        return Err(Error::input(format!(
            "{documents} documents have citations of {} x {}",
            senders.rows(),
            senders.columns
        )));
    }
    progress.expect(documents as u64);
    let parts = map_ranges(documents, GRAIN, threads, progress, |range| {
        let mut part = Part::default();
        for document in range {
            part.add(&texts, document, senders.row(document), most, progress)?;
        }
        Ok(part)
    })?;
    let edges = parts.iter().map(|part| part.ids.len()).sum();
    let mut links = Links {
        edges: Csr {
            indptr: room(texts.vectors.len() + 1, EDGES)?,
            indices: room(edges, EDGES)?,
            columns: texts.vectors.len(),
        },
        relevance: room(edges, EDGES)?,
        near: room(edges, EDGES)?,
    };
    links.edges.indptr.push(0);
    for part in parts {
        let base = links.edges.indices.len() as u64;
        links.edges.indptr.extend(part.ends.iter().map(|end| base + end));
        links.edges.indices.extend(part.ids);
        links.relevance.extend(part.relevance);
        links.near.extend(part.near);
    }
    Ok(links)
}

#[derive(Debug, Default)]
struct Part {
    ends: Vec<u64>,
    ids: Vec<u32>,
    relevance: Vec<f64>,
    near: Vec<f64>,
}

impl Part {
    fn add(
        &mut self,
        texts: &Texts<'_>,
        document: usize,
        senders: &[u32],
        most: usize,
        progress: &Progress,
    ) -> Result<()> {
        let mut row: Vec<(Scored, f64)> = Vec::new();
        for text in texts.of(document) {
            row.clear();
            let own = texts.vectors.row(text as usize);
            for &sender in senders.iter().filter(|&&s| s as usize != document) {
                progress.check()?;
                let ids: Vec<u32> = texts.of(sender as usize).collect();
                let mut scored = Vec::with_capacity(ids.len());
                for block in ids.chunks(BLOCK) {
                    scored.extend(texts.vectors.score_many(block, own));
                }
                let near: Vec<f64> = scored.iter().map(|s| s.score).collect();
                for s in &mut scored {
                    s.score += texts.common(text as usize, s.id as usize);
                }
                let first = texts.of(sender as usize).start;
                row.extend(top_k(scored, most).into_iter().map(|s| (s, near[(s.id - first) as usize])));
            }
            row.sort_unstable_by_key(|(s, _)| s.id);
            self.ids.extend(row.iter().map(|(s, _)| s.id));
            self.relevance.extend(row.iter().map(|(s, _)| s.score));
            self.near.extend(row.iter().map(|(_, near)| near));
            self.ends.push(self.ids.len() as u64);
        }
        Ok(())
    }
}

/// Return the similarity of the ends of each edge: for unit vectors their cosine, but at least 0.
pub fn alphas(
    edges: CsrView<'_>,
    vectors: &Vectors<'_>,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    if edges.rows() != vectors.len() || edges.columns != vectors.len() {
        return Err(Error::input(format!(
            "{} vectors have edges of {} x {}",
            vectors.len(),
            edges.rows(),
            edges.columns
        )));
    }
    progress.expect(edges.rows() as u64);
    let parts = map_ranges(edges.rows(), BLOCK, threads, progress, |range| {
        let mut own = Vec::new();
        for row in range {
            let scored = vectors.score_many(edges.row(row), vectors.row(row));
            own.extend(scored.iter().map(|s| s.score.clamp(0.0, 1.0) as f32));
        }
        Ok(own)
    })?;
    Ok(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: [f32; 10] = [1.0, 0.0, 0.0, 1.0, 0.6, 0.8, 1.0, 0.0, -1.0, 0.0];

    fn words() -> Csr {
        Csr::from_rows(&[vec![0u32, 2], vec![1], vec![0, 1], vec![2], vec![]], 3).unwrap()
    }

    fn linked(most: usize, threads: usize) -> Links {
        let (first, words) = ([0u64, 2, 5], words());
        let vectors = Vectors::new(&VECTORS, 2).unwrap();
        let weights = [0.5, 0.5, 1.0, 0.5, 0.25, 1.0];
        let texts = Texts::new(&first, vectors, words.view(), &weights).unwrap();
        // Document 0 has the senders 1 and itself, which is ignored.
        let senders = Csr::from_rows(&[vec![0u32, 1], vec![]], 2).unwrap();
        link(texts, senders.view(), most, threads, &Progress::none()).unwrap()
    }

    #[test]
    fn the_most_relevant_texts_of_the_other_document() {
        let all = linked(9, 1);
        assert_eq!(all.edges.indptr, [0, 3, 6, 6, 6, 6]);
        assert_eq!(all.edges.indices, [2, 3, 4, 2, 3, 4]);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let want = [0.6 + 0.25, 1.0 + 0.5, -1.0, 0.8 + 0.25, 0.0, 0.0];
        assert!(all.relevance.iter().zip(want).all(|(&a, b)| near(a, b)), "{:?}", all.relevance);
        let want = [0.6, 1.0, -1.0, 0.8, 0.0, 0.0];
        assert!(all.near.iter().zip(want).all(|(&a, b)| near(a, b)), "{:?}", all.near);
        for threads in [1, 3] {
            let best = linked(1, threads);
            assert_eq!((best.edges.indptr, best.edges.indices), (vec![0, 1, 2, 2, 2, 2], vec![3, 2]));
        }
        // Equal relevance: the smaller id.
        assert_eq!(linked(2, 1).edges.indices, [2, 3, 2, 3]);
        assert_eq!(linked(0, 1).edges.indices, [] as [u32; 0]);
    }

    #[test]
    fn alphas_are_cosines_from_0_up() {
        let vectors = Vectors::new(&VECTORS, 2).unwrap();
        let rows: [&[u32]; 5] = [&[1, 2, 4], &[], &[3], &[], &[4]];
        let edges = Csr::from_rows(&rows, 5).unwrap();
        let got = alphas(edges.view(), &vectors, 2, &Progress::none()).unwrap();
        assert_eq!(got, [0.0, 0.6, 0.0, 0.6, 1.0]);
        let wide = Csr::from_rows(&rows[..2], 5).unwrap();
        assert!(alphas(wide.view(), &vectors, 1, &Progress::none()).is_err());
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let (words, vectors) = (words(), Vectors::new(&VECTORS, 2).unwrap());
        let said = |first: &[u64], weights: &[f64]| {
            Texts::new(first, vectors, words.view(), weights).unwrap_err().to_string()
        };
        assert!(said(&[0, 4], &[1.0; 6]).contains("first_text"));
        assert!(said(&[0, 3, 2, 5], &[1.0; 6]).contains("first_text"));
        assert!(said(&[], &[1.0; 6]).contains("first_text"));
        assert!(said(&[0, 5], &[1.0; 5]).contains("weights"));
        assert!(said(&[0, 5], &[1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0]).contains("word_weights[1]"));
        let texts = Texts::new(&[0, 5], vectors, words.view(), &[1.0; 6]).unwrap();
        let senders = Csr::from_rows(&[vec![0u32], vec![]], 2).unwrap();
        assert!(link(texts, senders.view(), 1, 1, &Progress::none()).is_err());
        let progress = Progress::none();
        progress.stop();
        let own = Csr::from_rows(&[vec![0u32]], 1).unwrap();
        assert_eq!(link(texts, own.view(), 1, 1, &progress), Err(Error::Cancelled));
    }
}
