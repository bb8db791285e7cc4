//! Queries of one or two words: every passage with all of the words is ranked before those that lack some, because a user who
//! types "otter" means passages about otters. The walk alone also ranks passages that only resemble them.

use crate::error::Result;
use crate::progress::Progress;
use crate::rank::bm25;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use crate::sparse::{Mask, Scored};
use std::collections::HashSet;

/// Maximum number of words of such a query.
const WORDS: usize = 2;

/// Return the ranking with the passages that have all words of the query first: those that the walk ranked in its order,
/// then the others by BM25.
pub fn arrange(
    links: &LinksView<'_>,
    (question, top): (&str, usize),
    mask: Option<&Mask>,
    found: Vec<Scored>,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let mut known = Question::default();
    known.read(links, question);
    let Some(all) = units_with_all(links, &known) else { return Ok(found) };
    let is_ordered = found.iter().is_sorted_by_key(|one| !all.contains(&one.id));
    let ranked: HashSet<u32> = found.iter().map(|one| one.id).collect();
    if is_ordered && all.is_subset(&ranked) {
        return Ok(found);
    }
    let direct = bm25::rank(links, question, links.units(), mask, &mut bm25::Scratch::default(), progress)?;
    let more = direct.iter().filter(|one| all.contains(&one.id) && !ranked.contains(&one.id));
    let (first, others): (Vec<&Scored>, Vec<&Scored>) = found.iter().partition(|one| all.contains(&one.id));
    let mut arranged: Vec<Scored> = Vec::with_capacity(top);
    for one in first.into_iter().chain(more).chain(others).take(top) {
        // Scores fall strictly, so that they keep the order.
        let below = arranged.last().map_or(f64::INFINITY, |last| last.score.next_down());
        arranged.push(Scored { id: one.id, score: one.score.min(below) });
    }
    Ok(arranged)
}

/// Return the units that have all words of a query of one or two words that the index has; `None` for other queries.
fn units_with_all(links: &LinksView<'_>, known: &Question) -> Option<HashSet<u32>> {
    let words: Vec<u32> = known
        .keywords
        .iter()
        .enumerate()
        .filter(|&(at, _)| known.share(at) == 1.0)
        .map(|(_, &id)| id)
        .collect();
    if words.is_empty() || words.len() > WORDS || known.unknown() > 0 {
        return None;
    }
    let row = |word: u32| -> HashSet<u32> {
        links.keyword_units.indices.get(links.keyword_units.range(word as usize)).iter().copied().collect()
    };
    words.into_iter().map(row).reduce(|all, own| all.intersection(&own).copied().collect())
}
