//! From bytes to words, sentences, tokens and names. Offsets are byte offsets unless said otherwise.

pub mod bpe;
pub mod strings;

pub mod windows;

mod pieces;
