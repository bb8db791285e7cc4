//! Rounding of the walk's scores, so that ties are the same on every processor.
//!
//! Sums run in a fixed order, but `ln` and `exp` come from the system's library, and their last bit differs
//! between processors with and without fused multiply-add. Passages with equal scores also sum the same terms
//! in different orders. So that the last bits never decide an order, everything that is sorted is rounded
//! first: scores to multiples of 2^-30 (about 1e-9), masses of the walk to 31 significant bits. Values that
//! are equal after rounding are ties, decided by the smaller id, or by the order of round 1.

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
