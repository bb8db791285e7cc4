//! What the candidates of a query show about the collection: whether its units have distinct subjects and mention
//! those of others, and without subjects whether they are about the same things.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::sparse::Scored;

/// Counts of the candidates of round 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
    /// If most candidates have no subject: mean similarity of each of the first to the most similar other one.
    pub similarity: Option<f64>,
}

impl Collection {
    pub fn of(links: &LinksView<'_>, question: &Question, pool: &[Scored], first: usize) -> Self {
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
            similarity: (2 * titled < pool.len()).then(|| similarity(links, &pool[..pool.len().min(first)])),
        }
    }

    /// Return a share of the candidates.
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.candidates.max(1) as f64
    }
}

/// Return the mean over units of the similarity to the most similar other one: the cosine of their keywords, each weighted
/// by its idf. 1 for a single unit.
fn similarity(links: &LinksView<'_>, units: &[Scored]) -> f64 {
    if units.len() < 2 {
        return 1.0;
    }
    let rows: Vec<&[u32]> = units.iter().map(|one| links.unit_keywords.row(one.id as usize)).collect();
    let weight = |keyword: u32| links.keyword_idf[keyword as usize].powi(2);
    let norms: Vec<f64> = rows.iter().map(|row| row.iter().map(|&k| weight(k)).sum::<f64>().sqrt()).collect();
    let mut nearest = vec![0.0f64; rows.len()];
    for (i, one) in rows.iter().enumerate() {
        for (j, other) in rows.iter().enumerate().take(i) {
            let product: f64 = shared(one, other).map(weight).sum();
            let cosine = product / (norms[i] * norms[j]).max(f64::MIN_POSITIVE);
            nearest[i] = nearest[i].max(cosine);
            nearest[j] = nearest[j].max(cosine);
        }
    }
    nearest.iter().sum::<f64>() / nearest.len() as f64
}

/// Iterate over the common elements of two ascending rows.
fn shared<'a>(one: &'a [u32], other: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    let mut at = 0;
    one.iter().copied().filter(move |&k| {
        while at < other.len() && other[at] < k {
            at += 1;
        }
        other.get(at) == Some(&k)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_their_common_elements() {
        assert!(shared(&[1, 3, 5, 9], &[0, 3, 4, 9, 12]).eq([3, 9]));
        assert!(shared(&[], &[1]).next().is_none());
    }
}
