//! G2ConS: the concepts of a corpus, the graph of concepts, and the selection of chunks by concepts.

use crate::error::Error;
use crate::error::Result;
use crate::graph::transpose::document_frequency;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::rank::select::select_ranked;
use crate::sparse::top_k;
use crate::sparse::Csr;
use crate::sparse::CsrView;
use crate::sparse::Scored;
use crate::text::strings::Strings;

pub mod pairs;

/// Minimum length of a concept, in scripts with spaces between words.
const LEAST_CHARS: usize = 2;

/// The concepts, as ascending word ids, and the concepts of each chunk (as positions in that list,
/// ascending).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concepts {
    pub words: Vec<u32>,
    pub named: Csr,
}

/// Extract at most `most` concepts of each chunk. `chunk_words` holds the distinct words of each chunk,
/// ascending. `counts` is parallel to its ids. Word ids follow the byte order of `vocabulary`. Ties within a
/// chunk are decided by the smaller id.
pub fn concepts(
    chunk_words: CsrView<'_>,
    counts: &[u32],
    vocabulary: Strings<'_>,
    most: usize,
    threads: usize,
    progress: &Progress,
) -> Result<Concepts> {
    if counts.len() != chunk_words.nnz() {
        let (counts, words) = (counts.len(), chunk_words.nnz());
        return Err(Error::input(format!("there are {counts} counts for {words} words of chunks")));
    }
    if vocabulary.len() != chunk_words.columns {
        let (texts, words) = (vocabulary.len(), chunk_words.columns);
        return Err(Error::input(format!("the vocabulary has {texts} words, and chunks name {words}")));
    }
    let n = chunk_words.rows();
    let df = document_frequency(chunk_words, progress)?;
    let weights = weights(&df, n, vocabulary);
    let lists = map_ranges(n, 256, threads, progress, |chunks| {
        let mut lists = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let at = chunk_words.range(chunk);
            let words = chunk_words.indices[at.clone()].iter().zip(&counts[at]);
            let scored = words.map(|(&id, &f)| Scored { id, score: f64::from(f) * weights[id as usize] });
            let best = top_k(scored.filter(|word| word.score > 0.0).collect(), most);
            let mut best: Vec<u32> = best.into_iter().map(|word| word.id).collect();
            best.sort_unstable();
            lists.push(best);
        }
        Ok(lists)
    })?
    .concat();
    let mut place = vec![u32::MAX; chunk_words.columns];
    lists.iter().flatten().for_each(|&word| place[word as usize] = 0);
    let words: Vec<u32> = (0u32..).zip(&place).filter(|(_, &kept)| kept == 0).map(|(word, _)| word).collect();
    (0u32..).zip(&words).for_each(|(concept, &word)| place[word as usize] = concept);
    let rows: Vec<Vec<u32>> =
        lists.into_iter().map(|list| list.into_iter().map(|word| place[word as usize]).collect()).collect();
    let named = Csr::from_rows(&rows, words.len())?;
    Ok(Concepts { words, named })
}

/// Return the inverse document frequency of each word. It is positive even for a word that all chunks
/// contain, and 0 for words that cannot be concepts.
fn weights(df: &[u64], n: usize, vocabulary: Strings<'_>) -> Vec<f64> {
    let weigh = |(word, &df): (usize, &u64)| {
        if df == 0 || short(vocabulary.get(word)) {
            return 0.0;
        }
        ((n as f64 + 1.0) / (df as f64 + 1.0)).ln() + 1.0
    };
    df.iter().enumerate().map(weigh).collect()
}

/// Return whether a word is too short to be a concept. Scripts without spaces are split into pairs of
/// characters, because a single character carries much meaning. These are the caseless letters from Thai on,
/// except Hangul.
fn short(word: &str) -> bool {
    let unspaced = |c: char| {
        c >= '\u{E00}'
            && c.is_alphabetic()
            && !c.is_lowercase()
            && !c.is_uppercase()
            && !matches!(u32::from(c), 0x1100..=0x11FF | 0xAC00..=0xD7FF)
    };
    word.chars().count() < LEAST_CHARS && !word.chars().any(unspaced)
}

/// Return the best `count` chunks by the sum of the ranks of their concepts, best first. Ties are decided by
/// the smaller id, and chunks without concepts come last. `chunk_concepts` holds the distinct concepts of
/// each chunk, ascending; `ranks` holds one rank per concept.
pub fn choose_chunks(
    chunk_concepts: CsrView<'_>,
    ranks: &[f64],
    count: usize,
    progress: &Progress,
) -> Result<Vec<u32>> {
    if ranks.len() != chunk_concepts.columns {
        let (ranks, concepts) = (ranks.len(), chunk_concepts.columns);
        return Err(Error::input(format!("there are {ranks} ranks for {concepts} concepts")));
    }
    if let Some(i) = ranks.iter().position(|rank| !(rank.is_finite() && *rank >= 0.0)) {
        return Err(Error::input(format!("rank {i} is {}, not a finite number from 0 up", ranks[i])));
    }
    let mut scores = Vec::with_capacity(chunk_concepts.rows());
    for chunk in 0..chunk_concepts.rows() {
        progress.check()?;
        let row = chunk_concepts.row(chunk);
        scores.push(row.iter().map(|&concept| ranks[concept as usize]).sum::<f64>());
    }
    select_ranked(&scores, count)
}
