//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod interner;
pub mod lexical;
pub mod names;
pub mod strings;
