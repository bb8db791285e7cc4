//! Selection of the rows of a ranked list that fit into a token budget.

pub use crate::tokens::Count;

/// The behaviour at the first row that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FillPolicy {
    #[default]
    FirstOverflowStops,
    SkipAndContinue,
}

/// The behaviour if not a single row fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OversizePolicy {
    /// The first row is truncated to fit.
    #[default]
    Truncate,
    Drop,
}

/// Return the indices of the selected rows of `0..rows`, in order. Their costs sum to at most `budget`.
/// `cost(row, n)` is the cost of `row` as the `n`-th selected row (from 0).
pub fn fill<C>(rows: usize, budget: u64, policy: FillPolicy, mut cost: C) -> Vec<(usize, u64)>
where
    C: FnMut(usize, usize) -> u64,
{
    let mut left = budget;
    let mut taken = Vec::new();
    for row in 0..rows {
        let cost = cost(row, taken.len());
        if cost <= left {
            left -= cost;
            taken.push((row, cost));
        } else if policy == FillPolicy::FirstOverflowStops {
            break;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    #[test]
    fn the_first_overflow_stops_or_is_skipped() {
        let costs = [3, 9, 2, 1];
        let with = |policy| fill(4, 6, policy, |i, _| costs[i]).into_iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(with(FillPolicy::FirstOverflowStops), [0]);
        assert_eq!(with(FillPolicy::SkipAndContinue), [0, 2, 3]);
    }

    #[test]
    fn a_cut_never_divides_a_grapheme() {
        let tokens = crate::text::bpe::Encoding::Cl100k;
        let count = |text: &str| tokens.count(text);
        let text = "e\u{301}te\u{301} 日本語のテキスト 👩‍👩‍👧 and so on";
        for most in 0..40 {
            let end = count.cut(text, most);
            assert!(count.count(&text[..end]) <= most);
            assert!(end == text.len() || text.grapheme_indices(true).any(|(i, _)| i == end));
        }
        assert_eq!(count.cut(text, 1000), text.len());
        assert_eq!(count.cut("", 3), 0);
    }

    proptest! {
        #[test]
        fn a_larger_budget_only_appends(costs in prop::collection::vec(0u64..20, 0..20), budget in 0u64..100, more in 0u64..50) {
            let with = |budget| fill(costs.len(), budget, FillPolicy::FirstOverflowStops, |i, _| costs[i]);
            let (small, large) = (with(budget), with(budget + more));
            prop_assert!(small.iter().map(|t| t.1).sum::<u64>() <= budget);
            prop_assert_eq!(&small[..], &large[..small.len()]);
        }
    }
}
