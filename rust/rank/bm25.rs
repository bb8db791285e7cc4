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
use crate::sparse::{prefetch, Leaders, Scored};

/// Postings between two looks at the clock.
const CHECK: usize = 1 << 16;
/// Sums and lengths of so many postings on are asked for: a large index has them far away.
pub(crate) const AHEAD: usize = 24;

/// Adds the score of every unit that has one of the keywords (ids ascending); of each keyword's part the
/// share that is given for it, or all.
pub fn scores(
    links: &LinksView<'_>,
    keywords: &[u32],
    shares: Option<&[f64]>,
    progress: &Progress,
    out: &mut SparseSum,
) -> Result<()> {
    for (k, &x) in keywords.iter().enumerate() {
        let idf = links.keyword_idf[x as usize] * shares.map_or(1.0, |shares| shares[k]);
        if idf == 0.0 {
            continue;
        }
        let range = links.keyword_units.range(x as usize);
        let units = links.keyword_units.indices[range.clone()].chunks(CHECK);
        for (units, counts) in units.zip(links.keyword_tf[range].chunks(CHECK)) {
            progress.check()?;
            for (at, (&unit, &tf)) in units.iter().zip(counts).enumerate() {
                if let Some(&far) = units.get(at + AHEAD) {
                    prefetch(links.unit_norm, far as usize);
                    out.ask(far);
                }
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
    scores(links, &scratch.question.keywords, None, progress, &mut scratch.scores)?;
    let found = &scratch.scores;
    let mut best = Leaders::new(top);
    for (at, &id) in found.touched().iter().enumerate() {
        if let Some(&far) = found.touched().get(at + AHEAD) {
            found.ask(far);
        }
        best.push(Scored { id, score: found.get(id) });
    }
    Ok(best.finish())
}
