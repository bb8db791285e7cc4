//! Ranks and selections over any graph; nothing here knows who built it.

pub mod betweenness;
pub mod bm25;
pub mod core_numbers;
pub mod links_view;
pub mod matches;
pub mod messages;
pub mod pagerank;
pub mod question;
pub mod select;
pub mod sparse_sum;
pub mod spread;
pub mod walk;
pub mod walk2;
mod walk_ahead;
mod walk_bridges;
mod walk_cover;
pub mod walk_explain;
mod walk_mentions;
mod walk_pairs;
mod walk_partners;
mod walk_pool;
mod walk_step;
mod walk_ties;
pub mod walk_trace;
mod walk_worth;
