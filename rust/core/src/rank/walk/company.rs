//! Company of a unit: matches of its neighbouring units and of other candidates in the same document.

use crate::items::Items;

/// Return, for each candidate, the direct match of its better neighbour plus that of the best other candidate
/// of its document. Matches below the mean count as 0.
pub(super) fn company_of(documents: Items<'_, u32>, direct: impl Fn(u32) -> f64, units: &[u32]) -> Vec<f64> {
    let matched = |unit: u32| direct(unit).max(0.0);
    let of = |unit: u32| documents[unit as usize];
    let mut order: Vec<(u32, f64, usize)> =
        units.iter().enumerate().map(|(at, &unit)| (of(unit), matched(unit), at)).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    let mut company = vec![0.0; units.len()];
    for together in order.chunk_by(|a, b| a.0 == b.0) {
        for (k, &(document, _, at)) in together.iter().enumerate() {
            let unit = units[at];
            let neighbours = [unit.checked_sub(1), unit.checked_add(1)].into_iter().flatten();
            let near = neighbours
                .filter(|&other| (other as usize) < documents.len() && of(other) == document)
                .map(matched)
                .fold(0.0, f64::max);
            let other = together.get(usize::from(k == 0)).map_or(0.0, |other| other.1);
            company[at] = near + other;
        }
    }
    company
}
