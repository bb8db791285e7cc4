//! Text processing: words, sentences, tokens, chunks and names. Offsets are byte offsets unless stated
//! otherwise.
//!
//! A document passes through these steps:
//!
//! 1. [`sentences`] finds its sentences.
//! 2. [`blocks`] finds its blocks; [`cut`], [`passages`] and [`windows`] cut it into chunks of limited size, counted in
//!    tokens by [`bpe`] (encodings cl100k and o200k).
//! 3. [`words`] and [`vocabulary`] number its words; [`corpus`] does all of this for many documents on many threads.
//! 4. [`lexical`] extracts the keywords of the walk, reduced to their stems by [`languages`], and [`detection`]
//!    recognises the language; [`names`] finds the names that a text mentions.
//!
//! [`treebank`], [`punkt`] and [`published`] reproduce the tokenisation of reference implementations exactly.
//! [`encodings`] decodes what is not UTF-8, [`strings`] stores many texts in one buffer.
//!
//! # Example
//!
//! ```
//! use ketrag_text::bpe::Encoding;
//! use ketrag_text::lexical::Lexer;
//!
//! assert_eq!(Encoding::Cl100k.count("hello world"), 2);
//! let mut lexer = Lexer::default();
//! lexer.read("The cities of Ada Lovelace");
//! let mut keywords = Vec::new();
//! lexer.keywords(|word| keywords.push(word.to_owned()));
//! assert_eq!(keywords, ["city", "ada", "lovelace"]);
//! ```

// Modules of lower crates, under the names that they have in this crate.
use ketrag_base::{error, items, memory, parallel, progress, sparse};

pub mod blocks;
pub mod bpe;
pub mod characters;
pub mod classes;
pub mod code;
pub mod conversation;
pub mod copies;
pub mod corpus;
pub mod cut;
pub mod detection;
pub mod encodings;
pub mod folding;
pub mod formulas;
pub mod grep;
mod identifiers;
pub mod interner;
pub mod json_lines;
pub mod labels;
pub mod languages;
pub mod lexical;
pub mod names;
pub mod passages;
pub mod phrases;
pub mod published;
pub mod punkt;
pub mod query_language;
pub mod raised;
pub mod sentences;
pub mod stopwords;
pub mod strings;
pub mod text_size;
pub mod vocabulary;
pub mod windows;
pub mod words;

mod abbreviations;
mod ascii_sentences;
mod attached;
mod block;
mod clusters;
mod context;
pub mod merged;
mod merges;
mod piece;
mod pieces;
mod plain_blocks;
mod scripts;
mod sentence_signs;
mod stemmed;
mod word_table;
