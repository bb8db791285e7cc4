//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod classes;
pub mod published;
pub mod punkt;
pub mod strings;
pub mod treebank;
