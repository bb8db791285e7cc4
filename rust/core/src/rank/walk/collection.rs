//! Properties of the collection, estimated from the candidates of a query: whether units have distinct
//! subjects, and whether they mention the subjects of others. Both are needed to recognise a second hop.

use crate::items::Items;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::sparse::Scored;

/// If a smaller share of the candidates has a subject, the others count as candidates without a distinct
/// subject.
const TITLED: f64 = 0.6;

/// Counts of the candidates of round 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Collection {
    pub candidates: usize,
    /// Candidates that have a subject.
    pub titled: usize,
    /// Distinct subjects.
    pub subjects: usize,
    /// Candidates that mention the subject of another unit.
    pub mentioning: usize,
    /// Whether the query names a subject.
    pub named: bool,
    /// Candidates whose document has other candidates.
    pub accompanied: usize,
}

impl Collection {
    pub fn of(
        links: &LinksView<'_>,
        question: &Question,
        documents: Option<Items<'_, u32>>,
        pool: &[Scored],
    ) -> Self {
        let subject = |one: &Scored| links.unit_subject[one.id as usize];
        let mentions = |one: &&Scored| {
            links.unit_mentions.row(one.id as usize).iter().any(|&other| other != subject(one))
        };
        let mut subjects: Vec<u32> = pool.iter().map(subject).filter(|&one| one != NONE).collect();
        let titled = subjects.len();
        subjects.sort_unstable();
        subjects.dedup();
        Self {
            candidates: pool.len(),
            titled,
            subjects: subjects.len(),
            mentioning: pool.iter().filter(mentions).count(),
            named: !question.subjects.is_empty(),
            accompanied: documents.map_or(0, |documents| accompanied(documents, pool)),
        }
    }

    /// Return whether at least half of the candidates have a subject.
    pub fn is_titled(&self) -> bool {
        2 * self.titled >= self.candidates
    }

    /// Return the number of distinct subjects divided by the number of candidates with a subject, which
    /// counts as at least [`TITLED`] of all candidates.
    pub fn distinct(&self) -> f64 {
        self.subjects as f64 / (self.titled as f64).max(TITLED * self.candidates as f64).max(1.0)
    }

    /// Return the share of candidates whose document has other candidates.
    pub fn company(&self) -> f64 {
        self.accompanied as f64 / self.candidates.max(1) as f64
    }

    /// Return the share of the candidates that mention the subject of another unit.
    pub fn linked(&self) -> f64 {
        self.mentioning as f64 / self.candidates.max(1) as f64
    }
}

/// Return the number of candidates whose document has other candidates.
fn accompanied(documents: Items<'_, u32>, pool: &[Scored]) -> usize {
    let mut of: Vec<u32> = pool.iter().map(|one| documents[one.id as usize]).collect();
    of.sort_unstable();
    of.chunk_by(|a, b| a == b).map(<[u32]>::len).filter(|&many| many > 1).sum()
}

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
