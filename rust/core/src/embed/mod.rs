//! The vector space that needs no model: fitted on the corpus itself.

pub mod builtin;
mod dense;
pub mod keyword_means;
mod symmetric;
