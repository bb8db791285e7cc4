//! Properties of the collection, estimated from the candidates of a query: whether units have distinct
//! subjects, and whether they mention the subjects of others. Both are needed to recognise a second hop.
//!
//! Subjects are counted over documents. Counted over units, their number would fall with the length of the
//! documents: the units of an article share its title.

use super::company::units_of;
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
    /// Share of the documents that are a single unit.
    pub single: f64,
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
            single: documents.map_or(0.0, |documents| single(documents, pool)),
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
    let own = || documents.map_or(last, |documents| documents[last] as usize) + 1;
    let all = links.whole.map_or_else(own, |whole| whole.documents);
    let (mut sum, mut count) = (0.0, 0usize);
    for one in pool {
        let own = links.unit_subject[one.id as usize];
        for &subject in links.unit_mentions.row(one.id as usize).iter().filter(|&&other| other != own) {
            let units = links.subject_frequency(subject);
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

/// Return the share of the candidates' documents that are a single unit.
fn single(documents: Items<'_, u32>, pool: &[Scored]) -> f64 {
    let mut of: Vec<(u32, u32)> = pool.iter().map(|one| (documents[one.id as usize], one.id)).collect();
    of.sort_unstable();
    of.dedup_by_key(|one| one.0);
    let alone = of.iter().filter(|one| units_of(documents, one.1) == 1).count();
    alone as f64 / of.len().max(1) as f64
}
