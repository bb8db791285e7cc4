//! What the candidates of a query show about the collection: whether its units have distinct subjects and mention
//! those of others.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::sparse::Scored;

/// Counts of the candidates of round 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Collection {
    pub candidates: usize,
    /// Distinct subjects; a candidate without a subject counts as another.
    pub subjects: usize,
    /// Candidates that have a subject.
    pub titled: usize,
    /// Candidates that mention the subject of another unit.
    pub mentioning: usize,
    /// Whether the query names a subject.
    pub named: bool,
}

impl Collection {
    pub fn of(links: &LinksView<'_>, question: &Question, pool: &[Scored]) -> Self {
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
            subjects: pool.len() - titled + subjects.len(),
            titled,
            mentioning: pool.iter().filter(mentions).count(),
            named: !question.subjects.is_empty(),
        }
    }

    /// Return a share of the candidates.
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.candidates.max(1) as f64
    }
}
