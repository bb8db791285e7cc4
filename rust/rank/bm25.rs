//! BM25 over the keywords of units (k1 = 1.2, b = .75), with the walk's words.
//!
//! Score of unit u = sum over the question's distinct keywords t of
//! idf(t) tf / (tf + k1 (1 - b + b length / mean length)). The factor k1 + 1 that some write before
//! it changes no order.

use super::links_view::LinksView;
use super::question::Question;
use super::sparse_sum::SparseSum;
use crate::error::Result;
use crate::progress::Progress;
use crate::sparse::{top_k, Scored};

/// Postings between two looks at the clock.
const CHECK: usize = 1 << 16;

/// Adds the score of every unit that has one of the keywords (ids ascending).
pub fn scores(
    links: &LinksView<'_>,
    keywords: &[u32],
    progress: &Progress,
    out: &mut SparseSum,
) -> Result<()> {
    for &x in keywords {
        let idf = links.keyword_idf[x as usize];
        let range = links.keyword_units.range(x as usize);
        let units = links.keyword_units.indices[range.clone()].chunks(CHECK);
        for (units, counts) in units.zip(links.keyword_tf[range].chunks(CHECK)) {
            progress.check()?;
            for (&unit, &tf) in units.iter().zip(counts) {
                let tf = f64::from(tf);
                out.add(unit, idf * (tf / (tf + links.unit_norm[unit as usize])));
            }
        }
    }
    Ok(())
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Scratch {
    question: Question,
    scores: SparseSum,
}

/// The best `top` units: score descending, id ascending. Units without any keyword of the question
/// are never returned: an unknown question gives an empty list (`no_match`).
pub fn rank(
    links: &LinksView<'_>,
    question: &str,
    top: usize,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    scratch.question.read(links, question);
    scratch.scores.fit(links.units());
    scores(links, &scratch.question.keywords, progress, &mut scratch.scores)?;
    let found = &scratch.scores;
    Ok(top_k(found.touched.iter().map(|&id| Scored { id, score: found.get(id) }).collect(), top))
}
