//! The terms of a pair's score.

/// Maximum number of partners: each is a bit of an integer and a lane of a register.
pub(crate) const LANES: usize = 64;
const MAX_COSINE: f64 = 0.98;

/// Weights of the terms of a pair's score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worth {
    /// Coverage of the query's keywords, without and with vectors.
    pub cover: f64,
    pub cover_dense: f64,
    /// Weights of a link: the rarest keyword and the rarest name that both units have.
    pub link: f64,
    pub keyword: f64,
    pub name: f64,
    /// Keywords less rare than this (idf / ln n) are ignored.
    pub least: f64,
    /// The candidate mentions the partner's subject.
    pub mentions: f64,
    /// The partner mentions the candidate's subject.
    pub mentioned: f64,
}

/// x^(1/8).
#[inline]
fn root(x: f64) -> f64 {
    x.sqrt().sqrt().sqrt()
}

/// Return an upper bound of x^(1/8) for x >= 0, within about 7 % (or 1e-38), without computing a root. The
/// bits of a positive number are a piecewise linear logarithm: at most 0.0861 below the true one, and never
/// below it when converted back.
#[inline]
fn root_bound(x: f64) -> f64 {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const SLACK: u64 = (0.0861 * (1u64 << 52) as f64) as u64 + 1;
    f64::from_bits((x.to_bits() >> 3) + (ONE - ONE / 8 + SLACK / 8 + 2))
}

/// Return the score of shared keywords and of shared names, given the sums of (idf / ln n)^8 of each.
#[inline]
pub(crate) fn link(worth: &Worth, keywords: f64, names: f64) -> f64 {
    worth.link * (worth.keyword * root(keywords) + worth.name * root(names))
}

/// Return an upper bound of [`shared`].
#[inline]
pub(crate) fn link_bound(worth: &Worth, keywords: f64, names: f64) -> f64 {
    worth.link * (worth.keyword * root_bound(keywords) + worth.name * root_bound(names))
}

/// Return the length of the projection of the query on the plane of two vectors. a and b are their
/// similarities to the query, c is their similarity to each other.
#[inline]
pub(crate) fn explained(a: f64, b: f64, c: f64) -> f64 {
    let c = c.clamp(-MAX_COSINE, MAX_COSINE);
    ((a * a + b * b - 2.0 * a * b * c) / (1.0 - c * c)).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bound_is_a_bound_and_close(exponent in -60.0f64..5.0) {
            let x = exponent.exp2();
            prop_assert!(root_bound(x) >= root(x));
            prop_assert!(root_bound(x) <= 1.08 * root(x));
        }
    }

    #[test]
    fn nothing_shared_is_worth_nothing() {
        let worth = Worth {
            cover: 9.0,
            cover_dense: 6.0,
            link: 1.0,
            keyword: 2.45,
            name: 1.05,
            least: 0.0,
            mentions: 2.0,
            mentioned: 3.0,
        };
        assert_eq!(link(&worth, 0.0, 0.0), 0.0);
        assert!(root_bound(0.0) < 1e-37);
        assert!((explained(0.6, 0.8, 0.0) - 1.0).abs() < 1e-12);
        assert!(explained(1.0, 1.0, 1.0).is_finite());
    }

    #[test]
    fn a_projection_on_a_plane_is_that_of_the_vectors() {
        // Two vectors in the first two dimensions, and queries of which the plane has a part.
        for (angle, x, y) in [(0.4f64, 0.6, 0.3), (1.2, 0.5, -0.4), (2.5, -0.2, 0.7)] {
            let (a, b) = (x, x * angle.cos() + y * angle.sin());
            assert!((explained(a, b, angle.cos()) - x.hypot(y)).abs() < 1e-9, "{angle}");
        }
    }
}
