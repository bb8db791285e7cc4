//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod bpe;
pub mod classes;
pub mod corpus;
pub mod cut;
pub mod interner;
pub mod lexical;
pub mod names;
pub mod published;
pub mod punkt;
pub mod sentences;
pub mod stopwords;
pub mod strings;
pub mod treebank;
pub mod vocabulary;
pub mod windows;
pub mod words;

mod abbreviations;
pub mod merged;
mod merges;
mod pieces;
mod word_table;
