//! Mean and deviation that do not depend on the order of the values.
//!
//! Values are rounded to multiples of 2^-32. The rounded values and their squares are summed exactly, as
//! integers, so any order and any partition of the units gives the same bits.

/// Values are rounded to multiples of 1 over this number.
const SCALE: f64 = (1u64 << 32) as f64;
/// Values are clamped to this magnitude. The squares of 2^32 such values fit into the integer sum.
const LIMIT: f64 = (1u64 << 15) as f64;
/// Near this number the distance between doubles is 1. Adding it rounds to the nearest integer, which then
/// occupies the lowest bits.
const ANCHOR: f64 = (3u64 << 51) as f64;

/// Number of values, their sum and the sum of their squares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moments {
    count: i128,
    sum: i128,
    squares: i128,
}

/// Return a value as a number of steps of 2^-32, rounded to nearest, ties to even.
#[inline]
fn steps(x: f64) -> i64 {
    // Not `clamp`: NaN must become the limit.
    let x = if x < LIMIT { x } else { LIMIT };
    let x = if x > -LIMIT { x } else { -LIMIT };
    (x * SCALE + ANCHOR).to_bits() as i64 - ANCHOR.to_bits() as i64
}

impl Moments {
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut moments = Self::default();
        values.for_each(|x| moments.add(x));
        moments
    }

    #[inline]
    pub fn add(&mut self, x: f64) {
        let x = i128::from(steps(x));
        self.count += 1;
        self.sum += x;
        self.squares += x * x;
    }

    /// Return the moments after adding a value several times.
    pub fn with(mut self, x: f64, times: usize) -> Self {
        let (x, times) = (i128::from(steps(x)), times as i128);
        self.count += times;
        self.sum += x * times;
        self.squares += x * x * times;
        self
    }

    /// Return the moments of the values of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// Return the number of values, their sum and the sum of their squares, in steps, to be sent elsewhere.
    pub fn parts(&self) -> [i128; 3] {
        [self.count, self.sum, self.squares]
    }

    /// Return the moments with these parts; None if no values have them.
    pub fn from_parts([count, sum, squares]: [i128; 3]) -> Option<Self> {
        let most = (LIMIT * SCALE) as i128;
        let fits = (0..=1 << 32).contains(&count)
            && sum.abs() <= count * most
            && (0..=count * most * most).contains(&squares);
        fits.then_some(Self { count, sum, squares })
    }

    /// Return the number of values.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Return the mean; 0 if there are no values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64 / SCALE
    }

    /// Return the deviation; 0 if there are no values.
    pub fn deviation(&self) -> f64 {
        let count = self.count.max(1);
        // Shift by the integer next to the mean, so that the squares are small.
        let middle = self.sum / count;
        let sum = self.sum - middle * count;
        let squares = self.squares - middle * (2 * self.sum - middle * count);
        let square = squares as f64 - (sum * sum) as f64 / count as f64;
        (square.max(0.0) / count as f64).sqrt() / SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_order_and_partition_gives_the_same_bits(
            mut values in prop::collection::vec(-30.0f64..30.0, 0..200), cut in 0usize..200, zeros in 0usize..50,
        ) {
            let want = Moments::of(values.iter().copied()).with(0.0, zeros);
            let (first, rest) = values.split_at(cut.min(values.len()));
            let (mut first, rest) = (first.to_vec(), rest.to_vec());
            first.extend(std::iter::repeat_n(0.0, zeros));
            let turned = rest.iter().rev().chain(&first).copied();
            prop_assert_eq!(Moments::of(turned), want);
            values.resize(values.len() + zeros, 0.0);
            let count = values.len().max(1) as f64;
            let mean = values.iter().sum::<f64>() / count;
            let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            prop_assert!((want.mean() - mean).abs() < 1e-9);
            prop_assert!((want.deviation() - square.sqrt()).abs() < 1e-8);
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let most = Moments::default().with(f64::INFINITY, 1 << 32).with(f64::NAN, 3);
        assert_eq!((most.mean(), most.deviation()), (LIMIT, 0.0));
        let wide = Moments::default().with(-1e300, 1 << 31).with(1e300, 1 << 31);
        assert_eq!((wide.mean(), wide.deviation()), (0.0, LIMIT));
        assert_eq!((Moments::default().mean(), Moments::default().deviation()), (0.0, 0.0));
        assert_eq!(Moments::default().with(0.1, 7).deviation(), 0.0);
    }
}
