//! Properties of the collection, estimated from the candidates of a query: whether units have distinct
//! subjects, and whether they mention the subjects of others. Both are needed to recognise a second hop.
//!
//! Subjects are counted over documents. Counted over units, their number would fall with the length of the
//! documents: the units of an article share its title.

use crate::items::Items;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::sparse::Scored;

/// If a smaller share of the documents has a subject, the others count as documents without a distinct
/// subject.
const TITLED: f64 = 0.6;

/// Counts of the candidates of round 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Collection {
    pub candidates: usize,
    /// Documents of the candidates.
    pub documents: usize,
    /// Documents of which a candidate has a subject.
    pub titled: usize,
    /// Distinct subjects, one for each of these documents.
    pub subjects: usize,
    /// Candidates that mention the subject of another unit.
    pub mentioning: usize,
    /// Whether the query names a subject.
    pub named: bool,
    /// Candidates whose document has other candidates.
    pub accompanied: usize,
    /// How common the mentioned subjects are, from 0 to 1: see [`commonness`].
    pub common: f64,
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
        let document = |one: &Scored| documents.map_or(one.id, |documents| documents[one.id as usize]);
        // The document of each candidate with its subject; NONE is the greatest.
        let mut of_documents: Vec<(u32, u32)> =
            pool.iter().map(|one| (document(one), subject(one))).collect();
        of_documents.sort_unstable();
        of_documents.dedup_by_key(|one| one.0);
        let mut subjects: Vec<u32> =
            of_documents.iter().map(|one| one.1).filter(|&one| one != NONE).collect();
        let titled = subjects.len();
        subjects.sort_unstable();
        subjects.dedup();
        Self {
            candidates: pool.len(),
            documents: of_documents.len(),
            titled,
            subjects: subjects.len(),
            mentioning: pool.iter().filter(mentions).count(),
            named: !question.subjects.is_empty(),
            accompanied: documents.map_or(0, |documents| accompanied(documents, pool)),
            common: commonness(links, documents, pool),
        }
    }

    /// Return whether at least half of the documents have a subject.
    pub fn is_titled(&self) -> bool {
        2 * self.titled >= self.documents
    }

    /// Return the number of distinct subjects divided by the number of documents with a subject, which
    /// counts as at least [`TITLED`] of all documents.
    pub fn distinct(&self) -> f64 {
        self.subjects as f64 / (self.titled as f64).max(TITLED * self.documents as f64).max(1.0)
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

/// Return how common the subjects that candidates mention are: the mean over all mentions of the number of
/// units with the subject for each document of the index, at most 1. The titles of articles are mentioned in
/// few other articles. What web pages begin with are often ordinary words, which occur everywhere.
fn commonness(links: &LinksView<'_>, documents: Option<Items<'_, u32>>, pool: &[Scored]) -> f64 {
    let last = links.units().saturating_sub(1);
    let all = documents.map_or(last, |documents| documents[last] as usize) + 1;
    let (mut sum, mut count) = (0.0, 0usize);
    for one in pool {
        let own = links.unit_subject[one.id as usize];
        for &subject in links.unit_mentions.row(one.id as usize).iter().filter(|&&other| other != own) {
            let units = links.subject_units.range(subject as usize).len();
            sum += (units as f64 / all as f64).min(1.0);
            count += 1;
        }
    }
    sum / count.max(1) as f64
}

/// Return the number of candidates whose document has other candidates.
fn accompanied(documents: Items<'_, u32>, pool: &[Scored]) -> usize {
    let mut of: Vec<u32> = pool.iter().map(|one| documents[one.id as usize]).collect();
    of.sort_unstable();
    of.chunk_by(|a, b| a == b).map(<[u32]>::len).filter(|&many| many > 1).sum()
}

/// Return, for each candidate, the direct match of its better neighbour plus that of the best other candidate
/// of its document. Matches below the mean count as 0.
///
/// Units of long documents have more company by chance, and more so the longer their units' topics last. So
/// the company that documents of this length have on average among the candidates is subtracted: the fit of
/// a line to the logarithm of the number of units.
pub(super) fn company_of(
    documents: Items<'_, u32>,
    direct: impl Fn(u32) -> f64,
    units: &[u32],
    fitted: f64,
) -> Vec<f64> {
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
    let sizes: Vec<f64> = units.iter().map(|&unit| f64::from(units_of(documents, unit)).ln()).collect();
    let count = units.len().max(1) as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (middle, level) = (mean(&sizes), mean(&company));
    let (mut both, mut spread) = (0.0, 0.0);
    for (size, company) in sizes.iter().zip(&company) {
        both += (size - middle) * (company - level);
        spread += (size - middle) * (size - middle);
    }
    let slope = if spread > 1e-9 { (both / spread).max(0.0) } else { 0.0 };
    company.iter_mut().zip(&sizes).for_each(|(company, size)| *company -= fitted * slope * (size - middle));
    company
}

/// Return the number of units of a unit's document.
fn units_of(documents: Items<'_, u32>, unit: u32) -> u32 {
    let own = documents[unit as usize];
    let edge = |step: i64| {
        // Double the distance while the document is the same, then halve it.
        let is_own = |at: i64| (0..documents.len() as i64).contains(&at) && documents[at as usize] == own;
        let (mut inside, mut by) = (i64::from(unit), 1);
        while is_own(inside + step * by) {
            inside += step * by;
            by *= 2;
        }
        while by > 1 {
            by /= 2;
            if is_own(inside + step * by) {
                inside += step * by;
            }
        }
        inside
    };
    (edge(1) - edge(-1) + 1) as u32
}
