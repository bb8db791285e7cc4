//! Assembly of contexts from a recipe: which channels it uses, how they share a budget, and how their results
//! are combined. This module does not refer to any channel by name.

mod recipe;
mod request;
mod searcher;
mod typed;
mod vote;

pub use recipe::Share;
pub use request::Request;
pub use searcher::{Reply, Searcher};
pub use typed::{Corrected, Matching, Term};

#[cfg(test)]
mod tests;
