//! Rounding of the walk's scores, so that ties are the same on every processor.
//!
//! Sums run in a fixed order, but `ln` and `exp` come from the system's library, and their last bit differs
//! between processors with and without fused multiply-add. Passages with equal scores also sum the same terms
//! in different orders. So that the last bits never decide an order, everything that is sorted is rounded
//! first: scores to multiples of 2^-30 (about 1e-9), masses of the walk to 31 significant bits. Values that
//! are equal after rounding are ties, decided by the smaller id, or by the order of round 1. Where the walk starts and
//! which units pass mass on, on which all scores depend, the content of the units decides ([`settle`]).

use crate::rank::links_view::LinksView;
use crate::sparse::Scored;
use std::cmp::Ordering;

/// Scores below this have digits beyond 2^-30.
const FINE: f64 = (1u64 << 21) as f64;

/// Round a score to the nearest multiple of 2^-30, ties to even.
#[inline]
pub(crate) fn round_score(score: f64) -> f64 {
    // Near this number the distance between doubles is 2^-30, so the addition rounds.
    const ANCHOR: f64 = 3.0 * FINE;
    if score.abs() < FINE {
        (score + ANCHOR) - ANCHOR
    } else {
        score
    }
}

/// Round a positive number to 31 significant bits.
#[inline]
pub(crate) fn round_mass(mass: f64) -> f64 {
    const DROPPED: u32 = 22;
    f64::from_bits(((mass.to_bits() + (1 << (DROPPED - 1))) >> DROPPED) << DROPPED)
}

/// Replace those of the best units that have the least score by others of `all` with the same score, so that their content
/// decides which are kept, and not the order of documents. The others keep their places.
pub(super) fn settle(links: &LinksView<'_>, best: &mut Vec<Scored>, all: impl Iterator<Item = Scored>) {
    let Some(least) = best.iter().map(|one| one.score).min_by(f64::total_cmp) else { return };
    let mut equal: Vec<Scored> = all.filter(|one| one.score == least).collect();
    let places = best.iter().filter(|one| one.score == least).count();
    if places == 0 || equal.len() <= places {
        return;
    }
    equal.select_nth_unstable_by(places - 1, |a, b| by_content(links, a.id, b.id));
    best.retain(|one| one.score != least);
    best.extend_from_slice(&equal[..places]);
}

/// Compare units by their keywords, names and subjects, whose vocabularies are sorted, and at last by their ids.
fn by_content(links: &LinksView<'_>, a: u32, b: u32) -> Ordering {
    let keywords = |unit: u32| {
        let range = links.unit_keywords.range(unit as usize);
        (&links.unit_keywords.indices[range.clone()], &links.unit_tf[range])
    };
    let subject = |unit: u32| (links.unit_subject[unit as usize], links.unit_mentions.row(unit as usize));
    let names = |unit: u32| links.unit_names.row(unit as usize);
    keywords(a)
        .cmp(&keywords(b))
        .then_with(|| names(a).cmp(names(b)))
        .then_with(|| subject(a).cmp(&subject(b)))
        .then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRID: f64 = (1u64 << 30) as f64;

    proptest! {
        #[test]
        fn scores_are_rounded_as_by_division(score in prop_oneof![-30.0f64..30.0, -2e6..2e6]) {
            prop_assert_eq!(round_score(score), (score * GRID).round_ties_even() / GRID);
        }

        #[test]
        fn masses_keep_31_bits(exponent in -60.0f64..0.0) {
            let mass = exponent.exp2();
            let rounded = round_mass(mass);
            prop_assert!((rounded - mass).abs() <= mass / (1u64 << 31) as f64);
            prop_assert_eq!(rounded.to_bits() & ((1 << 22) - 1), 0);
        }

        #[test]
        fn rounding_never_turns_an_order(a in -30.0f64..30.0, step in 0.0f64..1e-8) {
            prop_assert!(round_score(a) <= round_score(a + step));
            prop_assert!(round_mass(a.abs()) <= round_mass(a.abs() + step));
        }
    }

    #[test]
    fn last_bits_make_no_difference_and_extremes_stay() {
        let (one_way, other_way) = ((0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3));
        assert!(one_way != other_way && round_score(one_way) == round_score(other_way));
        assert!(round_mass(one_way) == round_mass(other_way));
        assert_eq!((round_score(-1e4), round_score(1e300), round_mass(0.0)), (-1e4, 1e300, 0.0));
        assert_eq!(round_score(f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!(round_score(f64::NAN).is_nan());
    }
}
