//! Recipes: how the channels of a mode share a budget.

use crate::error::{Error, Result};

/// A channel and its part of the budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub channel: String,
    pub part: f64,
}

/// The channel that receives the unused part of the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rollover {
    /// No channel: each channel keeps to its own share.
    #[default]
    None,
    /// The last channel, which then omits units that the others printed.
    Last,
    /// The first channel, which is filled after the others and printed before them.
    First,
}

impl Rollover {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "last" => Ok(Self::Last),
            "first" => Ok(Self::First),
            other => Err(Error::input(format!("rollover must be none, last or first, not {other:?}"))),
        }
    }
}

/// The sections that a mode prints, in the order of its channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The mode's name, for messages and for units that no single channel ranked.
    name: String,
    shares: Vec<Share>,
    rollover: Rollover,
}

/// Tolerance for the sum of shares: decimal shares may sum to slightly more than one.
const ROUNDING: f64 = 1e-9;

impl Recipe {
    pub fn new(name: String, shares: Vec<Share>, rollover: Rollover) -> Result<Self> {
        let wrong = |text: String| Err(Error::input(format!("mode {name}: {text}")));
        if shares.is_empty() {
            return wrong("it has no channel".into());
        }
        for (i, share) in shares.iter().enumerate() {
            if !(share.part >= 0.0 && share.part.is_finite()) {
                return wrong(format!("the share of channel {} must not be {}", share.channel, share.part));
            }
            if shares[..i].iter().any(|before| before.channel == share.channel) {
                return wrong(format!("channel {} occurs twice", share.channel));
            }
        }
        let sum: f64 = shares.iter().map(|share| share.part).sum();
        if sum > 1.0 + ROUNDING {
            let each: Vec<String> = shares.iter().map(|s| format!("{} {}", s.channel, s.part)).collect();
            return wrong(format!("the shares sum to {sum}, more than 1: {}", each.join(", ")));
        }
        Ok(Self { name, shares, rollover })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    pub fn rollover(&self) -> Rollover {
        self.rollover
    }

    /// Return the number of tokens of each share. The running sums from the first share on are rounded half
    /// up, as in KET-RAG, so shares that sum to one leave no token unused.
    pub fn sizes(&self, budget: u64) -> Vec<u64> {
        let (mut sum, mut taken) = (0.0, 0);
        let size = |share: &Share| {
            sum += share.part;
            // The small term compensates for rounding of a half: 0.1 * 45 is slightly less than 4.5.
            let end = match sum > 1.0 - ROUNDING {
                true => budget,
                false => ((sum * budget as f64 + 0.5 + ROUNDING).floor() as u64).min(budget),
            };
            let size = end.saturating_sub(taken);
            taken = taken.max(end);
            size
        };
        self.shares.iter().map(size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recipe(parts: &[f64]) -> Result<Recipe> {
        let share = |(i, &part)| Share { channel: format!("c{i}"), part };
        Recipe::new("mine".into(), parts.iter().enumerate().map(share).collect(), Rollover::None)
    }

    #[test]
    fn a_recipe_that_cannot_be_followed_is_named() {
        let told = |parts: &[f64]| recipe(parts).unwrap_err().to_string();
        assert_eq!(told(&[]), "mode mine: it has no channel");
        assert_eq!(told(&[0.5, 0.75]), "mode mine: the shares sum to 1.25, more than 1: c0 0.5, c1 0.75");
        assert_eq!(told(&[1.5, -0.5]), "mode mine: the share of channel c1 must not be -0.5");
        assert!(told(&[f64::NAN]).contains("must not be NaN"));
        let twice = ["a", "a"].map(|name| Share { channel: name.into(), part: 0.1 });
        let twice = Recipe::new("mine".into(), twice.into(), Rollover::None).unwrap_err();
        assert_eq!(twice.to_string(), "mode mine: channel a occurs twice");
        assert!(Rollover::by_name("all").unwrap_err().to_string().contains("none, last or first"));
        assert!(recipe(&[0.7, 0.2, 0.1]).is_ok() && recipe(&[0.3]).is_ok());
    }

    /// `share` of the budget, rounded half up, as in KET-RAG. The small term compensates for the rounding of a
    /// half: 0.1 * 45 is slightly less than 4.5.
    fn first_of(budget: u64, share: f64) -> u64 {
        ((share * budget as f64 + 0.5 + 1e-9).floor() as u64).min(budget)
    }

    proptest! {
        #[test]
        fn two_shares_are_split_as_published(budget in 0u64..100_000, percent in 0u32..=100) {
            let part = f64::from(percent) / 100.0;
            let first = first_of(budget, part);
            prop_assert_eq!(recipe(&[part, 1.0 - part]).unwrap().sizes(budget), [first, budget - first]);
        }

        #[test]
        fn sizes_never_exceed_the_budget(
            budget in prop_oneof![0u64..50, 0u64..=1 << 62], parts in prop::collection::vec(0.0..1.0f64, 1..6),
        ) {
            let sum: f64 = parts.iter().sum();
            let parts: Vec<f64> = parts.iter().map(|part| part / sum.max(1.0)).collect();
            let sizes = recipe(&parts).unwrap().sizes(budget);
            let total: u64 = sizes.iter().sum();
            prop_assert!(total <= budget);
            prop_assert!(sum < 1.0 || total == budget);
        }
    }
}
