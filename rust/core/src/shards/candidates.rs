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
        let links = LinksView { saturations: &self.saturations, ..*links };
        let known = self
            .keywords
            .iter()
            .filter_map(|(word, weight)| links.keywords.position(word).map(|at| (at as u32, *weight)));
        let (keywords, weights): (Vec<u32>, Vec<f64>) = known.unzip();
        let mut matches = Matches::default();
        matches.find(Sought::Weighted { links: &links, keywords: &keywords, weights: &weights }, progress)?;
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
pub fn candidates(
    parts: &Parts<'_>,
    weighting: &Weighting,
    count: usize,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Bundle> {
    let links = need(parts.links()?)?;
    let matches = weighting.matches(links, progress)?;
    let mut found = best_of(&matches, count, mask);
    if mask.is_some() {
        found.extend(best_of(&matches, count, None));
    }
    let units = found.iter().map(|one| one.id).collect();
    Ok(Bundle { matches: matches.moments(), ..bundle(parts, links, units, mask, progress)? })
}

/// Return units with everything that a ranking reads of them.
pub(super) fn bundle(
    parts: &Parts<'_>,
    links: &LinksView<'_>,
    mut units: Vec<u32>,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Bundle> {
    units.sort_unstable();
    units.dedup();
    let permitted = units.iter().map(|&unit| u8::from(leaves(mask, unit))).collect();
    Ok(Bundle { permitted, ..Bundle::of(parts, links, units, progress)? })
}
