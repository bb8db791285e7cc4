//! Assembly of contexts from a recipe: which channels it uses, how they share a budget, and how their results
//! are combined. This module does not refer to any channel by name.

mod extensions;
mod join;
mod recipe;
mod request;
mod searcher;
mod typed;

pub use extensions::{Extensions, OpenChannels};
pub use join::{Join, Task};
pub use recipe::{Recipe, Rollover, Share};
pub use request::Request;
pub use searcher::{Reply, Searcher};
pub use typed::{Corrected, Matching, Term};

#[cfg(test)]
mod tests;
