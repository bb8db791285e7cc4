//! The company of a candidate: what else of its document matches the query.

use super::partners::saturations;
use crate::items::Items;
use crate::rank::links_view::LinksView;
use crate::rank::question::Question;
use std::collections::BTreeMap;
use std::ops::Range;

/// How the company of candidates is computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Company<'a> {
    pub links: &'a LinksView<'a>,
    pub question: &'a Question,
    pub documents: Items<'a, u32>,
    /// Share of the company that documents of this length have on average, which is subtracted.
    pub fitted: f64,
    /// Share of what the candidate contains itself, which is subtracted from the match of another unit.
    pub repeated: f64,
}

impl Company<'_> {
    /// Return, for each candidate, the direct match of its better neighbour plus that of the best other
    /// candidate of its document. Matches below the mean count as 0.
    ///
    /// Units of long documents have more company by chance, and more so the longer their units' topics last.
    /// So the company that documents of this length have on average among the candidates is subtracted: the
    /// fit of a line to the logarithm of the number of units.
    pub fn of(&self, direct: impl Fn(u32) -> f64, units: &[u32]) -> Vec<f64> {
        let documents = self.documents;
        let matched = |unit: u32| direct(unit).max(0.0);
        let of = |unit: u32| documents[unit as usize];
        let mut order: Vec<(u32, f64, usize)> =
            units.iter().enumerate().map(|(at, &unit)| (of(unit), matched(unit), at)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        let mut company = vec![0.0; units.len()];
        let mut held = BTreeMap::new();
        for together in order.chunk_by(|a, b| a.0 == b.0) {
            held.clear(); // of units of one document
            for (k, &(document, _, at)) in together.iter().enumerate() {
                let unit = units[at];
                let mut adds = |other: u32, match_: f64| match match_ > 0.0 {
                    true => match_ * self.new_share(other, unit, &mut held),
                    false => 0.0,
                };
                let mut near: f64 = 0.0;
                for other in [unit.checked_sub(1), unit.checked_add(1)].into_iter().flatten() {
                    if (other as usize) < documents.len() && of(other) == document {
                        near = near.max(adds(other, matched(other)));
                    }
                }
                let other = together.get(usize::from(k == 0));
                company[at] = near + other.map_or(0.0, |other| adds(units[other.2], other.1));
            }
        }
        self.less_than_usual(units, &mut company);
        company
    }

    /// Return the weight of another unit's match next to a unit: 1 without `repeated`, else less by the share of
    /// the matching keywords, weighted by idf and saturation, that the unit contains itself.
    fn new_share(&self, other: u32, unit: u32, held: &mut BTreeMap<u32, Vec<f64>>) -> f64 {
        if self.repeated == 0.0 {
            return 1.0;
        }
        for one in [other, unit] {
            held.entry(one).or_insert_with(|| saturations(self.links, self.question, one));
        }
        let (theirs, own) = (&held[&other], &held[&unit]);
        let (mut new, mut all) = (0.0, 0.0);
        for ((keyword, theirs), own) in self.question.keywords.iter().zip(theirs).zip(own) {
            let idf = self.links.keyword_idf[*keyword as usize];
            all += idf * theirs;
            new += idf * (theirs - own).max(0.0);
        }
        if all > 0.0 {
            1.0 - self.repeated * (1.0 - new / all)
        } else {
            1.0 // it matches by its vector alone
        }
    }

    /// Subtract the share `fitted` of the company that documents of the same length have on average.
    fn less_than_usual(&self, units: &[u32], company: &mut [f64]) {
        let size = |&unit: &u32| f64::from(units_of(self.documents, unit)).ln();
        let sizes: Vec<f64> = units.iter().map(size).collect();
        let count = units.len().max(1) as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let (middle, level) = (mean(&sizes), mean(company));
        let (mut both, mut spread) = (0.0, 0.0);
        for (size, company) in sizes.iter().zip(&*company) {
            both += (size - middle) * (company - level);
            spread += (size - middle) * (size - middle);
        }
        let slope = if spread > 1e-9 { (both / spread).max(0.0) } else { 0.0 };
        for (company, size) in company.iter_mut().zip(&sizes) {
            *company -= self.fitted * slope * (size - middle);
        }
    }
}

/// Return the number of units of a unit's document.
pub(super) fn units_of(documents: Items<'_, u32>, unit: u32) -> u32 {
    let own = documents[unit as usize];
    run_around(unit as usize, documents.len(), |at| documents[at] == own).len() as u32
}

/// Return the run of positions around `at` that fit, all of which are adjacent: double the distance while they fit, then
/// halve it.
pub(super) fn run_around(at: usize, len: usize, fits: impl Fn(usize) -> bool) -> Range<usize> {
    let edge = |step: i64| {
        let is_inside = |at: i64| (0..len as i64).contains(&at) && fits(at as usize);
        let (mut inside, mut by) = (at as i64, 1);
        while is_inside(inside + step * by) {
            inside += step * by;
            by *= 2;
        }
        while by > 1 {
            by /= 2;
            if is_inside(inside + step * by) {
                inside += step * by;
            }
        }
        inside as usize
    };
    edge(-1)..edge(1) + 1
}
