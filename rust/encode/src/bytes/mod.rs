//! The encoder in int8: weights of 8 bits a channel, activations of 8 bits a token.
//!
//! Linear layers multiply bytes; attention, norms and activations stay f32. What makes bytes close enough:
//! * each input channel is scaled before it is rounded, by `sqrt(w / a)` of the largest weight and the
//!   largest activation that it met on built-in texts, and its weights by the inverse (Xiao et al. 2023,
//!   SmoothQuant, section 4, with a strength of one half): channels that stand out lose their weight;
//! * a token's values are spread over all 256 steps between its own least and greatest (`rows`).
//!
//! Sums of bytes are whole numbers, so that every processor has the same ones (`dot`), and what is f32 runs
//! on the sixteen lanes of `simd::wide`: the vectors are equal to the bit on all machines. To that end the
//! built-in texts run through fused f32 products too (`body`).

#[cfg(target_arch = "x86_64")]
pub mod amx;
pub mod body;
pub mod dot;
pub mod machine;
pub mod product;
pub mod rows;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub mod x86;

/// Outputs of a panel of weights.
pub const PANEL: usize = 32;
/// Words (four bytes) of a step: 64 inputs.
pub const STEP: usize = 16;
/// Words of the weights of a step and half a panel, and of a step and panel.
pub const HALF_WORDS: usize = STEP * 16;
pub const STEP_WORDS: usize = 2 * HALF_WORDS;
