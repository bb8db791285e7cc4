//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod bpe;
pub mod corpus;
pub mod cut;
pub mod sentences;
pub mod stopwords;
pub mod strings;

pub mod vocabulary;
pub mod windows;
pub mod words;
mod word_table;

mod abbreviations;
mod pieces;
pub mod interner;
pub mod lexical;
pub mod names;
