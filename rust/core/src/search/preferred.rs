//! Which passage comes first because it has a phrase that a question quotes.

/// Share of the best score that a passage with the phrase needs, if others have it as well. A quoted title often leads to an
/// answer in another passage, whose score is much better then. Chosen on the quoted questions of twelve sets; the values 0,
/// 0.5, 0.7 and 0.9, also for the only passage with a phrase, are in docs/internals/ranking.md.
const SHARE: f64 = 0.8;

/// Return the position, among scores in descending order, of the passage that comes first because of a quoted phrase: the only
/// one that has it, or the first one that has it, if its score is good enough.
///
/// ```
/// use ketrag_core::search::preferred::first_preferred;
///
/// assert_eq!(first_preferred([(10.0, false), (9.0, true), (8.5, true)]), Some(1));
/// assert_eq!(first_preferred([(10.0, false), (7.0, true), (6.0, true)]), None);
/// assert_eq!(first_preferred([(10.0, false), (7.0, false), (6.0, true)]), Some(2));
/// ```
pub fn first_preferred(ranked: impl IntoIterator<Item = (f64, bool)>) -> Option<usize> {
    let (mut best, mut found, mut count) = (None, None, 0);
    for (at, (score, is_preferred)) in ranked.into_iter().enumerate() {
        let least = *best.get_or_insert(SHARE * score);
        if is_preferred {
            count += 1;
            found.get_or_insert((at, at == 0 || score >= least));
        }
    }
    found.filter(|&(_, is_good)| is_good || count == 1).map(|(at, _)| at)
}
