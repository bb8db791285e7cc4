//! Assembly of contexts from a recipe: its channels, how they share a budget, and how they are joined. No
//! channel is known by name here.

mod join;
mod recipe;
mod request;
mod searcher;
mod vote;

pub use recipe::Share;
pub use request::Request;
pub use searcher::{Reply, Searcher};

#[cfg(test)]
mod tests;
