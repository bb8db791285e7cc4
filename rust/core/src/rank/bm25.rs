//! BM25 over the keywords of units (k1 = 1.2, b = .75), with the walk's words.
//!
//! Score of unit u = sum over the query's distinct keywords t of share(t) idf(t) tf / (tf + k1 (1 - b + b length /
//! mean length)). The common factor k1 + 1 is omitted because it does not change the order. The share
//! is 1, but for parts of a name in code that the index has as a whole. An index with learned weights of terms
//! ([`super::terms`]) is ranked by these instead.

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

/// Return the best `top` units, of those that pass the filter if there is one: score descending, id
/// ascending. Units without any keyword of the query are never returned, so an unknown query has an empty
/// result (`no_match`).
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

/// Like [`rank`], by learned weights, in an index of this many units.
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
        // Most groups are far below the best.
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
