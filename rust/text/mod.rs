//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod strings;
pub mod interner;
pub mod lexical;
pub mod names;
