//! BM25 over the keywords of units (k1 = 1.2, b = 0.75). The keywords are those of the walk.
//!
//! Score of unit u = sum over the query's distinct keywords t of share(t) idf(t) tf / (tf + k1 (1 - b + b
//! length / mean length)). The common factor k1 + 1 is omitted because it does not change the order. The
//! share is 1, except for the parts of a code identifier that the index contains as a whole. If an index has
//! learned term weights ([`super::terms`]), they replace BM25.

use super::links_view::LinksView;
use super::matches::{bits, each_group, greatest, Sought, FEW, GROUP};
use super::question::Question;
use super::terms::Weighed;
use crate::error::Result;
use crate::progress::Progress;
use crate::sparse::{leaves, Leaders, Mask, Scored};

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Scratch {
    question: Question,
}

/// Return the `top` best units that pass the optional filter: score descending, id ascending. Units without a
/// keyword of the query are never returned, so a query without known keywords has an empty result
/// (`no_match`).
pub fn rank(
    links: &LinksView<'_>,
    question: &str,
    top: usize,
    mask: Option<&Mask>,
    scratch: &mut Scratch,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let known = &mut scratch.question;
    known.read(links, question);
    let sought = Sought::Keywords { links, keywords: &known.keywords, shares: known.shares() };
    best_of(sought, top, mask, progress)
}

/// Like [`rank`], with learned term weights. `units` is the number of units in the index.
pub fn rank_by_terms(
    weighed: Weighed<'_>,
    units: usize,
    top: usize,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    best_of(Sought::Terms { weighed: &weighed, units }, top, mask, progress)
}

fn best_of(sought: Sought<'_>, top: usize, mask: Option<&Mask>, progress: &Progress) -> Result<Vec<Scored>> {
    let mut best = Leaders::new(top);
    each_group(sought, progress, |group, set, scores| {
        // Most groups score far below the best units and are skipped.
        if set.count_ones() >= FEW && greatest(scores) < best.floor() {
            return;
        }
        for at in bits(set) {
            let (id, score) = ((GROUP * group) as u32 + at, scores[at as usize % GROUP]);
            if score >= best.floor() && leaves(mask, id) {
                best.push(Scored { id, score });
            }
        }
    })?;
    Ok(best.finish())
}
