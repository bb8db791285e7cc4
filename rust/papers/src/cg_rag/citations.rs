//! Edges between the texts of documents that cite each other (CG-RAG): each text of one document is linked to
//! the texts of the other that are most relevant to it, by words and by vectors.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::{top_k, Csr, CsrView, Scored};
use crate::vector::Vectors;
use std::ops::Range;

/// Number of documents in a thread's unit of work.
const GRAIN: usize = 16;
/// Number of texts of the other document that are scored together.
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

/// For each text: the texts that send to it (ids ascending), the relevance of each edge, and the share of the
/// relevance that comes from vectors.
#[derive(Debug, Default, PartialEq)]
pub struct Links {
    pub edges: Csr,
    pub relevance: Vec<f64>,
    pub near: Vec<f64>,
}

/// Link each text of document `d` to the `most` texts of each document in `senders.row(d)` that are most
/// relevant to it, ordered by relevance descending, then id ascending. There are fewer links if the sender
/// has fewer texts.
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

/// Return the similarity of the two ends of each edge: their cosine if the vectors have length 1, but at
/// least 0.
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
