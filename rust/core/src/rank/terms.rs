//! Postings of learned sparse document vectors. They replace the postings of BM25.
//!
//! The score of a unit is the sum, over the query's terms, of the term's weight in the query times its weight
//! in the unit. Weights in units are stored as impacts: integer multiples of [`STEP`].

use crate::error::{Error, Result};
use crate::items::Items;
use crate::sparse::CsrView;

/// The weight of an impact of 1. SPLADE weights are logarithms: 255 steps exceed the weight of a logit of 50.
pub const STEP: f64 = 1.0 / 64.0;

/// The postings of each term: units with their impacts.
#[derive(Debug, Clone, Copy)]
pub struct TermPostings<'a> {
    pub units: CsrView<'a>,
    /// Parallel to the ids of the units.
    pub impacts: Items<'a, u8>,
}

impl<'a> TermPostings<'a> {
    /// Errors: the number of impacts differs from the number of postings.
    pub fn new(units: CsrView<'a>, impacts: Items<'a, u8>) -> Result<Self> {
        match units.nnz() == impacts.len() {
            true => Ok(Self { units, impacts }),
            false => {
                Err(Error::input(format!("there are {} impacts for {} postings", impacts.len(), units.nnz())))
            }
        }
    }
}

/// The terms of a query, ascending, with their positive weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryTerms<'a> {
    pub terms: &'a [u32],
    pub weights: &'a [f32],
}

impl QueryTerms<'_> {
    /// Check that an index of `count` terms has these terms. Errors: terms do not ascend or are unknown, or a
    /// weight is not finite and positive.
    pub fn check(&self, count: usize) -> Result<()> {
        let ascend = self.terms.is_sorted_by(|a, b| a < b);
        if self.terms.len() != self.weights.len() || !ascend {
            return Err(Error::input("terms must ascend, with a weight for each"));
        }
        if self.terms.last().is_some_and(|&term| term as usize >= count) {
            return Err(Error::input(format!("a term of the question is not one of {count}")));
        }
        match self.weights.iter().all(|weight| weight.is_finite() && *weight > 0.0) {
            true => Ok(()),
            false => Err(Error::input("weights of terms must be finite and positive")),
        }
    }
}

/// A query's terms and the postings that they are matched against.
#[derive(Debug, Clone, Copy)]
pub struct Weighed<'a> {
    pub postings: TermPostings<'a>,
    pub query: QueryTerms<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_ascend_and_are_known() {
        let check = |terms: &[u32], weights: &[f32]| QueryTerms { terms, weights }.check(9);
        assert!(check(&[], &[]).is_ok() && check(&[0, 8], &[0.5, 2.0]).is_ok());
        assert!(check(&[8, 0], &[1.0, 1.0]).is_err() && check(&[3, 3], &[1.0, 1.0]).is_err());
        assert!(check(&[9], &[1.0]).is_err() && check(&[1], &[]).is_err());
        assert!(check(&[1], &[0.0]).is_err() && check(&[1], &[f32::NAN]).is_err());
    }
}
