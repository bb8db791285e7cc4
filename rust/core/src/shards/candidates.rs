//! The best units of one shard for a query whose keywords are weighted over all shards.

use super::bundle::Bundle;
use crate::channels::need;
use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::rank::links_weights::Saturations;
use crate::rank::matches::{Matches, Sought};
use crate::rank::moments::Moments;
use crate::sparse::{leaves, Leaders, Mask, Scored};

/// The keywords of a query, with which every shard computes the score that one index would compute.
#[derive(Debug, Clone)]
pub struct Weighting {
    /// Keywords in ascending order, each with its idf over all shards times its share.
    pub keywords: Vec<(String, f64)>,
    /// Saturations for the mean length over all shards.
    pub saturations: Saturations,
}

impl Weighting {
    /// `units` units have `length` keywords, counting repetitions.
    pub fn new(keywords: Vec<(String, f64)>, length: u64, units: usize) -> Result<Self> {
        Ok(Self { keywords, saturations: Saturations::of_whole(length, units)? })
    }

    /// Compute the score of every unit that has one of the keywords.
    pub fn matches(&self, links: &LinksView<'_>, progress: &Progress) -> Result<Matches> {
        let (keywords, weights) = self.known(links);
        self.matches_of(links, (&keywords, &weights), progress)
    }

    /// Return the ids of the keywords that a shard has, ascending, and their weights.
    fn known(&self, links: &LinksView<'_>) -> (Vec<u32>, Vec<f64>) {
        let known =
            |(word, weight): &(String, f64)| links.keywords.position(word).map(|at| (at as u32, *weight));
        self.keywords.iter().filter_map(known).unzip()
    }

    fn matches_of(
        &self,
        links: &LinksView<'_>,
        (keywords, weights): (&[u32], &[f64]),
        progress: &Progress,
    ) -> Result<Matches> {
        let links = LinksView { saturations: &self.saturations, ..*links };
        let mut matches = Matches::default();
        matches.find(Sought::Weighted { links: &links, keywords, weights }, progress)?;
        Ok(matches)
    }
}

/// Return the best `count` units that pass the filter, and the moments of the scores of all units.
pub fn best(
    parts: &Parts<'_>,
    weighting: &Weighting,
    count: usize,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<(Vec<Scored>, Moments)> {
    let matches = weighting.matches(need(parts.links()?)?, progress)?;
    Ok((best_of(&matches, count, mask), matches.moments()))
}

pub(super) fn best_of(matches: &Matches, count: usize, mask: Option<&Mask>) -> Vec<Scored> {
    let mut best = Leaders::new(count);
    for (most, units) in matches.groups() {
        if most < best.floor() {
            continue;
        }
        for (id, score) in units.filter(|&(id, _)| leaves(mask, id)) {
            best.push(Scored { id, score });
        }
    }
    best.finish()
}

/// Return the best `count` units that pass the filter with everything that a ranking reads of them. With a filter,
/// also the best of all units, which may lead to others.
///
/// `is_narrow`: for a ranking that follows no links, the units have only the keywords of the query.
pub fn candidates(
    parts: &Parts<'_>,
    weighting: &Weighting,
    (count, is_narrow): (usize, bool),
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Bundle> {
    let links = need(parts.links()?)?;
    let (keywords, weights) = weighting.known(links);
    let matches = weighting.matches_of(links, (&keywords, &weights), progress)?;
    let mut found = best_of(&matches, count, mask);
    if mask.is_some() {
        found.extend(best_of(&matches, count, None));
    }
    let units = found.iter().map(|one| one.id).collect();
    let own = bundle(parts, links, (units, is_narrow.then_some(&keywords)), mask, progress)?;
    Ok(Bundle { matches: matches.moments(), ..own })
}

/// Return units with everything that a ranking reads of them, or with only some keywords.
pub(super) fn bundle(
    parts: &Parts<'_>,
    links: &LinksView<'_>,
    (mut units, only): (Vec<u32>, Option<&Vec<u32>>),
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Bundle> {
    units.sort_unstable();
    units.dedup();
    let permitted = units.iter().map(|&unit| u8::from(leaves(mask, unit))).collect();
    let own = match only {
        Some(keywords) => Bundle::narrow(parts, links, units, keywords, progress)?,
        None => Bundle::of(parts, links, units, progress)?,
    };
    Ok(Bundle { permitted, ..own })
}
