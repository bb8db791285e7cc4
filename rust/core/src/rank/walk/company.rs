//! What else of its document matches the query: a unit's neighbours, and the document's other candidates.

use super::Row;
use crate::items::Items;

/// Give each candidate the direct match of its better neighbour plus that of the best other candidate of its document. One
/// below the mean counts as 0.
pub(super) fn accompany(documents: Items<'_, u32>, direct: impl Fn(u32) -> f64, rows: &mut [Row]) {
    let matched = |unit: u32| direct(unit).max(0.0);
    let of = |unit: u32| documents[unit as usize];
    let mut order: Vec<(u32, f64, usize)> =
        rows.iter().enumerate().map(|(at, row)| (of(row.unit), matched(row.unit), at)).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    for together in order.chunk_by(|a, b| a.0 == b.0) {
        for (k, &(document, _, at)) in together.iter().enumerate() {
            let unit = rows[at].unit;
            let beside = [unit.checked_sub(1), unit.checked_add(1)].into_iter().flatten();
            let near = beside
                .filter(|&other| (other as usize) < documents.len() && of(other) == document)
                .map(matched)
                .fold(0.0, f64::max);
            let other = together.get(usize::from(k == 0)).map_or(0.0, |other| other.1);
            rows[at].company = near + other;
        }
    }
}
