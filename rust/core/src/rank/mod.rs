//! Ranking and selection on any graph, independent of how it was built: PageRank, BM25 and the walk.

pub mod bm25;
pub mod function_words;
pub mod links_view;
pub mod links_weights;
pub mod matches;
pub mod moments;
pub mod numbers;
pub mod pagerank;
pub mod question;
pub mod relevance;
pub mod select;
pub mod sentence_rows;
pub mod slots;
pub mod sparse_sum;
pub mod stem_forms;
pub mod terms;
pub mod walk;

#[cfg(test)]
mod order_tests;
